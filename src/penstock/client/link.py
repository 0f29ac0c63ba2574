"""The link: a connection to a server that mends itself.

A request stays in the table, frame and all, until it is answered. When the connection breaks, a new one is made
with growing pauses and the table is sent again, in order; what the server did already it recognises. A request
fails for want of a connection only when there was none for `timeout` seconds.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from penstock.client.address import Address
from penstock.client.background import Background
from penstock.client.backoff import Slowdown, delays
from penstock.client.call import Call, FutureCall, Stream, expecting, unexpected
from penstock.client.connection import Connection
from penstock.client.failure import Unreached, closed, error_of
from penstock.client.greeting import connect_and_greet
from penstock.client.waiting import Waiting
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.credentials import Credentials
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.messages import (
    Answer,
    Delivery,
    Done,
    Failed,
    Ping,
    Request,
    Unsubscribe,
    Welcome,
    decode_answer,
    encode_message,
)

A = TypeVar("A")


log = logging.getLogger("penstock.client")

ATTEMPT_SECONDS = 10.0
"""One attempt to connect takes no longer, so that a silent host does not use up the whole timeout."""
SILENCE = "no answer"
FINAL = {
    *(ErrorCode.UNSUPPORTED_VERSION, ErrorCode.BAD_REQUEST),
    *(ErrorCode.UNKNOWN_REQUEST, ErrorCode.UNAUTHENTICATED),
}
"""Refusals of the greeting that no further attempt would change."""


class Link:
    """Requests in, answers out, over whichever connection works at the moment."""

    def __init__(
        self,
        address: Address,
        timeout: float,
        name: str,
        loop: asyncio.AbstractEventLoop,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.loop = loop
        self.timeout = timeout
        self.welcome: Welcome | None = None
        """What the server last greeted with."""
        self.background = Background(loop)
        self._address = address
        self._name = name
        self._credentials = credentials
        self._tls = tls
        self._waiting = Waiting(timeout)
        self._connection: Connection | None = None
        self._seeking: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        """While connected: looks whether the peer lives. Without: fails what has waited too long."""
        self._probed = False
        self._closed = False
        self._reason = SILENCE
        self._once = False
        """Whether the first attempt is the only one, while it opens."""
        self._pauses = delays(random.Random())
        self._proven = True
        """Whether the last connection was good for something; after one that was not, wait before the next."""

    # -- asking ----------------------------------------------------------------------------------------------

    def start(self, call: Call, message: Request, body: Sequence[Buffer] = ()) -> int:
        """Sends a request, now or as soon as there is a connection; `call` gets the answer. Returns the request's id."""
        if self._closed:
            raise closed()
        request_id = self._waiting.new_request_id()
        call.frame = encode_frame(request_id, encode_message(message), body)
        self._waiting.calls[request_id] = call
        if self._connection is not None:
            self._connection.write(call.frame)
        else:
            call.deadline = self.loop.time() + self.timeout
            self._seek()
        return request_id

    def ask(self, message: Request, kind: type[A], *, resend: bool = True) -> asyncio.Future[A]:
        """Sends a request whose answer is wanted as it is."""
        call = FutureCall(self.loop, expecting(kind), resend=resend)
        self.start(call, message)
        return call.future

    def post(self, message: Request) -> None:
        """Sends a request that has no answer; without a connection it is dropped."""
        if self._connection is not None:
            self._connection.write(encode_frame(self._waiting.new_request_id(), encode_message(message)))

    def open_stream(self, stream: Stream) -> None:
        """Opens a subscription, now and again on every later connection."""
        if self._closed:
            raise closed()
        stream.request_id = self._waiting.new_request_id()
        self._waiting.streams[stream.request_id] = stream
        if self._connection is not None:
            self._open_on(self._connection, stream)
        else:
            stream.deadline = self.loop.time() + self.timeout
            self._seek()

    async def close_stream(self, stream: Stream) -> None:
        """Ends a subscription; when this returns, no delivery follows."""
        try:
            if self._connection is not None and stream.request_id in self._waiting.streams:
                # Not sent again: a subscription does not outlive its connection.
                await self.ask(Unsubscribe(stream.request_id), Done, resend=False)
        except PenstockError:
            pass  # then it is gone, one way or another
        finally:
            self._waiting.streams.pop(stream.request_id, None)

    @property
    def connected(self) -> bool:
        """Whether there is a connection right now."""
        return self._connection is not None

    @property
    def congested(self) -> bool:
        """Whether senders should await `room` first."""
        return self._connection is not None and self._connection.congested

    async def room(self) -> None:
        """Returns when the connection takes more bytes, or there is none."""
        if self._connection is not None:
            await self._connection.room()

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self, within: float | None = None, *, once: bool = False) -> None:
        """Returns when the server has answered for the first time; raises when it cannot be reached.

        `within`: for how many seconds it is sought, instead of the timeout; `once`: in one attempt.
        """
        self._once = once
        try:
            async with asyncio.timeout(within):
                await self.ask(Ping(), Done)
        except (TimeoutError, PenstockError) as error:
            if isinstance(error, PenstockError) and error.code is not ErrorCode.UNREACHABLE:
                raise
            waited = self._reason == SILENCE or not once
            seconds = self.timeout if within is None else within
            raise Unreached(self._address, seconds if waited else None, self._reason) from None
        self._once = False

    async def close(self) -> None:
        """Finishes what depends on the link, then ends the connection; whatever still waits fails."""
        if self._closed:
            return
        errors = await self.background.close()
        self._end()
        if errors:
            raise errors[0]

    def _end(self) -> None:
        self._closed = True
        self._stop_watching()
        if self._seeking is not None:
            self._seeking.cancel()
        if self._connection is not None:
            self._connection.close()
        self._waiting.fail_all(closed())

    # -- answers ---------------------------------------------------------------------------------------------

    def frames_received(self, connection: Connection, frames: Iterable[Frame]) -> None:
        """Called by the connection: hands every answer to who waits for it."""
        if not self._proven:
            self._proven = True
            self._pauses = delays(random.Random())
        calls = self._waiting.calls
        stopping = False
        for request_id, head, body in frames:
            try:
                answer = decode_answer(head)
            except msgspec.DecodeError as error:
                connection.abort(PenstockError(ErrorCode.BAD_FRAME, f"an answer that is none: {error}"))
                return
            call = calls.get(request_id)
            if call is None:
                self._answered_no_call(connection, request_id, answer, body)
            elif not isinstance(answer, Failed):
                del calls[request_id]
                call.succeed(answer, body)
            elif answer.code == ErrorCode.SHUTTING_DOWN and call.resend:
                stopping = True  # it keeps its place in the table, for the server that comes after
            elif (
                answer.code == ErrorCode.THROTTLED and (pause := self._pause(call, self.timeout)) is not None
            ):
                self.loop.call_later(pause, self._ask_again, connection, request_id, call)
            else:
                del calls[request_id]
                call.fail(error_of(answer))
        if stopping:
            connection.abort(PenstockError(ErrorCode.SHUTTING_DOWN, "the server is stopping"))

    def _answered_no_call(
        self, connection: Connection, request_id: int, answer: Answer, body: memoryview
    ) -> None:
        stream = self._waiting.streams.get(request_id)
        if stream is None:
            if request_id == 0 and isinstance(answer, Failed):
                log.warning("%s refuses this connection: %s", self._address, error_of(answer))
        elif isinstance(answer, Delivery):
            stream.slowdown = None
            stream.delivered(answer, body)
        elif isinstance(answer, Failed) and answer.code == ErrorCode.THROTTLED:
            pause = self._pause(stream, math.inf)  # a subscription waits for messages however long it takes
            assert pause is not None
            self.loop.call_later(pause, self._open_again, connection, stream)
        elif isinstance(answer, Failed) and answer.code == ErrorCode.SHUTTING_DOWN:
            pass  # the connection ends in a moment, and the stream is opened again on the next one
        else:
            del self._waiting.streams[request_id]
            stream.failed(error_of(answer) if isinstance(answer, Failed) else unexpected(answer))

    # -- within limits ---------------------------------------------------------------------------------------

    def _pause(self, refused: Call | Stream, patience: float) -> float | None:
        """How long what a limit refused is to wait; nothing was done, so anything may be asked again."""
        now = self.loop.time()
        if refused.slowdown is None:
            refused.slowdown = Slowdown(now + patience, random.Random())
        return refused.slowdown.pause(now)

    def _ask_again(self, connection: Connection, request_id: int, call: Call) -> None:
        # On a later connection everything that waits has been sent already.
        if self._connection is not connection or self._waiting.calls.get(request_id) is not call:
            return
        if call.abandoned():
            del self._waiting.calls[request_id]
        else:
            connection.write(call.frame)

    def _open_again(self, connection: Connection, stream: Stream) -> None:
        if self._connection is connection and self._waiting.streams.get(stream.request_id) is stream:
            self._open_on(connection, stream)

    # -- connecting ------------------------------------------------------------------------------------------

    def _seek(self) -> None:
        """Looks for a connection, if that is not under way; there is always a timer for what waits for it."""
        if self._seeking is None and not self._closed:
            self._seeking = self.loop.create_task(self._connect(), name="penstock connects")
        if self._watch is None:
            self._give_up_on_the_late()

    async def _connect(self) -> None:
        """Tries until there is a connection or nobody waits for one."""
        try:
            if not self._proven:
                await asyncio.sleep(next(self._pauses))
            while self._waiting:
                try:
                    greeted = await connect_and_greet(
                        self._address,
                        self._name,
                        self._credentials,
                        ATTEMPT_SECONDS,
                        self,
                        self.loop,
                        must_prove=self.welcome is not None and bool(self.welcome.proof),
                        tls=self._tls,
                    )
                    self._connected(*greeted)
                    return
                except (OSError, PenstockError) as error:
                    self._reason = str(error) or type(error).__name__
                    if isinstance(error, PenstockError) and error.code in FINAL:
                        self._waiting.fail_all(error)
                    elif self._once:
                        self._waiting.fail_all(PenstockError(ErrorCode.UNREACHABLE, self._reason))
                if self._waiting:
                    await asyncio.sleep(next(self._pauses))
        finally:
            self._seeking = None

    def _connected(self, connection: Connection, welcome: Welcome) -> None:
        """Sends everything that waits, in the order it was asked in."""
        self.welcome = welcome
        self._connection = connection
        self._proven = False
        self._probed = False
        self._look_again_in(self.timeout / 2, self._look_alive)
        for call in self._waiting.calls.values():
            connection.write(call.frame)
        for stream in self._waiting.streams.values():
            self._open_on(connection, stream)

    def _give_up_on_the_late(self) -> None:
        """Fails what has waited for a connection for the whole timeout, and looks again when the next has."""
        self._stop_watching()
        self._waiting.give_up(self.loop.time(), self._reason)
        soonest = self._waiting.soonest_deadline()
        if soonest is not None and self._connection is None:
            self._look_again_in(max(0.001, soonest - self.loop.time()), self._give_up_on_the_late)

    def _look_again_in(self, seconds: float, look: Callable[[], None]) -> None:
        self._stop_watching()
        self._watch = self.loop.call_later(seconds, look)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _open_on(self, connection: Connection, stream: Stream) -> None:
        connection.write(encode_frame(stream.request_id, encode_message(stream.opening())))

    # -- losing the connection -------------------------------------------------------------------------------

    def connection_lost(self, connection: Connection, error: Exception | None) -> None:
        """Called by the connection: sorts out what can be asked again, and looks for a new one."""
        self._connection = None
        self._reason = str(error) if error is not None else "the server closed the connection"
        self._stop_watching()
        if self._closed:
            return
        self._waiting.connection_lost(self.loop.time(), self._reason)
        if self._waiting:
            log.warning("lost the connection to %s (%s); connecting again", self._address, self._reason)
            self._seek()

    def _look_alive(self) -> None:
        """A peer that is silent while we wait is asked whether it is there; silent again, it is given up."""
        connection = self._connection
        if connection is None:
            return
        self._look_again_in(self.timeout / 2, self._look_alive)
        if connection.heard or not self._waiting:
            connection.heard = False
            self._probed = False
        elif self._probed:
            connection.abort(TimeoutError(f"silent for {self.timeout:g} s"))
        else:
            self._probed = True
            self.post(Ping())
