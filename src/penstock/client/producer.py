"""A producer: gathers messages into batches, keeps several batches on their way, and waits when that is enough.

It holds no more than `in_flight` batches and `in_flight_bytes` that the server has not answered, plus the batch
being gathered. What fails is kept until somebody is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from itertools import islice
from types import TracebackType
from typing import Self

from penstock.client.duration import Duration, milliseconds
from penstock.client.failure import refused
from penstock.client.outgoing import Sendable, given_time_us, prepared
from penstock.client.parcel import FailedBatch, Parcel, ProducerError, Ticket
from penstock.client.route import Route
from penstock.client.stamping import StampPlan, plan_of
from penstock.model import limits
from penstock.model.errors import PenstockError
from penstock.wire.messages import QueueDescription

log = logging.getLogger("penstock.client")

TIMER_SLACK_SECONDS = 0.0005
"""A batch that is due this soon is sent now: another timer would cost more than it gains."""


class Producer:
    """Sends many messages quickly; made by `queue.producer()`."""

    __slots__ = (
        "__weakref__",
        "_backlog",
        "_batch_bytes",
        "_batch_messages",
        "_closed",
        "_failures",
        "_flying",
        "_flying_bytes",
        "_held",
        "_in_flight",
        "_in_flight_bytes",
        "_linger",
        "_marks",
        "_open",
        "_plan",
        "_planned_for",
        "_reading_us",
        "_resolving",
        "_room",
        "_route",
        "_stamp",
        "_timer",
    )

    def __init__(
        self,
        route: Route,
        *,
        batch_messages: int,
        batch_bytes: int,
        linger: Duration,
        in_flight: int,
        in_flight_bytes: int,
        stamp: bool | None = None,
    ) -> None:
        if not 1 <= batch_messages <= limits.BATCH_MESSAGES:
            raise refused(f"batch_messages is {batch_messages}: use 1 to {limits.BATCH_MESSAGES}")
        if in_flight < 1:
            raise refused(f"in_flight is {in_flight}: allow at least 1 batch")
        self._route = route
        self._batch_messages = batch_messages
        self._batch_bytes = max(1, min(batch_bytes, limits.BATCH_BYTES // 2))
        self._linger = milliseconds(linger, "linger") / 1000
        self._in_flight = in_flight
        self._in_flight_bytes = in_flight_bytes
        self._stamp = stamp
        self._plan: StampPlan | None = None
        self._planned_for: QueueDescription | None = None
        self._reading_us = route.stamping.reading_us
        self._marks = True
        """Whether it is noted when each message was made: where they are stamped, or nobody knows that yet."""
        self._open = Parcel(self._finished)
        self._backlog: deque[Parcel] = deque()
        self._flying: dict[Parcel, None] = {}
        self._flying_bytes = 0
        self._failures: list[FailedBatch] = []
        self._room: list[asyncio.Future[None]] = []
        self._timer: asyncio.Handle | None = None
        self._resolving = False
        self._closed = False
        self._held = False
        route.link.background.add(self)

    # -- sending ---------------------------------------------------------------------------------------------

    async def send(self, message: Sendable) -> Ticket:
        """Takes a message; waits only for room. Await the ticket to know that it is stored.

        Raises `ProducerError` when earlier messages failed and nobody has been told yet; then this message has
        not been taken.
        """
        if self._held:
            await self._admission()
        if type(message) is not bytes or self._planned_for is None:
            return self._put(*prepared(message))
        # `_put` once more, without the call: at a million messages a second it is a tenth of the time.
        parcel = self._open
        messages = parcel.messages
        size = parcel.bytes + len(message)
        if size > self._batch_bytes:
            return self._put(message, len(message))
        parcel.bytes = size
        messages.append(message)
        if self._marks:
            parcel.readings_us.append(self._reading_us())
        count = len(messages)
        if count >= self._batch_messages:
            self._seal()
        elif count == 1:
            self._start_linger(parcel)
        return Ticket(parcel, count - 1)

    async def send_many(self, messages: Iterable[Sendable]) -> None:
        """Takes any number of messages, in order; several times quicker than `send` for each."""
        source = iter(messages)
        while chunk := list(islice(source, self._batch_messages - len(self._open.messages))):
            if self._held:
                await self._admission()
            size = sum(map(len, chunk)) if set(map(type, chunk)) == {bytes} else None  # type: ignore[arg-type]
            if size is not None and self._open.bytes + size <= self._batch_bytes:
                self._put_all(chunk, size)
                continue
            for message in chunk:
                if self._held:
                    await self._admission()
                self._put(*prepared(message))

    async def flush(self) -> None:
        """Returns when everything taken so far is stored; raises `ProducerError` with what was not."""
        if self._open.messages:
            self._seal()
        for parcel in (*self._flying, *self._backlog):
            await parcel.finished()
        self._raise_failures()

    def take_failures(self) -> list[FailedBatch]:
        """What failed since somebody was last told, and forgets it."""
        failures, self._failures = self._failures, []
        self._hold()
        return failures

    async def close(self) -> None:
        """Flushes; takes no more messages."""
        self._closed = True
        self._hold()
        await self.flush()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.close()
        elif isinstance(error, Exception):
            try:
                await self.close()
            except PenstockError as failure:  # the error that is on its way says more
                log.warning("while leaving a producer because of an error: %s", failure)
        else:  # cancelled: what was taken is sent, but not waited for
            self._closed = True
            self._hold()
            if self._open.messages:
                self._seal()

    # -- inside ----------------------------------------------------------------------------------------------

    async def _admission(self) -> None:
        """Waits for room; raises when the producer is closed or something failed."""
        while True:
            if self._closed:
                raise refused("this producer is closed")
            self._raise_failures()
            if not self._backlog:
                return
            room: asyncio.Future[None] = self._route.link.loop.create_future()
            self._room.append(room)
            await room

    def _hold(self) -> None:
        """Decides whether senders go to `_admission` first; those who wait there look again."""
        self._held = self._closed or bool(self._backlog or self._failures)
        if self._closed or self._failures or not self._backlog:
            room, self._room = self._room, []
            for waiter in room:
                if not waiter.done():
                    waiter.set_result(None)

    def _raise_failures(self) -> None:
        if self._failures:
            raise ProducerError(self._route.name, self.take_failures())

    def _put(self, message: Sendable, size: int) -> Ticket:
        parcel = self._open
        messages = parcel.messages
        if parcel.bytes + size > self._batch_bytes and messages:
            self._seal()
            parcel = self._open
            messages = parcel.messages
        messages.append(message)
        if self._marks:
            self._mark(parcel, 1)
        parcel.bytes += size
        count = len(messages)
        if count >= self._batch_messages:
            self._seal()
        elif count == 1:
            self._start_linger(parcel)
        return Ticket(parcel, count - 1)

    def _mark(self, parcel: Parcel, messages: int) -> None:
        """Notes that messages were made now, unless it has turned out that the queue does not go by that."""
        if self._planned_for is None and (description := self._route.description) is not None:
            self._planned(description)
        if self._marks:
            parcel.readings_us += [self._reading_us()] * messages

    def _planned(self, description: QueueDescription) -> StampPlan | None:
        """How messages are stamped, looked up anew when the queue's settings were."""
        if description is not self._planned_for:
            self._planned_for = description
            self._plan = plan_of(description.settings, self._stamp)
            self._marks = self._plan is not None
        return self._plan

    def _put_all(self, messages: list[Sendable], size: int) -> None:
        parcel = self._open
        begun = bool(parcel.messages)
        parcel.messages += messages
        if self._marks:
            self._mark(parcel, len(messages))
        parcel.bytes += size
        if len(parcel.messages) >= self._batch_messages:
            self._seal()
        elif not begun:
            self._start_linger(parcel)

    def _start_linger(self, parcel: Parcel) -> None:
        """One timer serves all batches, one after the other: most are full before it fires."""
        loop = self._route.link.loop
        parcel.due = loop.time() + self._linger
        if self._timer is None:
            self._timer = (
                loop.call_at(parcel.due, self._lingered) if self._linger else loop.call_soon(self._lingered)
            )

    def _lingered(self) -> None:
        self._timer = None
        parcel = self._open
        if not parcel.messages:
            return
        loop = self._route.link.loop
        if parcel.due > loop.time() + TIMER_SLACK_SECONDS:
            self._timer = loop.call_at(parcel.due, self._lingered)
        else:
            self._seal()

    def _seal(self) -> None:
        self._backlog.append(self._open)
        self._open = Parcel(self._finished)
        self._pump()

    def _pump(self) -> None:
        """Sends waiting batches while they fit into what may be on its way."""
        self._send_waiting()
        self._hold()

    def _send_waiting(self) -> None:
        route = self._route
        while self._backlog and self._has_room(self._backlog[0]):
            incarnation, description = route.incarnation, route.description
            plan = None if description is None else self._planned(description)
            if incarnation is None or description is None or not self._can_stamp(plan, self._backlog[0]):
                if not self._resolving:
                    self._resolving = True
                    route.link.background.run(self._prepare(plan))
                return
            number = incarnation.take_number()
            if number is None:
                incarnation.number_free().add_done_callback(lambda _: self._pump())
                return
            parcel = self._backlog.popleft()
            self._flying[parcel] = None
            self._flying_bytes += parcel.bytes
            parcel.start(route, incarnation, number, plan)

    def _has_room(self, parcel: Parcel) -> bool:
        if not self._flying:
            return True
        return (
            len(self._flying) < self._in_flight and self._flying_bytes + parcel.bytes <= self._in_flight_bytes
        )

    def _can_stamp(self, plan: StampPlan | None, parcel: Parcel) -> bool:
        if plan is None or self._route.stamping.is_ready(plan):
            return True
        return all(given_time_us(message) is not None for message in parcel.messages)

    async def _prepare(self, plan: StampPlan | None) -> None:
        """Sees to it that the queue is known, and the time if its messages are stamped with it."""
        try:
            await self._route.resolve()
            if plan is not None:
                await self._route.stamping.prepare(self._route.name, plan)
        except PenstockError as error:
            failed, self._backlog = self._backlog, deque()
            for parcel in failed:
                parcel.give_up(error)
        finally:
            self._resolving = False
        self._pump()

    def _finished(self, parcel: Parcel) -> None:
        """A batch is stored, or has failed for good."""
        if parcel in self._flying:
            del self._flying[parcel]
            self._flying_bytes -= parcel.bytes
        if parcel.error is not None:
            self._failures.append(FailedBatch(parcel.error, parcel.messages))
        self._pump()
