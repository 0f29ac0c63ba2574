"""How metadata servers are reached, written as one URL:

    penstock-metadata://one:9327,two:9327?secret_file=/etc/penstock/cluster-secret&timeout=10

`metadata://` is short for it. The servers in the URL are the first ones that are asked for the list of servers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from penstock.metadata.url_options import read_options, timeout_seconds
from penstock.wire.handshake import SECRET_BYTES_AT_LEAST

SCHEME = "penstock-metadata"
SCHEMES = (SCHEME, "metadata")
DEFAULT_PORT = 9327
DEFAULT_TIMEOUT_SECONDS = 10.0
_OPTIONS = {"timeout", "secret_file"}


class MetadataUrlError(ValueError):
    """The URL is invalid; the message says what to write instead."""


@dataclass(frozen=True)
class RemoteSettings:
    """The settings of a store over metadata servers."""

    addresses: tuple[str, ...]
    """HOST:PORT of each."""
    secret: bytes = field(repr=False)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    """No call takes longer, and a watch finds a server that answers within it."""


def parse_metadata_url(url: str, secret: bytes | None = None) -> RemoteSettings:
    """Reads a URL, and the secret's file that it may name; raises `MetadataUrlError`."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise MetadataUrlError(
            f"the URL of metadata servers begins with {SCHEME}://, not with {parts.scheme}://"
        )
    try:
        options = read_options(parts.query, _OPTIONS, "metadata servers")
        timeout = timeout_seconds(options, DEFAULT_TIMEOUT_SECONDS)
    except ValueError as error:
        raise MetadataUrlError(str(error)) from None
    if "secret_file" in options:
        secret = read_secret(Path(options["secret_file"]))
    if secret is None:
        raise MetadataUrlError(
            "metadata servers ask for the cluster's secret; add ?secret_file=FILE to their URL"
        )
    return RemoteSettings(_addresses(parts.netloc), secret, timeout)


def read_secret(file: Path) -> bytes:
    """The cluster's secret, without the end of its line; raises `MetadataUrlError`."""
    try:
        secret = file.read_bytes().strip()
    except OSError as error:
        raise MetadataUrlError(
            f"cannot read the cluster's secret from {file}: {error.strerror or error}"
        ) from error
    if len(secret) < SECRET_BYTES_AT_LEAST:
        raise MetadataUrlError(
            f"the cluster's secret in {file} is too short: at least {SECRET_BYTES_AT_LEAST} bytes, such as "
            "`head -c 32 /dev/urandom | base64` gives"
        )
    return secret


def split_address(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; raises `ValueError`."""
    parts = urlsplit(f"//{address}")
    if not parts.hostname:
        raise ValueError(f"{address} is not HOST:PORT")
    return parts.hostname, parts.port if parts.port is not None else DEFAULT_PORT


def _addresses(text: str) -> tuple[str, ...]:
    found = []
    for one in text.split(","):
        try:
            host, port = split_address(one)
        except ValueError as error:
            raise MetadataUrlError(
                f"the URL of metadata servers names no host or port in {one!r}: {error}; write "
                f"{SCHEME}://HOST:PORT, several separated by commas"
            ) from error
        found.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return tuple(dict.fromkeys(found))
