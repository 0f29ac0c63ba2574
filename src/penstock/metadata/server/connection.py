"""One connection to a metadata server: its peer, its requests, and how much of these is held at once.

Before the handshake has succeeded, nothing else is parsed. Requests that the cache can answer are answered at once; every
other request has a task, so that answers leave in the order in which they are ready.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import Protocol, cast

import msgspec

from penstock.metadata.server.answering import answered, failed, listing_parts
from penstock.metadata.server.service import MetadataService
from penstock.metadata.server.watching import Watching
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.model.limits import MEBIBYTE
from penstock.wire.frames import Frame, FrameReader, encode_frame
from penstock.wire.handshake import HANDSHAKE_FRAME_BYTES, NONCE_BYTES, HandshakeError, ServerHandshake
from penstock.wire.metadata_messages import (
    PROTOCOL_VERSION,
    SERVICE,
    Answer,
    Changes,
    Describe,
    Description,
    EndWatch,
    Failed,
    Found,
    Get,
    Hello,
    List,
    Ping,
    Pong,
    Request,
    Watch,
    Welcome,
    decode_request,
    encode_items,
    encode_message,
)

HANDSHAKE_SECONDS = 5.0
FRAME_BYTES = 4 * MEBIBYTE
REQUESTS_AT_ONCE = 256
REQUEST_BYTES_AT_ONCE = 16 * MEBIBYTE
WATCHES = 64
WRITE_BUFFER_BYTES = 1 * MEBIBYTE


class ConnectionOwner(Protocol):
    """The state that all connections of a server share."""

    secret: bytes
    service: MetadataService
    watching: Watching
    welcome: Welcome

    def describe(self) -> Description: ...

    def admit(self, connection: ClientConnection) -> bool:
        """Whether there is room for one more."""
        ...

    def proven(self, connection: ClientConnection) -> None:
        """It knows the secret."""
        ...

    def refused(self, why: str) -> None:
        """A connection was refused."""
        ...

    def gone(self, connection: ClientConnection) -> None: ...


class ClientConnection(asyncio.Protocol):
    """Made for every connection."""

    def __init__(self, owner: ConnectionOwner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._handshake: ServerHandshake | None = ServerHandshake(
            owner.secret, SERVICE, os.urandom(NONCE_BYTES)
        )
        self._frames = FrameReader(HANDSHAKE_FRAME_BYTES)
        self._greeted = False
        self._transport: asyncio.Transport | None = None
        self._peer: object = None
        self._patience: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._held_bytes = 0
        self._watches: dict[int, asyncio.Task[None]] = {}
        self._writable = asyncio.Event()
        self._writable.set()
        self._reading = True
        self._stopping = False
        self._out: list[Buffer] = []

    @property
    def watches(self) -> int:
        """How many it has."""
        return len(self._watches)

    async def drain(self, seconds: float) -> None:
        """Accepts no more requests and ends when those in progress are answered, after so long at most."""
        self._stopping = True
        for watch in list(self._watches.values()):
            watch.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        """Ends it."""
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio.Protocol ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        made = cast(asyncio.Transport, transport)  # uvloop's are of no class that is known here
        self._transport = made
        self._peer = made.get_extra_info("peername")
        made.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        if not self._owner.admit(self):
            made.abort()
            return
        self._patience = self._loop.call_later(HANDSHAKE_SECONDS, made.abort)
        if self._handshake is not None:
            made.write(b"".join(encode_frame(0, self._handshake.challenge())))

    def connection_lost(self, error: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        for task in (*self._tasks, *self._watches.values()):
            task.cancel()
        self._transport = None
        self._owner.gone(self)

    def pause_writing(self) -> None:
        self._writable.clear()
        self._read_or_not()

    def resume_writing(self) -> None:
        self._writable.set()
        self._read_or_not()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                if self._handshake is not None:
                    self._shake(self._handshake, frame)
                else:
                    self._take(frame)
        except (HandshakeError, PenstockError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            self._owner.refused(f"{self._peer}: {error}")
            self.close()
        self._flush()

    # -- requests --------------------------------------------------------------------------------------------

    def _shake(self, handshake: ServerHandshake, frame: Frame) -> None:
        self._send(0, handshake.accept(frame.head))
        self._handshake = None
        self._frames = FrameReader(FRAME_BYTES)
        self._owner.proven(self)
        if self._patience is not None:
            self._patience.cancel()

    def _take(self, frame: Frame) -> None:
        request_id = frame.request_id
        request = decode_request(frame.head)
        if isinstance(request, Get) and self._greeted:
            known = self._owner.service.known(request)
            if known is not None:
                self._send(request_id, encode_message(Found(known.version, known.behind)), known.value)
                return
        if not self._greeted:
            self._greet(request_id, request)
            return
        if self._stopping:
            self._say(request_id, Failed("not-done", "this metadata server is stopping"))
            return
        match request:
            case Ping():
                self._say(request_id, Pong())
            case Describe():
                self._say(request_id, self._owner.describe())
            case Watch():
                self._begin_watch(request_id, request)
            case EndWatch():
                if (watch := self._watches.get(request.watch)) is not None:
                    watch.cancel()
            case _:
                body = bytes(frame.body)
                self._begin(self._answer(request_id, request, body), len(body))

    def _greet(self, request_id: int, request: Request) -> None:
        if not isinstance(request, Hello):
            raise HandshakeError("a connection begins with a hello")
        if request.version != PROTOCOL_VERSION:
            said = f"this metadata server uses version {PROTOCOL_VERSION}, not {request.version}"
            self._say(request_id, Failed("not-done", said))
            return
        self._greeted = True
        self._say(request_id, self._owner.welcome)

    def _begin(self, work: Awaitable[None], size: int) -> None:
        async def run() -> None:
            await work

        task = self._loop.create_task(run())
        self._tasks.add(task)
        self._held_bytes += size

        def ended(done: asyncio.Task[None]) -> None:
            self._tasks.discard(done)
            self._held_bytes -= size
            self._read_or_not()

        task.add_done_callback(ended)
        self._read_or_not()

    async def _answer(self, request_id: int, request: Request, body: bytes) -> None:
        service = self._owner.service
        try:
            if isinstance(request, List):
                listing = await service.list(request.prefix, request.fresh)
                for head, part in listing_parts(listing):
                    await self._writable.wait()
                    self._say(request_id, head, part)
                return
            answer, value = await answered(service, request, body)
        except Exception as error:
            answer, value = failed(error), b""
        self._say(request_id, answer, value)

    # -- watches ---------------------------------------------------------------------------------------------

    def _begin_watch(self, request_id: int, request: Watch) -> None:
        if len(self._watches) >= WATCHES or request_id in self._watches:
            self._say(
                request_id, Failed("not-done", f"a connection may have {WATCHES} watches, each its own id")
            )
            return
        task = self._loop.create_task(self._watch(request_id, request))
        self._watches[request_id] = task
        task.add_done_callback(lambda done: self._watches.pop(request_id, None))

    async def _watch(self, request_id: int, request: Watch) -> None:
        try:
            news = self._owner.watching.news(request.prefix, request.after)
            try:
                async for told in news:
                    await self._writable.wait()
                    body = encode_items(told.changes) if told.changes else b""
                    self._say(request_id, Changes(told.upto), body)
            finally:
                await news.aclose()
        except Exception as error:
            self._say(request_id, failed(error))

    # -- writing ---------------------------------------------------------------------------------------------

    def _say(self, request_id: int, answer: Answer, body: bytes = b"") -> None:
        self._send(request_id, encode_message(answer), body)

    def _send(self, request_id: int, head: bytes, body: bytes = b"") -> None:
        # All answers of one turn of the event loop are sent together.
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += encode_frame(request_id, head, (body,) if body else ())

    def _flush(self) -> None:
        if self._out:
            out, self._out = self._out, []
            if self._transport is not None:
                self._transport.write(b"".join(out))

    def _read_or_not(self) -> None:
        """Stops reading while there are too many requests, or too many answers that the client does not read."""
        full = len(self._tasks) >= REQUESTS_AT_ONCE or self._held_bytes >= REQUEST_BYTES_AT_ONCE
        reading = self._writable.is_set() and not full
        if reading != self._reading and self._transport is not None:
            self._reading = reading
            if reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
