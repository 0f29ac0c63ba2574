"""A wire between a client and a real server that loses the answer to one request, and breaks when a test says so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from penstock.wire.frames import FrameReader
from penstock.wire.messages import Request, decode_request


class LossyWire:
    """Passes everything on, but what the server says after it was asked something of this kind."""

    def __init__(self, port: int, loses: type[Request]) -> None:
        self.has_lost = asyncio.Event()
        """Set once the server has answered, and nobody heard it."""
        self.seen: list[Request] = []
        """Requests of that kind, as often as they were asked."""
        self._port = port
        self._loses = loses
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> str:
        """Where clients connect."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return f"penstock://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Breaks all connections; later ones are whole."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers = []

    def close(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, forth]
        is_whole = self.has_lost.is_set()
        asked = asyncio.Event()

        async def answers() -> None:
            while data := await back.read(65_536):
                if asked.is_set() and not is_whole:
                    self.has_lost.set()
                else:
                    writer.write(data)

        async def requests() -> None:
            frames = FrameReader()
            while data := await reader.read(65_536):
                for frame in frames.feed(data):
                    request = decode_request(frame.head)
                    if isinstance(request, self._loses):
                        self.seen.append(request)
                        asked.set()
                forth.write(data)

        with contextlib.suppress(ConnectionError):
            await asyncio.gather(answers(), requests())


@contextlib.asynccontextmanager
async def lossy_wire(port: int, loses: type[Request]) -> AsyncIterator[tuple[LossyWire, str]]:
    """The wire, and where to connect to it."""
    wire = LossyWire(port, loses)
    url = await wire.start()
    try:
        yield wire, url
    finally:
        wire.close()
