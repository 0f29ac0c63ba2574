"""Where a server listens, as a url: `penstock://host:port`."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from penstock.model.errors import ErrorCode, PenstockError

DEFAULT_PORT = 9326
DEFAULT_URL = f"penstock://127.0.0.1:{DEFAULT_PORT}"


class Address(NamedTuple):
    """Host and port of the native protocol."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(url: str) -> Address:
    """Reads `penstock://host[:port]`; raises with what it should look like."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _bad(url, str(error)) from None
    if parts.scheme != "penstock":
        raise _bad(url, "it must start with penstock://")
    if not parts.hostname:
        raise _bad(url, "it names no host")
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise _bad(url, "there is more than a host and a port in it")
    return Address(parts.hostname, DEFAULT_PORT if port is None else port)


def _bad(url: str, why: str) -> PenstockError:
    return PenstockError(
        ErrorCode.BAD_REQUEST, f"{url!r} is no address of a server: {why}. Use for example {DEFAULT_URL}"
    )
