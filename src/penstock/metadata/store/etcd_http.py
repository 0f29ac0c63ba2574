"""One HTTP connection to a member of etcd: a request and its answer, or a request and a stream of answers.

It knows just as much of HTTP/1.1 as etcd's JSON gateway uses, and nothing about the contents.
"""

from __future__ import annotations

import asyncio
from ssl import SSLContext

from penstock.metadata.store.etcd_settings import Endpoint

LONGEST_LINE_BYTES = 16 << 20
"""A line of a stream is one message, which etcd bounds to a few MiB; in base64 it grows by a third."""
LONGEST_BODY_BYTES = 64 << 20


class BadHttpError(Exception):
    """The input is not an answer, or ended in the middle of one."""


class HttpConnection:
    """One request at a time; a caller that is interrupted must close it."""

    def __init__(
        self, endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._endpoint = endpoint
        self._reader = reader
        self._writer = writer
        self._answered = writer.get_extra_info("sslcontext") is not None
        self._chunked = False
        self._left = 0
        """Bytes of the body, or of its chunk, that are still to be read; -1: there are no more."""
        self._line = bytearray()

    @classmethod
    async def open(cls, endpoint: Endpoint, tls: SSLContext | None) -> HttpConnection:
        """Raises `OSError`."""
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=tls)
        return cls(endpoint, reader, writer)

    @property
    def usable(self) -> bool:
        """False once the member has hung up."""
        return not (
            self._writer.is_closing() or self._reader.at_eof() or self._reader.exception() is not None
        )

    async def ask(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Sends a question, and returns the status and the body of the answer."""
        status = await self.begin(path, headers, body)
        answer = bytearray()
        while part := await self._part():
            answer += part
            if len(answer) > LONGEST_BODY_BYTES:
                raise BadHttpError(f"an answer of more than {LONGEST_BODY_BYTES >> 20} MiB")
        return status, bytes(answer)

    async def begin(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """Sends a request, and returns the status of the answer, whose lines `next_line` reads."""
        lines = [f"POST {path} HTTP/1.1", f"Host: {self._endpoint}", f"Content-Length: {len(body)}"]
        lines += ["Content-Type: application/json", *(f"{name}: {value}" for name, value in headers.items())]
        try:
            self._writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            await self._writer.drain()
            return await self._head()
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            # A member that requires TLS closes plain connections.
            advice = "" if self._answered else " (if it wants TLS, write etcds://)"
            raise BadHttpError(f"the connection was closed{advice}") from error

    async def next_line(self) -> bytes | None:
        """The next line of the body, without its end; None when the body has ended."""
        while True:
            end = self._line.find(b"\n")
            if end >= 0:
                line = bytes(self._line[:end])
                del self._line[: end + 1]
                if line:
                    return line
                continue
            if len(self._line) > LONGEST_LINE_BYTES:
                raise BadHttpError(f"a line of more than {LONGEST_LINE_BYTES >> 20} MiB")
            part = await self._part()
            if not part:
                rest = bytes(self._line)
                self._line.clear()
                return rest or None
            self._line += part

    def close(self) -> None:
        """Hangs up at once."""
        # A member that was paused or cut off would never take what is still to be written to it.
        self._writer.transport.abort()

    async def _head(self) -> int:
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            _, status, *_ = head[0].split(" ")
            fields = dict(line.lower().split(":", 1) for line in head[1:] if line)
            self._chunked = "chunked" in fields.get("transfer-encoding", "")
            if not self._chunked and "content-length" not in fields:
                raise BadHttpError(
                    f"it answered {head[0]}: is TLS meant (etcds://), and is this the port for clients?"
                )
            self._left = 0 if self._chunked else int(fields["content-length"])
            if not self._chunked and not self._left:
                self._left = -1
            self._answered = True
            return int(status)
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise BadHttpError(f"the server at this address is not etcd ({error!r})") from error

    async def _part(self) -> bytes:
        """Some of the body; nothing at its end."""
        if self._left < 0:
            return b""
        try:
            if self._chunked and not self._left:
                self._left = int(await self._reader.readuntil(b"\r\n"), 16)
                if not self._left:
                    self._left = -1
                    while await self._reader.readuntil(b"\r\n") != b"\r\n":
                        pass  # trailers
                    return b""
            part = await self._reader.read(self._left)
            if not part:
                raise BadHttpError("the connection was closed in the middle of an answer")
            self._left -= len(part)
            if not self._left:
                if self._chunked:
                    await self._reader.readexactly(2)
                else:
                    self._left = -1
            return part
        except asyncio.IncompleteReadError as error:
            raise BadHttpError("the connection was closed in the middle of an answer") from error
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise BadHttpError(f"the server at this address is not etcd ({error!r})") from error
