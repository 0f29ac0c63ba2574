"""One batch of a producer, and the objects through which users follow it: tickets and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable

import msgspec

from penstock.client.connection.route import Route
from penstock.client.produce.outgoing import Sendable, encode_outgoing
from penstock.client.produce.sending import send_head, stamps_column
from penstock.client.produce.sent import SentMessage, SentMessages
from penstock.client.produce.stamping import StampPlan
from penstock.client_core.gathering import FailedBatch, GatheredBatch
from penstock.model.errors import PenstockError
from penstock.ordering.stamper import Stamps
from penstock.wire.messages import Send

__all__ = ["FailedBatch", "OutgoingBatch", "ProducerError", "Ticket"]


class OutgoingBatch(GatheredBatch):
    """A batch: gathered, then sent, then stored or failed. It is its own call: a future is made only on request."""

    __slots__ = ("_finished", "_producer", "_stamps", "_waiters", "readings_us")

    def __init__(self, finished: Callable[[OutgoingBatch], None]) -> None:
        super().__init__()
        self.readings_us: list[int] = []
        """When each of its messages was made, by the local clock; empty if that is not needed."""
        self._finished = finished
        self._waiters: list[asyncio.Future[None]] = []
        self._producer = 0
        self._stamps: Stamps | None = None

    def launch(self, route: Route, plan: StampPlan | None) -> None:
        """Sends it, stamped as planned; sent again, also to a queue that was made again, it keeps its stamps."""
        self._producer = route.producer
        try:
            if len(self.readings_us) != len(self.messages):
                self.readings_us = [route.stamping.reading_us()] * len(self.messages)
            self._stamps = route.stamping.stamp(plan, self.readings_us, self.messages)
            self.body = (encode_outgoing(self.messages, stamps_column(self._stamps)),)
        except PenstockError as error:
            self.give_up(error)
        else:
            self.submit(route)

    def head(self, queue_id: int, number: int, after: int) -> Send:
        """See `SendCall`."""
        return send_head(self._producer, queue_id, number, after, self._stamps)

    def settled(self) -> None:
        """Stored or failed: calls those who wait."""
        if self.error is None:
            self.messages = []  # a ticket may live on; the bytes need not
            self.readings_us = []
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters = []
        self._finished(self)

    async def finished(self) -> None:
        """Returns when it is stored or has failed."""
        if not self.done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter


class Ticket(msgspec.Struct, eq=False):  # a struct because there is one a message, and it is made in C
    """A message that was handed over; await it to know that it is stored. Costs next to nothing if it is not awaited."""

    _parcel: OutgoingBatch
    _index: int

    def __await__(self) -> Generator[object, None, SentMessage]:
        return self.outcome().__await__()

    def done(self) -> bool:
        """Whether awaiting it would return at once."""
        return self._parcel.done

    async def outcome(self) -> SentMessage:
        """The result of awaiting the ticket."""
        await self._parcel.finished()
        if self._parcel.error is not None:
            raise self._parcel.error
        return SentMessages(self._parcel.result)[self._index]


class ProducerError(PenstockError):
    """Messages given to a producer were not stored; `failures` has them, batch by batch, with the reason of each."""

    def __init__(self, queue: str, failures: list[FailedBatch]) -> None:
        first = failures[0].error
        messages = sum(len(failure.messages) for failure in failures)
        super().__init__(
            first.code,
            f"{messages} messages in {len(failures)} batches were not stored in {queue!r}: {first.message}",
        )
        self.failures = failures
        self._queue = queue

    def with_untaken(self, messages: Iterable[Sendable]) -> ProducerError:
        """The same error, with the messages that were read from the caller's iterator and not taken: only this error names them."""
        untaken = list(messages)
        if not untaken:
            return self
        return ProducerError(self._queue, [*self.failures, FailedBatch(self.failures[0].error, untaken)])
