"""From an answer to the bytes that are sent: status line, headers, and the body, without a copy if it is large."""

from __future__ import annotations

import http
import re

from penstock.sqs.protocols.http import HttpResponse

JOIN_BYTES = 16 * 1024
"""Up to this size an answer is one buffer: copying is cheaper than a vector of two pieces."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = "Connection: close\r\n"
KEEP_ALIVE = "Connection: keep-alive\r\n"
STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in http.HTTPStatus}
BODYLESS = {204, 304}
USUAL_HEADERS = {"Content-Type", "x-amzn-RequestId", "x-amzn-query-error"}
OWN_HEADERS = {"content-length", "date", "connection", "transfer-encoding", "keep-alive"}
"""Headers that only the server sets."""
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class Refusal(Exception):
    """The connection must end: the status and the explanation for its client."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status, sentence)
        self.status = status
        self.sentence = sentence


def plain_refusal(status: int, sentence: str) -> HttpResponse:
    """A refusal in plain text, for where no protocol formats it."""
    return HttpResponse(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{sentence}\n".encode())


def encode_answer(
    response: HttpResponse, date_line: str, connection: str, bodiless: bool
) -> bytes | list[bytes]:
    """The buffer of an answer, or several where it is large; `connection` is a header line or nothing.

    Raises ValueError where a header would break out of its line.
    """
    status, body = response.status, response.body
    lines = STATUS_LINES.get(status) or f"HTTP/1.1 {status} Status\r\n"
    for name, value in response.headers:
        if name in USUAL_HEADERS and value.isprintable():
            lines += f"{name}: {value}\r\n"
        else:
            lines += _header_line(name, value)
    if status in BODYLESS:
        return f"{lines}{date_line}{connection}\r\n".encode("latin-1")
    head = f"{lines}Content-Length: {len(body)}\r\n{date_line}{connection}\r\n".encode("latin-1")
    if bodiless or not body:
        return head
    if len(body) <= JOIN_BYTES:
        return head + body
    return [head, body]


def _header_line(name: str, value: str) -> str:
    if not (NAME.fullmatch(name) and VALUE.fullmatch(value)):
        raise ValueError(f"a header of an answer cannot be sent: {name!r}: {value!r}")
    return "" if name.lower() in OWN_HEADERS else f"{name}: {value}\r\n"
