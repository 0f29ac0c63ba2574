"""A subscription: messages pushed by the server within the credit it is given, buffered until they are wanted."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import NamedTuple

from penstock.client.delivered import DeliveredMessages, Message
from penstock.client.failure import refused
from penstock.client.heartbeat import Heartbeat
from penstock.client.route import Route
from penstock.client.settlement import Action, Settler
from penstock.client_core.call import Stream
from penstock.client_core.credit import Credit
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import AddCredit, Delivery, Subscribe

log = logging.getLogger("penstock.client")

CLOSE_SECONDS = 5.0
_GIVE_BACK = Action("release")


class Terms(NamedTuple):
    """What a consumer asks for."""

    credit: int
    batch_messages: int
    visibility_timeout_ms: int | None
    heartbeat: bool

    def check(self) -> None:
        """Raises with the argument that cannot be."""
        if self.credit < 1:
            raise refused(f"credit is {self.credit}: allow the server at least 1 message")
        if not 1 <= self.batch_messages <= limits.RECEIVE_MESSAGES:
            raise refused(f"batch_messages is {self.batch_messages}: use 1 to {limits.RECEIVE_MESSAGES}")


class Subscription(Stream):
    """The state of one push consumer; whoever iterates takes deliveries out of it."""

    __slots__ = (
        "__weakref__",
        "_buffer",
        "_credit",
        "_current",
        "_error",
        "_heartbeat",
        "_incarnation",
        "_place",
        "_route",
        "_settler",
        "_started",
        "_starting",
        "_terms",
        "_waiters",
        "closed",
    )

    def __init__(self, route: Route, settler: Settler, terms: Terms) -> None:
        super().__init__()
        terms.check()
        self._route = route
        self._settler = settler
        self._terms = terms
        self._incarnation = route.incarnation
        self._buffer: deque[DeliveredMessages] = deque()
        self._credit = Credit(terms.credit)
        self._current: list[Message] = []
        self._place = 0
        """The delivery that is handed out message by message, and how far that has come."""
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._error: PenstockError | None = None
        self.closed = False
        """Whether it has ended, or is about to."""
        self._started = False
        self._starting: asyncio.Task[None] | None = None
        self._heartbeat: Heartbeat | None = None

    # -- taking ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Subscribes, once, however many ask; after a failure the next one tries again."""
        if self._started:
            return
        if self._starting is None:
            self._starting = self._route.link.loop.create_task(self._start())
            self._starting.add_done_callback(self._start_ended)
        await asyncio.shield(self._starting)

    def _start_ended(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        self._started = not task.cancelled() and task.exception() is None

    async def _start(self) -> None:
        route = self._route
        self._incarnation = await route.resolve()
        timeout_ms = self._terms.visibility_timeout_ms
        if timeout_ms is None:
            description = route.description or await route.describe()
            timeout_ms = description.settings.visibility_timeout_ms
        if self._terms.heartbeat:
            self._heartbeat = Heartbeat(route.link, self._settler, timeout_ms)
        else:
            self._credit.lease_seconds = timeout_ms / 1000
        if not self.closed:
            route.link.background.add(self)
            route.link.open_stream(self)

    async def next(self) -> DeliveredMessages | None:
        """The next delivery; None when closed. Raises what ended the subscription."""
        while await self._open():
            if (delivery := self._take()) is not None:
                return delivery
            await self._arrival()
        return None

    async def next_message(self) -> Message | None:
        """The next message; None when closed. Raises what ended the subscription."""
        while await self._open():
            if self._place < len(self._current):
                message = self._current[self._place]
                if not self._expired(message.delivery):
                    self._place += 1
                    self.handed_out(1)
                    return message
                self.handed_out(len(self._current) - self._place)
            delivery = self._take()
            self._current, self._place = [] if delivery is None else list(delivery), 0
            if delivery is None:
                await self._arrival()
            else:
                self._wake(len(delivery) - 1)
        return None

    async def _open(self) -> bool:
        """Whether there is any use in waiting for messages; raises when something ended the subscription."""
        if not self._started and not self.closed:
            await self.start()
        if self._error is not None and not self._buffer and self._place >= len(self._current):
            raise self._error
        return not self.closed

    def _take(self) -> DeliveredMessages | None:
        """The first delivery that is still good, out of the buffer."""
        while self._buffer:
            delivery = self._buffer.popleft()
            self._credit.left(len(delivery))
            if not self._expired(delivery):
                return delivery
            self.handed_out(len(delivery))
        return None

    async def _arrival(self) -> None:
        waiter: asyncio.Future[None] = self._route.link.loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake(1)  # the wake-up was ours to take, and we cannot
            raise

    def _expired(self, delivery: DeliveredMessages) -> bool:
        """Whether the lease ended while the messages waited here: the server hands them out again."""
        return self._credit.is_over(delivery.lease.arrived, self._route.link.loop.time())

    def handed_out(self, messages: int) -> None:
        """The user has them; half the credit used up is given anew."""
        if given := self._credit.handed_out(messages):
            self._route.link.post(AddCredit(self.request_id, given))

    def _wake(self, waiters: int) -> None:
        while self._waiters and waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                waiters -= 1

    # -- the link's side -------------------------------------------------------------------------------------

    def opening(self) -> Subscribe:
        """Asks for as much as there is room for beside what waits here already."""
        assert self._incarnation is not None
        terms = self._terms
        return Subscribe(
            self._incarnation.queue_id,
            self._credit.opening(),
            terms.batch_messages,
            terms.visibility_timeout_ms,
        )

    def delivered(self, delivery: Delivery, body: memoryview) -> None:
        """Keeps messages until they are asked for."""
        loop = self._route.link.loop
        messages = DeliveredMessages(self._route.name, self._settler, delivery, body, loop.time())
        if not len(messages):
            return
        if self._heartbeat is not None:
            self._heartbeat.keep(messages.lease)
        self._buffer.append(messages)
        self._credit.delivered(len(messages))
        if self._waiters and not self.closed:
            self._wake(1)

    def failed(self, error: PenstockError) -> None:
        """Looks whether the queue was made again; else whoever iterates is told."""
        if error.code is ErrorCode.QUEUE_NOT_FOUND and not self.closed:
            self._route.link.background.run(self._find_again(error))
        else:
            self._end(error)

    async def _find_again(self, error: PenstockError) -> None:
        assert self._incarnation is not None
        try:
            present = await self._route.refresh(self._incarnation)
            if present is None:
                self._end(error)
            elif not self.closed:
                self._incarnation = present
                self._route.link.open_stream(self)
        except PenstockError as another:
            self._end(another)

    def _end(self, error: PenstockError) -> None:
        self._error = error
        self._wake(len(self._waiters))

    # -- ending ----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Unsubscribes and gives back what nobody took; a server that does not answer is not waited for long."""
        if self.closed:
            return
        self.closed = True
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._route.link.close_stream(self)
                await self._give_back()
        except (PenstockError, TimeoutError) as error:
            log.warning("messages of %r come back when their lease ends: %s", self._route.name, error)
        finally:
            self._wake(len(self._waiters))

    async def _give_back(self) -> None:
        left = [(message.delivery.lease, message.sequence) for message in self._current[self._place :]]
        leases = [delivery.lease for delivery in self._buffer]
        self._current, self._place = [], 0
        self._buffer.clear()
        self._credit.left(self._credit.buffered)
        if self._route.link.connected:
            await asyncio.gather(
                self._settler.all_of(_GIVE_BACK, leases), self._settler.chosen(_GIVE_BACK, left)
            )
