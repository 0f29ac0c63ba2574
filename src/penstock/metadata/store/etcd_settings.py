"""How an etcd is reached: its members, the prefix of our keys, the user, the timeout.

Written as one URL: `etcd://user@one:2379,two:2379,three:2379/penstock?password_file=/etc/penstock/etcd-password`. With
`etcds` the connections use TLS; `ca`, `certificate` and `key` then name files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from penstock.metadata.url_options import read_options, timeout_seconds

DEFAULT_PORT = 2379
DEFAULT_NAMESPACE = "penstock"
DEFAULT_TIMEOUT_SECONDS = 5.0

_OPTIONS = {"timeout", "password_file", "ca", "certificate", "key"}


_PASSWORD = re.compile(r"(://[^/?#@:]*:)[^/?#]*@")


def without_password(url: str) -> str:
    """A URL in a form for logs and screens."""
    return _PASSWORD.sub(r"\1…@", url)


class EtcdUrlError(ValueError):
    """The URL is invalid; the message says what to write instead."""


@dataclass(frozen=True)
class Endpoint:
    """The address of one member of etcd for clients."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class TlsFiles:
    """PEM files: the authority of the members' certificates (None: the machine's own), and the client's certificate."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class EtcdSettings:
    """The settings of a store over etcd."""

    endpoints: tuple[Endpoint, ...]
    """Asked in this order; a member that does not answer goes to the end."""
    namespace: str = DEFAULT_NAMESPACE
    """Our keys are `<namespace>/...`, so that others may use the same etcd."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: TlsFiles | None = None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    """No call takes longer, and a watch finds a member that answers within it."""


def parse_etcd_url(url: str) -> EtcdSettings:
    """Reads a URL, and the password file it may name; raises `EtcdUrlError`."""
    parts = urlsplit(url)
    if parts.scheme not in ("etcd", "etcds"):
        raise EtcdUrlError(f"the URL of an etcd begins with etcd:// or etcds://, not with {parts.scheme}://")
    try:
        options = read_options(parts.query, _OPTIONS, "etcd")
        timeout = timeout_seconds(options, DEFAULT_TIMEOUT_SECONDS)
    except ValueError as error:
        raise EtcdUrlError(str(error)) from None
    user, password = _who(parts, options.get("password_file"))
    return EtcdSettings(
        endpoints=_endpoints(parts.netloc.rpartition("@")[2]),
        namespace=unquote(parts.path).strip("/") or DEFAULT_NAMESPACE,
        user=user,
        password=password,
        tls=_tls(parts.scheme, options),
        timeout_seconds=timeout,
    )


def _endpoints(text: str) -> tuple[Endpoint, ...]:
    found = []
    for one in text.split(","):
        try:
            address = urlsplit(f"//{one}")
            port = address.port if address.port is not None else DEFAULT_PORT
        except ValueError as error:
            raise EtcdUrlError(f"{one} is not HOST:PORT: {error}") from error
        if not address.hostname:
            raise EtcdUrlError(
                "the URL of etcd names no host; write etcd://HOST:PORT, several separated by commas"
            )
        found.append(Endpoint(address.hostname, port))
    return tuple(found)


def _who(parts: SplitResult, password_file: str | None) -> tuple[str | None, str | None]:
    credentials, found, _ = parts.netloc.rpartition("@")
    user, colon, written = credentials.partition(":")
    if not found or not user:
        if password_file is not None:
            raise EtcdUrlError(
                "the URL of etcd names a password file but no user; write etcd://USER@HOST:PORT"
            )
        return None, None
    if colon:
        return unquote(user), unquote(written)
    if password_file is None:
        raise EtcdUrlError("the URL of etcd names a user but no password; add ?password_file=FILE")
    try:
        return unquote(user), Path(password_file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        raise EtcdUrlError(f"cannot read the password of etcd from {password_file}: {error}") from error


def _tls(scheme: str, options: dict[str, str]) -> TlsFiles | None:
    files = {name: Path(options[name]) for name in ("ca", "certificate", "key") if name in options}
    if scheme == "etcd":
        if files:
            raise EtcdUrlError(f"the option {sorted(files)[0]} needs TLS; begin the URL with etcds://")
        return None
    if ("certificate" in files) != ("key" in files):
        raise EtcdUrlError("certificate and key go together in the URL of etcd: name both or neither")
    return TlsFiles(**files)
