"""One connection to a metadata server: the handshake, then any number of requests at once.

A server that is silent while requests wait is pinged, and given up if it does not answer that either: it may be paused or
disconnected without a notification.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import msgspec

from penstock.metadata.remote.failures import NotDoneError, PerhapsDoneError, ServerFailure, StrangerError
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.streams.framed import FramedConnection
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.handshake import NONCE_BYTES, ClientHandshake, HandshakeError
from penstock.wire.liveness import Liveness, Sign
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
from penstock.wire.request_ids import RequestIds

CONNECT_SECONDS = 1.0
PING_SECONDS = 1.0
PINGS = 2
"""The number of pings that may stay unanswered, from the second check on at which it was silent; then the server is given up."""


class Reply(NamedTuple):
    """An answer and its body."""

    answer: Answer
    body: bytes
    earlier: tuple[bytes, ...] = ()
    """The bodies of the earlier parts, of a listing in several parts."""


Sink = Callable[[Reply | ServerFailure], None]


class Dial(Protocol):
    """Opens a connection, with TLS or without; raises `OSError`, and `HandshakeError` if the certificate is not accepted."""

    async def __call__(self, make: Callable[[], asyncio.Protocol], host: str, port: int) -> object: ...


async def dial_plainly(make: Callable[[], asyncio.Protocol], host: str, port: int) -> object:
    """Without TLS."""
    return await asyncio.get_running_loop().create_connection(make, host, port)


class ServerConnection:
    """Made by `connect`."""

    def __init__(self, secret: bytes, name: str) -> None:
        self.failure: str | None = None
        """Why it has ended, once it has."""
        self._loop = asyncio.get_running_loop()
        self._name = name
        handshake = ClientHandshake(secret, SERVICE, os.urandom(NONCE_BYTES))
        self.stream = FramedConnection(self, self._loop, handshake, gathers=True)
        self._sinks: dict[int, Sink] = {}
        self._parts: dict[int, list[bytes]] = {}
        self._ids = RequestIds()
        self._liveness = Liveness(patience=1, probes=PINGS)
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None

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
        request_id = self._ids.next(self._sinks)
        self._sinks[request_id] = sink
        self._send(request_id, request, body)
        if self._timer is None:
            self._liveness.reset()
            self.stream.heard = False
            self._timer = self._loop.call_later(PING_SECONDS, self._look_alive)
        return request_id

    def post(self, request: Request) -> None:
        """Says something that has no answer."""
        if self.failure is None:
            self._send(0, request, b"")

    def pause(self, paused: bool) -> None:
        """Stops reading for a while: the watch that listens has more than it can take."""
        self._paused = paused
        self.stream.pause_reading(paused=paused)

    def close(self, reason: str = "closed") -> None:
        """Ends it; everything outstanding fails."""
        self.stream.abort(ConnectionError(reason))
        self._ended(reason)

    async def greet(self) -> None:
        """Returns when both sides have proven themselves and the server has welcomed us; raises `NotDoneError`."""
        try:
            await self.stream.authenticated()
            reply = await self.ask(Hello(PROTOCOL_VERSION, self._name))
        except HandshakeError as error:
            raise StrangerError(str(error)) from error
        except (ServerFailure, ConnectionError, PenstockError) as error:
            raise NotDoneError(str(error)) from error
        if not isinstance(reply.answer, Welcome):
            raise NotDoneError(reply.answer.message if isinstance(reply.answer, Failed) else "no welcome")

    # -- called by the connection ----------------------------------------------------------------------------

    def frames_received(self, connection: FramedConnection, frames: Iterable[Frame]) -> None:
        """Answers arrived."""
        try:
            for frame in frames:
                self._take(frame)
        except msgspec.MsgspecError as error:
            connection.abort(
                ConnectionError(
                    f"the server at this address is not a metadata server of this cluster: {error}"
                )
            )

    def connection_lost(self, connection: FramedConnection, error: Exception | None) -> None:
        """Nothing more comes."""
        self._ended(str(error) if error is not None else "the server closed the connection")

    # -- inside ----------------------------------------------------------------------------------------------

    def _ended(self, reason: str) -> None:
        if self.failure is not None:
            return
        self.failure = reason
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        sinks, self._sinks = self._sinks, {}
        for sink in sinks.values():
            sink(PerhapsDoneError(reason))

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
        heard, self.stream.heard = self.stream.heard, False
        # While reading is paused here, the server cannot be heard.
        match self._liveness.look(heard=heard, waits=not self._paused):
            case Sign.PROBE:
                self._send(0, Ping(), b"")
            case Sign.GIVE_UP:
                self.close(f"the server sent nothing for {(PINGS + 2) * PING_SECONDS:g} s")
                return
            case Sign.LIVES:
                pass
        self._timer = self._loop.call_later(PING_SECONDS, self._look_alive)

    def _send(self, request_id: int, request: Request, body: Buffer) -> None:
        self.stream.write(encode_frame(request_id, encode_message(request), (body,) if body else ()))


async def connect(
    host: str, port: int, secret: bytes, name: str, dial: Dial = dial_plainly
) -> ServerConnection:
    """A connection over which both sides have proven that they know the secret; raises `NotDoneError`."""
    connection, reached = ServerConnection(secret, name), False
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await dial(lambda: connection.stream, host, port)
            reached = True
            await connection.greet()
    except TimeoutError as error:
        connection.close()
        silent = " (it sends nothing; does it expect TLS?)" if reached else ""
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
