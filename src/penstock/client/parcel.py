"""One batch of a producer on its way, and what people hold on to while it is: tickets and failures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

import msgspec

from penstock.client.backoff import delays
from penstock.client.call import Call, unexpected
from penstock.client.failure import passes
from penstock.client.incarnation import Incarnation
from penstock.client.link import Link
from penstock.client.outgoing import Sendable, encode_outgoing
from penstock.client.route import Route
from penstock.client.sending import send_head, stamps_column
from penstock.client.sent import SentMessage, SentMessages
from penstock.client.stamping import StampPlan
from penstock.model.errors import ErrorCode, PenstockError
from penstock.ordering.stamper import Stamps
from penstock.wire.messages import Answer, SendResult


class Parcel(Call):
    """A batch: gathered, then on its way, then stored or failed. It is its own call: no future unless one is asked for."""

    __slots__ = (
        "_finished",
        "_gives_up",
        "_incarnation",
        "_looked_again",
        "_number",
        "_pauses",
        "_plan",
        "_route",
        "_stamps",
        "_waiters",
        "bytes",
        "due",
        "error",
        "messages",
        "readings_us",
        "result",
    )

    def __init__(self, finished: Callable[[Parcel], None]) -> None:
        super().__init__()
        self.messages: list[Sendable] = []
        self.readings_us: list[int] = []
        """When each of them was made, by the local clock; none where nobody needs to know."""
        self.bytes = 0
        self.due = 0.0
        """When it is sent though it is not full."""
        self.result: SendResult | None = None
        self.error: PenstockError | None = None
        self._finished = finished
        self._waiters: list[asyncio.Future[None]] = []
        self._route: Route | None = None
        self._incarnation: Incarnation | None = None
        self._number = 0
        self._plan: StampPlan | None = None
        self._stamps: Stamps | None = None
        self._looked_again = False
        self._pauses: Iterator[float] | None = None
        """Since a cluster that changes refused it: how long to wait before each further attempt."""
        self._gives_up = 0.0

    @property
    def done(self) -> bool:
        """Whether it is stored or has failed."""
        return self.result is not None or self.error is not None

    def start(
        self, route: Route, incarnation: Incarnation, number: int, plan: StampPlan | None = None
    ) -> None:
        """Sends it, stamped as planned; sent again to a queue that was made again, it keeps its stamps."""
        self._route, self._incarnation, self._number, self._plan = route, incarnation, number, plan
        try:
            if self._stamps is None:
                self._stamps = self._stamp(route, plan)
            payload = encode_outgoing(self.messages, stamps_column(self._stamps))
            route.link.start(self, send_head(route, incarnation, number, self._stamps), (payload,))
        except PenstockError as error:
            self.give_up(error)

    def _stamp(self, route: Route, plan: StampPlan | None) -> Stamps | None:
        if len(self.readings_us) != len(self.messages):
            self.readings_us = [route.stamping.reading_us()] * len(self.messages)
        return route.stamping.stamp(plan, self.readings_us, self.messages)

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """Stored."""
        if isinstance(answer, SendResult):
            self.result = answer
            self.frame = []  # a ticket may live on; the bytes need not
            self.messages = []
            self.readings_us = []
            self._end()
        else:
            self.give_up(unexpected(answer))

    def fail(self, error: PenstockError) -> None:
        """Refused: by a queue that was made again it is tried once more, and by a cluster that changes for a while."""
        if error.code is ErrorCode.QUEUE_NOT_FOUND and not self._looked_again and self._route is not None:
            self._looked_again = True
            self._route.link.background.run(self._look_again(error))
        elif self._route is not None and (pause := self._pause(error, self._route.link)) is not None:
            self._route.link.loop.call_later(pause, self._try_again)
        else:
            self.give_up(error)

    def _pause(self, error: PenstockError, link: Link) -> float | None:
        """How long to wait before the same is asked again; None: it is not."""
        if not passes(error, connected=link.connected, resent=self.resent):
            return None
        if self._pauses is None:
            self._pauses = delays(random.Random())
            self._gives_up = link.loop.time() + link.timeout
        pause = next(self._pauses)
        return pause if link.loop.time() + pause <= self._gives_up else None

    def _try_again(self) -> None:
        assert self._route is not None
        assert self._incarnation is not None
        self.start(self._route, self._incarnation, self._number, self._plan)

    async def _look_again(self, error: PenstockError) -> None:
        route, refused = self._route, self._incarnation
        assert route is not None
        assert refused is not None
        try:
            present = await route.refresh(refused)
            if present is None:
                raise error
            while (number := present.take_number()) is None:
                await present.number_free()
        except PenstockError as failure:
            self.give_up(failure)
        else:
            refused.answered(self._number)
            self.start(route, present, number, self._plan)

    def give_up(self, error: PenstockError) -> None:
        """It has failed for good."""
        self.error = error
        self.frame = []
        self._end()

    def _end(self) -> None:
        if self._incarnation is not None:
            self._incarnation.answered(self._number)
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
    """A message on its way; await it to know that it is stored. Costs next to nothing if nobody does."""

    _parcel: Parcel
    _index: int

    def __await__(self) -> Generator[object, None, SentMessage]:
        return self.outcome().__await__()

    def done(self) -> bool:
        """Whether awaiting it would return at once."""
        return self._parcel.done

    async def outcome(self) -> SentMessage:
        """What awaiting the ticket gives."""
        await self._parcel.finished()
        if self._parcel.error is not None:
            raise self._parcel.error
        return SentMessages(self._parcel.result)[self._index]


class FailedBatch(NamedTuple):
    """Messages that were not stored, and why."""

    error: PenstockError
    messages: list[Sendable]


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
