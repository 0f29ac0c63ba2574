"""One HTTP request and one HTTP answer as plain values; the front end parses and writes them.

Header values are the wire's bytes read as Latin-1, so that a signature is computed over the bytes that were sent.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

REQUEST_BYTES = 4 * 1024 * 1024
"""The largest body that is read: a message of 1 MiB takes three times that when each byte is escaped."""


class HttpRequest(msgspec.Struct, frozen=True):
    """A whole request: header names in lower case, path and query still percent-encoded."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes = b""


class HttpResponse(msgspec.Struct, frozen=True):
    """A whole answer; the front end adds `Content-Length`, `Date` and `Connection`."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Peer(msgspec.Struct, frozen=True):
    """The sender of a request, from its connection."""

    address: str
    """The client's IP address; an IPv4 address is written as one, also if it came over IPv6."""
    secure: bool
    """Whether the connection is encrypted."""


def request_of(
    method: str, target: str, headers: Iterable[tuple[bytes, bytes]], body: bytes = b""
) -> HttpRequest:
    """A request from the parts an HTTP parser hands over; headers sent twice are joined with a comma."""
    path, query = split_target(target)
    merged: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        merged[name] = f"{merged[name]},{value}" if name in merged else value
    return HttpRequest(method, path, query, merged, body)


def split_target(target: str) -> tuple[str, str]:
    """The path and the query of a request target, both still percent-encoded."""
    path, _, query = target.partition("?")
    if (
        not path.startswith("/") and (start := path.find("://")) >= 0
    ):  # the absolute form that a proxy is sent
        slash = path.find("/", start + 3)
        path = path[slash:] if slash >= 0 else "/"
    return path or "/", query
