"""A producer: gathers messages into batches, sends several batches at once, and waits when that is enough.

`client_core.gathering` makes its decisions; here are the event loop, the queue's description and the stamps.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import islice
from types import TracebackType
from typing import Self

from penstock.client.connection.failure import refused
from penstock.client.connection.route import Route
from penstock.client.duration import Duration, milliseconds
from penstock.client.produce.outgoing import Sendable, given_time_us, prepared
from penstock.client.produce.outgoing_batch import OutgoingBatch, ProducerError, Ticket
from penstock.client.produce.stamping import StampPlan, plan_of
from penstock.client_core.gathering import Gathering
from penstock.model import limits
from penstock.model.errors import PenstockError
from penstock.wire.messages import QueueDescription

logger = logging.getLogger("penstock.client")


class Producer(Gathering[OutgoingBatch]):
    """Sends many messages quickly; made by `queue.producer()`."""

    __slots__ = (
        "__weakref__",
        "_marks",
        "_plan",
        "_planned_for",
        "_reading_us",
        "_resolving",
        "_room",
        "_route",
        "_stamp",
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
        super().__init__(
            batch_messages,
            max(1, min(batch_bytes, limits.BATCH_BYTES // 2)),
            milliseconds(linger, "linger") / 1000,
            in_flight,
            in_flight_bytes,
        )
        self._route = route
        self._stamp = stamp
        self._plan: StampPlan | None = None
        self._planned_for: QueueDescription | None = None
        self._reading_us = route.stamping.reading_us
        self._marks = True
        """Whether the time of each message is noted: if messages are stamped, or that is not known yet."""
        self._room: list[asyncio.Future[None]] = []
        self._resolving = False
        route.link.background.add(self)

    # -- sending ---------------------------------------------------------------------------------------------

    async def send(self, message: Sendable) -> Ticket:
        """Takes a message; waits only for room. Await the ticket to know that it is stored.

        Raises `ProducerError` when earlier messages failed and that was not reported yet; then this message has not been
        taken.
        """
        if self._held:
            await self._admission()
        if type(message) is not bytes or self._planned_for is None:
            return Ticket(*self._put(*prepared(message)))
        # `_put` once more, without the call: at a million messages a second it is a tenth of the time.
        batch = self._open
        messages = batch.messages
        size = batch.bytes + len(message)
        if size > self._batch_bytes:
            return Ticket(*self._put(message, len(message)))
        batch.bytes = size
        messages.append(message)
        if self._marks:
            batch.readings_us.append(self._reading_us())
        count = len(messages)
        if count >= self._batch_messages:
            self._seal()
        elif count == 1:
            self._start_linger(batch)
        return Ticket(batch, count - 1)

    async def send_many(self, messages: Iterable[Sendable]) -> None:
        """Takes any number of messages, in order; several times quicker than `send` for each.

        Raises `ProducerError` when earlier messages failed and no call has reported them yet. Its `failures` then also have
        what was read of `messages` and not taken; what they have left goes on behind that.
        """
        source = iter(messages)
        while chunk := list(islice(source, self._batch_messages - len(self._open.messages))):
            if self._held:
                await self._admission_of(chunk)
            size = sum(map(len, chunk)) if set(map(type, chunk)) == {bytes} else None  # type: ignore[arg-type]
            if size is not None and self._open.bytes + size <= self._batch_bytes:
                self._put_all(chunk, size)
                continue
            for place, message in enumerate(chunk):
                if self._held:
                    await self._admission_of(chunk[place:])
                self._put(*prepared(message))

    async def flush(self) -> None:
        """Returns when everything taken so far is stored; raises `ProducerError` with what was not."""
        if self._open.messages:
            self._seal()
        for batch in (*self._flying, *self._backlog):
            await batch.finished()
        self._raise_failures()

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
                logger.warning("closing a producer after an error also failed: %(error)s", {"error": failure})
        else:  # cancelled: messages that were taken are sent, but not waited for
            self._closed = True
            self._hold()
            if self._open.messages:
                self._seal()

    async def _admission_of(self, messages: list[Sendable]) -> None:
        """The same for messages that their owner does not have any more."""
        try:
            await self._admission()
        except ProducerError as error:
            raise error.with_untaken(messages) from None

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

    def _raise_failures(self) -> None:
        if self._failures:
            raise ProducerError(self._route.name, self.take_failures())

    # -- see `Gathering` -------------------------------------------------------------------------------------

    def _new_batch(self) -> OutgoingBatch:
        """An empty batch."""
        return OutgoingBatch(self._finished)

    def _now(self) -> float:
        """The loop's time."""
        return self._route.link.loop.time()

    def _set_timer(self, at: float) -> None:
        """On the loop."""
        loop = self._route.link.loop
        if self._linger:
            loop.call_at(at, self._lingered)
        else:
            loop.call_soon(self._lingered)

    def _admit(self) -> None:
        """Those who wait for room look again."""
        room, self._room = self._room, []
        for waiter in room:
            if not waiter.done():
                waiter.set_result(None)

    def _may_launch(self, batch: OutgoingBatch) -> bool:
        """Whether the queue is known, and the time if its messages are stamped with it."""
        description = self._route.description
        plan = None if description is None else self._planned(description)
        if self._route.incarnation is not None and description is not None and self._can_stamp(plan, batch):
            return True
        if not self._resolving:
            self._resolving = True
            self._route.link.background.run(self._prepare(plan))
        return False

    def _launch(self, batch: OutgoingBatch) -> None:
        """Puts it in the queue's line."""
        batch.launch(self._route, self._plan)

    def _taken(self, batch: OutgoingBatch, messages: int) -> None:
        """Notes that messages were made now, unless it has turned out that the queue does not go by that."""
        if not self._marks:
            return
        if self._planned_for is None and (description := self._route.description) is not None:
            self._planned(description)
        if self._marks:
            batch.readings_us += [self._reading_us()] * messages

    # -- stamps ----------------------------------------------------------------------------------------------

    def _planned(self, description: QueueDescription) -> StampPlan | None:
        """How messages are stamped, determined again when the queue's settings were."""
        if description is not self._planned_for:
            self._planned_for = description
            self._plan = plan_of(description.settings, self._stamp)
            self._marks = self._plan is not None
        return self._plan

    def _can_stamp(self, plan: StampPlan | None, batch: OutgoingBatch) -> bool:
        if plan is None or self._route.stamping.is_ready(plan):
            return True
        return all(given_time_us(message) is not None for message in batch.messages)

    async def _prepare(self, plan: StampPlan | None) -> None:
        """Sees to it that the queue is known, and the time if its messages are stamped with it."""
        try:
            await self._route.resolve()
            if plan is not None:
                await self._route.stamping.prepare(self._route.name, plan)
        except PenstockError as error:
            self._fail_backlog(error)
        finally:
            self._resolving = False
        self._pump()
