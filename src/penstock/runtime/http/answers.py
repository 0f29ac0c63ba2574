"""From an answer to the bytes that are sent: status line, headers, and the body uncopied where it is large."""

from __future__ import annotations

import http

from penstock.sqs.http import HttpResponse

JOIN_BYTES = 16 * 1024
"""Up to this size an answer is one buffer: copying is cheaper than a vector of two pieces."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in http.HTTPStatus}
BODYLESS = {204, 304}


def plain_refusal(status: int, sentence: str) -> HttpResponse:
    """A refusal in plain text, for where nobody dresses it."""
    return HttpResponse(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{sentence}\n".encode())


def encode_answer(response: HttpResponse, date_line: str, connection: str, *, bodiless: bool) -> list[bytes]:
    """The buffers of an answer; `connection` is a header line or nothing.

    Raises ValueError where a header would break out of its line.
    """
    status, body = response.status, response.body
    lines = "".join([f"{name}: {value}\r\n" for name, value in response.headers])
    count = len(response.headers)
    if lines.count("\n") != count or lines.count("\r") != count or "\0" in lines:
        raise ValueError(f"a header of an answer holds a line break: {response.headers!r}")
    status_line = STATUS_LINES.get(status) or f"HTTP/1.1 {status} Status\r\n"
    length_line = "" if status in BODYLESS else f"Content-Length: {len(body)}\r\n"
    head = f"{status_line}{lines}{length_line}{date_line}{connection}\r\n".encode("latin-1")
    if bodiless or not body or status in BODYLESS:
        return [head]
    if len(body) <= JOIN_BYTES:
        return [head + body]
    return [head, body]
