"""From bytes to complete requests, without a socket. A malformed or too large request is refused with an explanation.

All buffers are bounded: the caller feeds pieces of at most `SLICE_BYTES` beyond the rest of a body, so that a head is
measured before its next piece is accepted.
"""

from __future__ import annotations

from collections import deque

import httptools

from penstock.runtime.http.answers import Refusal
from penstock.runtime.http.exchanges import Exchange
from penstock.runtime.http.limits import HttpLimits
from penstock.sqs.protocols.http import HttpRequest, split_target

SLICE_BYTES = 16 * 1024
METHODS = {
    name.encode(): name for name in ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
}
HEADER_NAMES = {
    spelling.encode(): name
    for name in (
        *("host", "accept", "accept-encoding", "content-type", "content-length", "user-agent"),
        *("authorization", "x-amz-target", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"),
        *("x-amzn-query-mode", "x-amzn-trace-id", "x-amz-user-agent", "x-forwarded-for"),
        *("x-forwarded-proto", "amz-sdk-invocation-id", "amz-sdk-request", "expect", "transfer-encoding"),
        *("connection", "x-amz-api-version"),
    )
    for spelling in (name, name.title())
}
"""From the usual spellings on the wire to the names, so that they need not be created: 1 µs a request."""

Pairs = list[tuple[bytes, bytes]]


class HeldBytes:
    """Bytes of a connection that wait, in order, until there is room for their requests."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self._pieces: deque[bytes | memoryview] = deque()
        self.size = 0

    def __bool__(self) -> bool:
        return self.size > 0

    def add(self, piece: bytes | memoryview) -> None:
        """Waits after all others."""
        self._pieces.append(piece)
        self.size += len(piece)

    def put_back(self, piece: bytes | memoryview) -> None:
        """Waits before all others."""
        self._pieces.appendleft(piece)
        self.size += len(piece)

    def take(self) -> bytes | memoryview:
        """The piece that waited longest."""
        piece = self._pieces.popleft()
        self.size -= len(piece)
        return piece

    def clear(self) -> None:
        """Forgets everything."""
        self._pieces.clear()
        self.size = 0


class RequestReader:
    """Collects the requests of one connection; the parser calls its `on_` methods."""

    __slots__ = (
        "_body",
        "_head_fed_bytes",
        "_headers",
        "_keep_alive",
        "_limits",
        "_method",
        "_old_version",
        "_pairs",
        "_parser",
        "_refusal",
        "_target",
        "_upgrade",
        "arrived",
        "arriving",
        "continue_due",
        "finished",
        "in_head",
        "missing_bytes",
        "on_header",
    )

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._pairs: Pairs = []
        """The headers as they arrived."""
        append = self._pairs.append
        # Headers are the most of a request: they are collected by the cheapest call there is, and read at once
        # when they are whole (2 µs of 5 for ten headers).
        self.on_header = lambda name, value: append((name, value))
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._method = "GET"
        self._headers: dict[str, str] = {}
        self._body: bytes | bytearray = b""
        self._keep_alive = True
        self._old_version = False
        self._upgrade = False
        self._refusal: Refusal | None = None
        self._head_fed_bytes = 0
        """The bytes of a head after its first piece, or of a chunked body since its last byte of content."""
        self.arrived: deque[Exchange] = deque()
        """Complete requests that were not taken yet."""
        self.arriving = False
        """Whether a request has begun and is not whole."""
        self.in_head = False
        """Whether a request has begun and its headers are not whole."""
        self.finished = False
        """Whether the client announced its last request: nothing after it is a request."""
        self.continue_due = False
        """Whether the client waits for leave to send its body."""
        self.missing_bytes = 0
        """The missing bytes of the arriving body, if its length was announced."""

    @property
    def buffered_bytes(self) -> int:
        """The size of requests that were not taken yet."""
        whole = sum([len(exchange.request.body) for exchange in self.arrived if exchange.request is not None])
        return whole + self._head_fed_bytes + len(self._body)

    def feed(self, data: bytes | memoryview) -> None:
        """Takes the next bytes; raises a refusal, after which nothing may be fed any more."""
        if self.arriving:
            self._measure(len(data))
        elif self.finished:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data, upgrade.args[0])
        except httptools.HttpParserError as error:
            if self._refusal is not None:
                raise self._refusal from None
            if self.finished:
                return
            raise Refusal(400, f"This is not a well-formed HTTP/1.1 request: {error}.") from None
        if self.in_head and len(self._pairs) > self._limits.headers:
            raise self._too_many_headers()

    def stop(self) -> None:
        """Nothing more will come: an incomplete request is dropped."""
        self.finished = True
        self.arriving = self.in_head = self.continue_due = False
        self._body = b""
        self._refusal = None
        self._head_fed_bytes = self.missing_bytes = 0

    def end(self) -> None:
        """The connection is gone: nothing is fed any more."""
        self.stop()
        del self._parser  # it refers to this reader

    # -- called by the parser --------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.arriving = self.in_head = True

    def on_url(self, piece: bytes) -> None:
        target = self._target = self._target + piece if self._target else piece
        if len(target) > self._limits.target_bytes:
            self._refuse(414, f"The request target may have {self._limits.target_bytes} bytes at most.")

    def on_headers_complete(self) -> None:
        parser, limits, pairs = self._parser, self._limits, self._pairs
        if len(pairs) > limits.headers:
            raise self._keep(self._too_many_headers())
        if self._head_fed_bytes or limits.head_bytes < SLICE_BYTES:
            self._measure_head()
        headers = self._headers = headers_of(pairs)
        if len(headers) != len(pairs) and is_signed_twice(pairs):
            self._refuse(400, "A request may have one Authorization header.")
        pairs.clear()
        method = parser.get_method()
        if method == b"CONNECT":
            self._refuse(405, "This server is no proxy: CONNECT is not supported.")
        if "upgrade" in headers and parser.should_upgrade():
            self._upgrade = True
            return
        self._method = METHODS.get(method) or method.decode("latin-1")
        self._keep_alive = keep_alive = parser.should_keep_alive()
        # Only HTTP/1.1 connections stay open without a header, so the version need not be read: 0.3 µs.
        if not keep_alive or "connection" in headers:
            self._check_version(parser.get_http_version())
        else:
            self._old_version = False
        host = headers.get("host")
        if host is None:
            if not self._old_version:
                self._refuse(400, "A request needs a Host header.")
        elif "," in host:
            self._refuse(400, "A request needs exactly one Host header.")
        if (length := headers.get("content-length")) is not None:
            self.missing_bytes = int(length)
            if self.missing_bytes > limits.body_bytes:
                self._refuse(413, f"The body of a request may have {limits.body_bytes} bytes at most.")
        else:
            self.missing_bytes = 0
        if "transfer-encoding" in headers:
            self._check_coding(headers["transfer-encoding"], length)
        if "expect" in headers and not self._old_version:
            if headers["expect"].lower() != "100-continue":
                self._refuse(417, "The only expectation that can be met is 100-continue.")
            self.continue_due = True
        self._head_fed_bytes = 0
        self.in_head = False

    def on_body(self, piece: bytes) -> None:
        body = self._body
        if (
            not body and len(piece) == self.missing_bytes
        ):  # the usual case: whole, and of the announced length
            self._body = piece
            self.missing_bytes = 0
            return
        self._head_fed_bytes = 0
        self.continue_due = False
        if len(body) + len(piece) > self._limits.body_bytes:
            self._refuse(413, f"The body of a request may have {self._limits.body_bytes} bytes at most.")
        if self.missing_bytes:
            self.missing_bytes -= len(piece)
        # One buffer that grows, not a list: tiny chunks would cost many times their size as objects.
        if not body:
            self._body = piece
        elif isinstance(body, bytearray):
            body += piece
        else:
            self._body = bytearray(body)
            self._body += piece

    def on_message_complete(self) -> None:
        if self._upgrade:
            return
        target, body, method = self._target, self._body, self._method
        if target == b"/":
            path, query = "/", ""
        else:
            path, query = split_target(target.decode("latin-1"))
        if isinstance(body, bytearray):
            body = bytes(body)
        request = HttpRequest(method, path, query, self._headers, body)
        self.arrived.append(Exchange(request, self._keep_alive, self._old_version, method == "HEAD"))
        self._target = self._body = b""
        self._head_fed_bytes = 0
        self._pairs.clear()  # the trailers of a chunked body, which mean nothing here
        self.arriving = self.continue_due = False
        if not self._keep_alive:
            self.finished = True

    # -- inside ----------------------------------------------------------------------------------------------

    def _measure(self, size: int) -> None:
        """Refuses a head, a trailer or chunk framing without end, before it is taken."""
        if self.missing_bytes and not self.in_head:
            return
        self._head_fed_bytes += size
        if self._head_fed_bytes > self._limits.head_bytes + SLICE_BYTES:
            raise self._too_large_head()

    def _measure_head(self) -> None:
        size = len(self._target) + sum([len(name) + len(value) + 4 for name, value in self._pairs])
        if size > self._limits.head_bytes:
            raise self._keep(self._too_large_head())

    def _check_version(self, version: str) -> None:
        self._old_version = version == "1.0"
        if version != "1.1" and not self._old_version:
            self._refuse(400, "This server supports HTTP/1.1 and HTTP/1.0.")

    def _check_coding(self, coding: str, length: str | None) -> None:
        if length is not None or self._old_version:
            self._refuse(400, "The length of the request's body is ambiguous.")
        if coding.lower() != "chunked":
            self._refuse(400, "The only transfer coding that is understood is chunked.")

    def _ignore_upgrade(self, data: bytes | memoryview, offset: int) -> None:
        """Continues in HTTP/1.1 if the client offers another protocol.

        The parser takes everything after such a head for the other protocol, also a body. So a new parser gets the same
        head without the offer.
        """
        self._upgrade = False
        self.arriving = False
        version = self._parser.get_http_version().encode()
        head = [b"%s %s HTTP/%s" % (self._parser.get_method(), self._target, version)]
        head += [
            f"{name}: {value}".encode("latin-1") for name, value in self._headers.items() if name != "upgrade"
        ]
        self._target = b""
        self._parser = httptools.HttpRequestParser(self)
        self.feed(b"\r\n".join(head) + b"\r\n\r\n")
        if rest := data[offset:]:
            self.feed(rest)

    def _too_many_headers(self) -> Refusal:
        return Refusal(431, f"A request may have {self._limits.headers} headers at most.")

    def _too_large_head(self) -> Refusal:
        return Refusal(431, f"The headers of a request may have {self._limits.head_bytes} bytes at most.")

    def _keep(self, refusal: Refusal) -> Refusal:
        """The parser swallows what is raised inside it; this is what it swallowed."""
        self._refusal = refusal
        return refusal

    def _refuse(self, status: int, sentence: str) -> None:
        raise self._keep(Refusal(status, sentence))


def headers_of(pairs: Pairs) -> dict[str, str]:
    """The headers as a request has them; those sent twice are joined with a comma."""
    try:
        headers = {HEADER_NAMES[name]: value.rstrip().decode("latin-1") for name, value in pairs}
    except KeyError:
        return _unusual_headers_of(pairs)
    return headers if len(headers) == len(pairs) else _unusual_headers_of(pairs)


def is_signed_twice(pairs: Pairs) -> bool:
    """Whether there is more than one `Authorization` header: others on the way may believe another one of them."""
    return sum(name.lower() == b"authorization" for name, _ in pairs) > 1


def _unusual_headers_of(pairs: Pairs) -> dict[str, str]:
    headers: dict[str, str] = {}
    for spelling, raw_value in pairs:
        name = HEADER_NAMES.get(spelling) or spelling.decode("latin-1").lower()
        value = raw_value.rstrip().decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers
