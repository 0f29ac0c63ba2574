"""The link: a connection to a server that reconnects by itself.

A request stays in the table (`client_core.link_table`) until it is answered. When the connection is lost, a new one is
opened, with growing pauses, and everything in the table is sent again, in order; the server recognizes what it has already
done. A request fails for lack of a connection only when there was none for `timeout` seconds.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from weakref import WeakSet

import msgspec

from penstock.client.connection.address import Address
from penstock.client.connection.background import Background
from penstock.client.connection.call import FutureCall, expecting
from penstock.client.connection.failure import Unreached, closed
from penstock.client.connection.greeting import connect_and_greet
from penstock.client_core.call import Call, Stream, unexpected
from penstock.client_core.link_table import Again, FinalRefusal, LinkTable, Nobody, Stopping, outlived
from penstock.client_core.queue_sender import QueueSender
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.streams.framed import FramedConnection
from penstock.wire.credentials import Credentials
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.liveness import Sign
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
from penstock.wire.refusals import error_of

A = TypeVar("A")


logger = logging.getLogger("penstock.client")

ATTEMPT_SECONDS = 10.0
"""One attempt to connect takes no longer, so that a silent host does not use up the whole timeout."""
SILENCE = "no answer"


class Link:
    """Requests in, answers out, over the present connection."""

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
        self.welcome: Welcome | None = None
        """The last welcome of the server."""
        self.background = Background(loop)
        self.senders: WeakSet[QueueSender] = WeakSet()
        """The senders that hold batches back; they are told when the link ends."""
        self._address = address
        self._name = name
        self._credentials = credentials
        self._tls = tls
        self.dice = random.Random()
        """For pauses."""
        self._table = LinkTable(timeout, self.dice)
        self._connection: FramedConnection | None = None
        self._seeking: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        """While connected: looks whether the peer lives. Without: fails what has waited too long."""
        self._closed = False
        self._reason = SILENCE
        self._once = False
        """Whether the first attempt is the only one, while it opens."""

    @property
    def is_secure(self) -> bool:
        """Whether the connection uses TLS."""
        return self._tls is not None

    @property
    def timeout(self) -> float:
        """How many seconds a request waits for a connection."""
        return self._table.timeout

    # -- asking ----------------------------------------------------------------------------------------------

    def start(self, call: Call, message: Request, body: Sequence[Buffer] = ()) -> int:
        """Sends a request, now or as soon as there is a connection; `call` gets the answer. Returns the request's id."""
        call.message, call.body = message, body
        return self.transmit(call)

    def transmit(self, call: Call) -> int:
        """Sends a call that makes its own request; see `start`."""
        if self._closed:
            raise closed()
        if call.has_outlived(time.time()):
            raise outlived()
        connection = self._connection
        request_id = self._table.enter(call, self.loop.time(), connected=connection is not None)
        if connection is not None:
            connection.write(_frame(request_id, call))
        else:
            self._seek()
        return request_id

    def ask(self, message: Request, kind: type[A], *, resend: bool = True) -> asyncio.Future[A]:
        """Sends a request and returns its answer unchanged."""
        call = FutureCall(self.loop, expecting(kind), resend=resend)
        self.start(call, message)
        return call.future

    def post(self, message: Request) -> None:
        """Sends a request that has no answer; without a connection it is dropped."""
        if self._connection is not None:
            self._connection.write(encode_frame(self._table.new_request_id(), encode_message(message)))

    def open_stream(self, stream: Stream) -> None:
        """Opens a subscription, now and again on every later connection."""
        if self._closed:
            raise closed()
        self._table.open(stream, self.loop.time(), connected=self._connection is not None)
        if self._connection is not None:
            self._open_on(self._connection, stream)
        else:
            self._seek()

    async def close_stream(self, stream: Stream) -> None:
        """Ends a subscription; when this returns, no delivery follows."""
        try:
            if self._connection is not None and stream.request_id in self._table.streams:
                # Not sent again: a subscription does not outlive its connection.
                await self.ask(Unsubscribe(stream.request_id), Done, resend=False)
        except PenstockError:
            pass  # then it is gone, one way or another
        finally:
            self._table.streams.pop(stream.request_id, None)

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
        """Closes everything that depends on the link, then the connection; requests that still wait fail."""
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
        self._table.fail_all(closed())
        for sender in list(self.senders):
            sender.not_found(closed())

    # -- answers ---------------------------------------------------------------------------------------------

    def frames_received(self, connection: FramedConnection, frames: Iterable[Frame]) -> None:
        """Called by the connection: hands every answer to who waits for it."""
        self._table.heard()
        calls = self._table.calls
        stopping = False
        for request_id, head, body, _ in frames:
            try:
                answer = decode_answer(head)
            except msgspec.DecodeError as error:
                connection.abort(PenstockError(ErrorCode.BAD_FRAME, f"an invalid answer: {error}"))
                return
            call = calls.get(request_id)
            if isinstance(answer, Failed):
                stopping = self._refused(connection, request_id, answer) or stopping
            elif call is not None:
                del calls[request_id]
                call.succeed(answer, body)
            else:
                self._delivered(request_id, answer, body)
        if stopping:
            connection.abort(PenstockError(ErrorCode.SHUTTING_DOWN, "the server is stopping"))

    def _refused(self, connection: FramedConnection, request_id: int, answer: Failed) -> bool:
        """Carries out what the table says about a refusal; whether the connection is to end for it."""
        match self._table.refused(request_id, answer, self.loop.time()):
            case FinalRefusal(whom, error):
                if isinstance(whom, Call):
                    whom.fail(error)
                else:
                    whom.failed(error)
            case Again(whom, seconds):
                self.loop.call_later(seconds, self._ask_again, connection, request_id, whom)
            case Stopping(ends_connection):
                return ends_connection
            case Nobody():
                if request_id == 0:
                    logger.warning(
                        "%(address)s refused the connection: %(error)s",
                        {"address": self._address, "error": error_of(answer)},
                    )
        return False

    def _delivered(self, request_id: int, answer: Answer, body: memoryview) -> None:
        stream = self._table.streams.get(request_id)
        if stream is None:
            return
        if isinstance(answer, Delivery):
            stream.slowdown = None
            stream.delivered(answer, body)
        else:
            del self._table.streams[request_id]
            stream.failed(unexpected(answer))

    def _ask_again(self, connection: FramedConnection, request_id: int, whom: Call | Stream) -> None:
        """The pause of what was refused is over."""
        if self._connection is not connection:
            return  # on a later connection everything that waits has been sent already
        if isinstance(whom, Call):
            if self._table.asks_again(request_id, whom):
                connection.write(_frame(request_id, whom))
        elif self._table.streams.get(request_id) is whom:
            self._open_on(connection, whom)

    # -- connecting ------------------------------------------------------------------------------------------

    def _seek(self) -> None:
        """Looks for a connection, if that is not under way; there is always a timer for what waits for it."""
        if self._seeking is None and not self._closed:
            self._seeking = self.loop.create_task(self._connect(), name="penstock connects")
        if self._watch is None:
            self._give_up_on_the_late()

    async def _connect(self) -> None:
        """Tries until there is a connection or no request waits for one."""
        try:
            if first := self._table.first_pause():
                await asyncio.sleep(first)
            while self._table:
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
                    refused = error if isinstance(error, PenstockError) else None
                    pause = self._table.attempt_failed(refused, self._reason, once=self._once)
                    if pause is not None:
                        await asyncio.sleep(pause)
        finally:
            self._seeking = None

    def _connected(self, connection: FramedConnection, welcome: Welcome) -> None:
        """Sends everything that waits, in the order it was asked in."""
        self.welcome = welcome
        self._connection = connection
        self._look_again_in(self.timeout / 2, self._look_alive)
        for request_id, waiting in self._table.connected(time.time()):
            if isinstance(waiting, Call):
                connection.write(_frame(request_id, waiting))
            else:
                self._open_on(connection, waiting)

    def _give_up_on_the_late(self) -> None:
        """Fails what has waited for a connection for the whole timeout, and looks again when the next has."""
        self._stop_watching()
        self._table.give_up(self.loop.time(), self._reason)
        soonest = self._table.soonest_deadline()
        if soonest is not None and self._connection is None:
            self._look_again_in(max(0.001, soonest - self.loop.time()), self._give_up_on_the_late)

    def _look_again_in(self, seconds: float, look: Callable[[], None]) -> None:
        self._stop_watching()
        self._watch = self.loop.call_later(seconds, look)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _open_on(self, connection: FramedConnection, stream: Stream) -> None:
        connection.write(encode_frame(stream.request_id, encode_message(stream.opening())))

    # -- losing the connection -------------------------------------------------------------------------------

    def connection_lost(self, connection: FramedConnection, error: Exception | None) -> None:
        """Called by the connection: sorts out what can be asked again, and looks for a new one."""
        self._connection = None
        self._reason = str(error) if error is not None else "the server closed the connection"
        self._stop_watching()
        if self._closed:
            return
        self._table.connection_lost(self.loop.time(), self._reason)
        if self._table:
            logger.warning(
                "lost the connection to %(address)s (%(reason)s); reconnecting",
                {"address": self._address, "reason": self._reason},
            )
            self._seek()

    def _look_alive(self) -> None:
        """Pings a peer that is silent while requests wait; if it stays silent, ends the connection."""
        connection = self._connection
        if connection is None:
            return
        self._look_again_in(self.timeout / 2, self._look_alive)
        heard, connection.heard = connection.heard, False
        match self._table.look_alive(heard=heard):
            case Sign.PROBE:
                self.post(Ping())
            case Sign.GIVE_UP:
                connection.abort(TimeoutError(f"silent for {self.timeout:g} s"))
            case Sign.LIVES:
                pass


def _frame(request_id: int, call: Call) -> list[Buffer]:
    call.writes(time.time())  # not the loop's time, which stands still while the computer sleeps
    return encode_frame(request_id, encode_message(call.request()), call.body)
