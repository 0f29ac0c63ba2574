"""One connection to a metadata server: the handshake, then any number of requests at once.

A server that says nothing while something is asked is pinged, and given up when it does not answer that either: it may
be paused, or cut off, and nobody tells.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, cast

import msgspec

from penstock.metadata.remote.failures import NotDoneError, PerhapsDoneError, ServerFailure, StrangerError
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.wire.frames import Frame, FrameReader, encode_frame
from penstock.wire.handshake import HANDSHAKE_FRAME_BYTES, NONCE_BYTES, ClientHandshake, HandshakeError
from penstock.wire.metadata_messages import (
    PROTOCOL_VERSION,
    SERVICE,
    Answer,
    Changes,
    Failed,
    Hello,
    Listed,
    Ping,
    Request,
    Welcome,
    decode_answer,
    encode_message,
)

CONNECT_SECONDS = 1.0
PING_SECONDS = 1.0
SILENT_PINGS = 3
"""So many times it was silent when it was looked at, and at the next look the server is given up."""
REQUEST_IDS = 1 << 31


class Reply(NamedTuple):
    """An answer and what came with it."""

    answer: Answer
    body: bytes
    earlier: tuple[bytes, ...] = ()
    """The bodies of the parts that came before, of a listing that comes in several."""


Sink = Callable[[Reply | ServerFailure], None]


class Dial(Protocol):
    """Makes a connection, with TLS or without; raises `OSError`, and `HandshakeError` where TLS finds a stranger."""

    async def __call__(self, make: Callable[[], asyncio.Protocol], host: str, port: int) -> object: ...


async def dial_plainly(make: Callable[[], asyncio.Protocol], host: str, port: int) -> object:
    """Without TLS."""
    return await asyncio.get_running_loop().create_connection(make, host, port)


class ServerConnection(asyncio.Protocol):
    """Made by `connect`."""

    def __init__(self, secret: bytes, name: str) -> None:
        self.failure: str | None = None
        """Why it has ended, once it has."""
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._transport: asyncio.Transport | None = None
        self._handshake: ClientHandshake | None = ClientHandshake(secret, SERVICE, os.urandom(NONCE_BYTES))
        self._proven = False
        self._frames = FrameReader(HANDSHAKE_FRAME_BYTES)
        self._greeted: asyncio.Future[None] = self._loop.create_future()
        self._sinks: dict[int, Sink] = {}
        self._parts: dict[int, list[bytes]] = {}
        self._last_id = 0
        self._silent = 0
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._out: list[Buffer] = []

    @property
    def usable(self) -> bool:
        """Whether it can be asked."""
        return self.failure is None

    # -- asking ----------------------------------------------------------------------------------------------

    def ask(self, request: Request, body: Buffer = b"") -> asyncio.Future[Reply]:
        """The answer, or `PerhapsDoneError`; raises `NotDoneError` if the connection has ended already."""
        future: asyncio.Future[Reply] = self._loop.create_future()

        def sink(outcome: Reply | ServerFailure) -> None:
            if future.done():
                return
            if isinstance(outcome, ServerFailure):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self.begin(request, sink, body)
        return future

    def begin(self, request: Request, sink: Sink, body: Buffer = b"") -> int:
        """Asks something with any number of answers, or with one; the id by which it can be ended."""
        if self.failure is not None:
            raise NotDoneError(self.failure)
        self._last_id = request_id = self._last_id % REQUEST_IDS + 1
        self._sinks[request_id] = sink
        self._send(request_id, request, body)
        if self._timer is None:
            self._silent = 0
            self._timer = self._loop.call_later(PING_SECONDS, self._look_alive)
        return request_id

    def post(self, request: Request) -> None:
        """Says something that has no answer."""
        if self.failure is None:
            self._send(0, request, b"")

    def pause(self, paused: bool) -> None:
        """Stops reading for a while: whoever listens has more than it can take."""
        if self._transport is not None and self.failure is None:
            self._paused = paused
            if paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def close(self, reason: str = "closed", *, stranger: bool = False) -> None:
        """Ends it; everything outstanding fails. `stranger`: because one side does not trust the other."""
        if self.failure is not None:
            return
        self.failure = reason
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        if not self._greeted.done():
            self._greeted.set_exception(StrangerError(reason) if stranger else NotDoneError(reason))
            self._greeted.exception()  # nobody may be waiting for it
        sinks, self._sinks = self._sinks, {}
        for sink in sinks.values():
            sink(PerhapsDoneError(reason))

    async def greeted(self) -> None:
        """Returns when both sides have proven themselves; raises `NotDoneError`."""
        await self._greeted

    # -- asyncio.Protocol ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has classes of its own

    def connection_lost(self, error: Exception | None) -> None:
        if self._handshake is not None and self._proven:
            self.close(
                "it does not take our proof of the cluster's secret: it has another one", stranger=True
            )
        elif self._handshake is not None and self._is_secure():
            # With TLS 1.3 whoever connects is through before the server has looked at its certificate.
            self.close("it does not take our certificate", stranger=True)
        else:
            self.close(str(error) if error else "the server closed the connection")

    def data_received(self, data: bytes) -> None:
        self._silent = 0
        try:
            for frame in self._frames.feed(data):
                if self._handshake is not None:
                    self._shake(self._handshake, frame)
                else:
                    self._take(frame)
        except (PenstockError, HandshakeError, msgspec.MsgspecError) as error:
            stranger = isinstance(error, HandshakeError)
            self.close(f"what answered is no metadata server of this cluster: {error}", stranger=stranger)

    # -- inside ----------------------------------------------------------------------------------------------

    def _is_secure(self) -> bool:
        return self._transport is not None and self._transport.get_extra_info("sslcontext") is not None

    def _shake(self, handshake: ClientHandshake, frame: Frame) -> None:
        if not self._proven:
            self._write(encode_frame(0, handshake.prove(frame.head)))
            self._proven = True
            return
        handshake.finish(frame.head)
        self._handshake = None
        self._frames = FrameReader()
        self.begin(Hello(PROTOCOL_VERSION, self._name), self._welcome)

    def _welcome(self, outcome: Reply | ServerFailure) -> None:
        if self._greeted.done():
            return
        if isinstance(outcome, ServerFailure):
            self._greeted.set_exception(NotDoneError(str(outcome)))
        elif isinstance(outcome.answer, Welcome):
            self._greeted.set_result(None)
        else:
            said = outcome.answer.message if isinstance(outcome.answer, Failed) else "no welcome"
            self._greeted.set_exception(NotDoneError(said))

    def _take(self, frame: Frame) -> None:
        answer = decode_answer(frame.head)
        request_id, body = frame.request_id, bytes(frame.body)
        if isinstance(answer, Changes):
            if (sink := self._sinks.get(request_id)) is not None:
                sink(Reply(answer, body))
        elif isinstance(answer, Listed) and answer.more:
            if request_id in self._sinks:
                self._parts.setdefault(request_id, []).append(body)
        elif (sink := self._sinks.pop(request_id, None)) is not None:
            sink(Reply(answer, body, tuple(self._parts.pop(request_id, ()))))

    def _look_alive(self) -> None:
        self._timer = None
        if not self._sinks or self.failure is not None:
            return
        if self._silent >= SILENT_PINGS:
            self.close(f"the server said nothing for {(SILENT_PINGS + 1) * PING_SECONDS:g} s")
            return
        if self._silent:
            self._send(0, Ping(), b"")
        if not self._paused:  # else it is us who do not listen
            self._silent += 1
        self._timer = self._loop.call_later(PING_SECONDS, self._look_alive)

    def _send(self, request_id: int, request: Request, body: Buffer) -> None:
        self._write(encode_frame(request_id, encode_message(request), (body,) if body else ()))

    def _write(self, pieces: Sequence[Buffer]) -> None:
        # What is asked in one turn of the event loop goes out in one piece.
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += pieces

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None and self.failure is None:
            self._transport.write(b"".join(out))


async def connect(
    host: str, port: int, secret: bytes, name: str, dial: Dial = dial_plainly
) -> ServerConnection:
    """A connection over which both sides have proven that they know the secret; raises `NotDoneError`."""
    connection, reached = ServerConnection(secret, name), False
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await dial(lambda: connection, host, port)
            reached = True
            await connection.greeted()
    except TimeoutError as error:
        connection.close()
        silent = " (it says nothing; does it expect TLS?)" if reached else ""
        raise NotDoneError(f"no connection within {CONNECT_SECONDS:g} s{silent}") from error
    except HandshakeError as error:
        connection.close()
        raise StrangerError(str(error)) from error
    except OSError as error:
        connection.close()
        raise NotDoneError(str(error)) from error
    except BaseException:
        connection.close()
        raise
    return connection
