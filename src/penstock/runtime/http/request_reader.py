"""From bytes to whole requests, without a socket. What is malformed or too large is refused with a sentence.

Nothing here grows without a bound: the caller feeds pieces of at most `SLICE_BYTES` beyond what a body still
lacks, so that a head is measured before the next piece of it is taken.
"""

from __future__ import annotations

from collections import deque

import httptools

from penstock.runtime.http.limits import HttpLimits
from penstock.sqs.http import HttpRequest, split_target

SLICE_BYTES = 16 * 1024
METHODS = {
    name.encode(): name for name in ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
}

HEADER_NAMES = {
    spelling.encode(): name
    for name in (
        *("host", "accept", "accept-encoding", "content-type", "content-length", "user-agent", "connection"),
        *("authorization", "x-amz-target", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"),
        *("x-amzn-query-mode", "x-amzn-trace-id", "x-amz-user-agent", "x-forwarded-for", "x-forwarded-proto"),
        *("amz-sdk-invocation-id", "amz-sdk-request", "expect", "transfer-encoding"),
    )
    for spelling in (name, name.title())
}
"""The usual headers as they are usually spelled, so that their names need not be made anew: 1 µs a request."""

Arrival = tuple[HttpRequest, bool, bool]
"""A whole request, whether the connection stays open after it, and whether it spoke HTTP/1.0."""


class Refusal(Exception):
    """The connection cannot go on: the status and the sentence that tell its client why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status, sentence)
        self.status = status
        self.sentence = sentence


class RequestReader:
    """Collects the requests of one connection."""

    __slots__ = (
        "_body",
        "_head_fed_bytes",
        "_headers",
        "_in_head",
        "_keep_alive",
        "_limits",
        "_method",
        "_old_version",
        "_parser",
        "_refusal",
        "_repeated_headers",
        "_target",
        "_upgrade",
        "arrived",
        "arriving",
        "continue_due",
        "finished",
        "missing_bytes",
    )

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._method = "GET"
        self._headers: dict[str, str] = {}
        self._repeated_headers = 0
        self._in_head = False
        self._body: bytes | bytearray = b""
        self._keep_alive = True
        self._old_version = False
        self._upgrade = False
        self._refusal: Refusal | None = None
        self._head_fed_bytes = 0
        """What was fed of a head after its first piece, or of a chunked body since its last byte of content."""
        self.arrived: deque[Arrival] = deque()
        """Requests that are whole and that nobody took yet."""
        self.arriving = False
        """Whether a request has begun and is not whole."""
        self.finished = False
        """Whether the client said that its last request was the last: whatever follows is no request."""
        self.continue_due = False
        """Whether the client waits for leave to send its body."""
        self.missing_bytes = 0
        """What the body of the arriving request still lacks, as far as its length was announced."""

    @property
    def buffered_bytes(self) -> int:
        """What is kept of a request that is not whole."""
        return self._head_fed_bytes + len(self._body) if self.arriving else 0

    @property
    def in_head(self) -> bool:
        """Whether a request has begun and its headers are not whole."""
        return self._in_head

    def feed(self, data: bytes | memoryview) -> None:
        """Takes the next bytes; raises a refusal, after which nothing may be fed any more."""
        if self._over():
            return
        if self.arriving:
            self._measure(len(data))
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data, upgrade.args[0])
        except httptools.HttpParserError as error:
            if self._refusal is not None:
                raise self._refusal from None
            if self._over():
                return
            raise Refusal(400, f"This is not a well-formed HTTP/1.1 request: {error}.") from None
        if self._in_head and len(self._headers) + self._repeated_headers > self._limits.headers:
            raise self._too_many_headers()

    # -- called by the parser --------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._target = b""
        self._headers = {}
        self._repeated_headers = 0
        self._in_head = True
        self._body = b""
        self._head_fed_bytes = 0
        self.arriving = True

    def on_url(self, piece: bytes) -> None:
        self._target = self._target + piece if self._target else piece
        if len(self._target) > self._limits.target_bytes:
            self._refuse(414, f"The request target may have {self._limits.target_bytes} bytes at most.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer, which means nothing here
        headers = self._headers
        key = HEADER_NAMES.get(name) or name.decode("latin-1").lower()
        text = value.rstrip().decode("latin-1")
        if key in headers:
            self._repeated_headers += 1
            text = f"{headers[key]},{text}"
        headers[key] = text

    def on_headers_complete(self) -> None:
        parser, limits = self._parser, self._limits
        method = parser.get_method()
        headers = self._headers
        if len(headers) + self._repeated_headers > limits.headers:
            raise self._keep(self._too_many_headers())
        if parser.should_upgrade():
            if method == b"CONNECT":
                self._refuse(405, "This server is no proxy: CONNECT is not supported.")
            self._upgrade = True
            return
        if self._head_fed_bytes:
            self._measure_head()
        self._method = METHODS.get(method) or method.decode("latin-1")
        version = parser.get_http_version()
        self._old_version = version == "1.0"
        if version != "1.1" and not self._old_version:
            self._refuse(505, "This server speaks HTTP/1.1 and HTTP/1.0.")
        host = headers.get("host")
        if (host is None and not self._old_version) or (host is not None and "," in host):
            self._refuse(400, "A request needs exactly one Host header.")
        self.missing_bytes = 0
        if (length := headers.get("content-length")) is not None:
            self.missing_bytes = int(length)
            if self.missing_bytes > limits.body_bytes:
                self._refuse(413, f"The body of a request may have {limits.body_bytes} bytes at most.")
        if (coding := headers.get("transfer-encoding")) is not None:
            self._check_coding(coding, length)
        if (expectation := headers.get("expect")) is not None and not self._old_version:
            if expectation.lower() != "100-continue":
                self._refuse(417, "The only expectation that can be met is 100-continue.")
            self.continue_due = True
        self._keep_alive = parser.should_keep_alive()
        self._head_fed_bytes = 0
        self._in_head = False

    def on_body(self, piece: bytes) -> None:
        self._head_fed_bytes = 0
        self.continue_due = False
        size = len(self._body) + len(piece)
        if size > self._limits.body_bytes:
            self._refuse(413, f"The body of a request may have {self._limits.body_bytes} bytes at most.")
        if self.missing_bytes:
            self.missing_bytes -= len(piece)
        # One buffer that grows, not a list: tiny chunks would cost many times their size as objects.
        if not self._body:
            self._body = piece
        elif isinstance(self._body, bytearray):
            self._body += piece
        else:
            self._body = bytearray(self._body)
            self._body += piece

    def on_message_complete(self) -> None:
        if self._upgrade:
            return
        path, query = split_target(self._target.decode("latin-1"))
        request = HttpRequest(self._method, path, query, self._headers, bytes(self._body))
        self._body = b""
        self.arriving = False
        self.continue_due = False
        self.finished = not self._keep_alive
        self.arrived.append((request, self._keep_alive, self._old_version))

    def _over(self) -> bool:
        return self.finished

    # -- inside ----------------------------------------------------------------------------------------------

    def _measure(self, size: int) -> None:
        """Refuses a head, a trailer or chunk framing without end, before it is taken."""
        if self.missing_bytes and not self._in_head:
            return
        self._head_fed_bytes += size
        if self._head_fed_bytes > self._limits.head_bytes + SLICE_BYTES:
            raise self._too_large_head()

    def _measure_head(self) -> None:
        size = len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._headers.items())
        if size > self._limits.head_bytes:
            raise self._keep(self._too_large_head())

    def _check_coding(self, coding: str, length: str | None) -> None:
        if length is not None or self._old_version:
            self._refuse(400, "The length of the request's body is ambiguous.")
        if coding.lower() != "chunked":
            self._refuse(501, "The only transfer coding that is understood is chunked.")

    def _ignore_upgrade(self, data: bytes | memoryview, offset: int) -> None:
        """Goes on in HTTP/1.1 where the client offers another protocol.

        The parser takes whatever follows such a head for the other protocol, also a body, so that a new parser
        is given the same head without the offer.
        """
        self._upgrade = False
        self.arriving = False
        head = [
            self._parser.get_method()
            + b" "
            + self._target
            + b" HTTP/"
            + self._parser.get_http_version().encode()
        ]
        head += [
            f"{name}: {value}".encode("latin-1") for name, value in self._headers.items() if name != "upgrade"
        ]
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
