"""The address of a server as a URL: `penstock://host:port`, optionally with an access key before the host.

With TLS it is `penstocks://host:port`, and `?ca=FILE` names the trusted authority.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.credentials import Credentials

PLAIN, SECURE = "penstock", "penstocks"
DEFAULT_PORT = 9326
DEFAULT_URL = f"{PLAIN}://127.0.0.1:{DEFAULT_PORT}"


class Address(NamedTuple):
    """Host and port of the native protocol."""

    host: str
    port: int
    secure: bool = False
    """Whether the connection uses TLS."""
    authority: str = ""
    """The file with the authorities that the url names; empty: it names none."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(url: str) -> Address:
    """Reads `penstock[s]://[key:secret@]host[:port][?ca=FILE]`; raises with what it should look like."""
    return parse_url(url)[0]


def parse_url(url: str) -> tuple[Address, Credentials | None]:
    """The address, and the access key and secret before it; errors never repeat those."""
    shown = _without_secret(url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad(shown, "it cannot be read as a host and a port from 0 to 65535") from None
    if parts.scheme not in (PLAIN, SECURE):
        raise _bad(shown, f"it must start with {PLAIN}://, or over TLS with {SECURE}://")
    if not parts.hostname:
        raise _bad(shown, "it names no host")
    authority = _authority(parts, shown)
    if parts.path not in ("", "/") or parts.fragment:
        raise _bad(
            shown,
            "there is more than a host and a port in it"
            + (" (in a secret write / as %2F and + as it is)" if "@" in url else ""),
        )
    credentials: Credentials | None = None
    if parts.username is not None:
        if not parts.username or not parts.password:
            raise _bad(shown, "before the @ must be an access key and its secret, separated by a colon")
        credentials = Credentials(unquote(parts.username), unquote(parts.password))
    port = DEFAULT_PORT if port is None else port
    return Address(parts.hostname, port, parts.scheme == SECURE, authority), credentials


def _authority(parts: SplitResult, shown: str) -> str:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    authority = options.pop("ca", None)
    if options or (parts.query and authority is None):
        raise _bad(shown, "after the ? only ca=FILE is allowed")
    if authority is None:
        return ""
    if parts.scheme != SECURE:
        raise _bad(shown, f"ca needs TLS: begin with {SECURE}://")
    if not authority:
        raise _bad(shown, "ca= names no file")
    return authority


def without_secret(url: str) -> str:
    """The url without the credentials in it, if there are any: for logs and errors."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}" if separator else url.rpartition("@")[2]


def _without_secret(url: str) -> str:
    return f"{without_secret(url)!r} (credentials left out)" if "@" in url else repr(url)


def _bad(shown: str, why: str) -> PenstockError:
    return PenstockError(
        ErrorCode.BAD_REQUEST, f"{shown} is not the address of a server: {why}. Use for example {DEFAULT_URL}"
    )
