"""Somebody in between, who passes on all that two processes say to each other and knows no secret."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_PIECE = 1 << 16


@asynccontextmanager
async def relay(
    place: str, *, towards_client: ssl.SSLContext | None = None, towards_server: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Where it listens; `place` is where what it hears goes to. With TLS it is somebody else to either side."""
    host, _, port = place.rpartition(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(host, int(port), ssl=towards_server)
        with suppress(ConnectionError):
            await asyncio.gather(_pass_on(reader, there[1]), _pass_on(there[0], writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=towards_client)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
