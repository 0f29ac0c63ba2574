"""What a client knows about one queue. All handles of the queue in a client share one route."""

from __future__ import annotations

import asyncio

from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.link import Link
from penstock.client.log.direct import DirectReads
from penstock.client.produce.stamping import Stamping
from penstock.client_core.queue_sender import QueueSender
from penstock.client_core.send_line import SendCall, SendLine
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings_checks import check_queue_name
from penstock.wire.messages import DescribeQueue, QueueDescription


class Route(QueueSender):
    """A queue by its name and, once resolved, its present incarnation; and the line of batches to it."""

    def __init__(self, name: str, link: Link, producer: int, stamping: Stamping) -> None:
        check_queue_name(name)
        super().__init__(SendLine(link.timeout, link.dice))
        link.senders.add(self)
        self.name = name
        self.link = link
        self.producer = producer
        """Identifies this client to the server's protection against batches sent twice."""
        self.stamping = stamping
        """How this client stamps messages, to whichever queue."""
        self.direct = DirectReads(link)
        """Reads of its log that go to the nodes of a cluster themselves."""
        self.incarnation: Incarnation | None = None
        self.description: QueueDescription | None = None
        """As of the last look; settings may have changed since."""
        self._describing: asyncio.Future[QueueDescription] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.turn = asyncio.Lock()
        """Held by the next batch: batches are stamped and sent in the order in which sending began, also if all wait."""

    def learn(self, description: QueueDescription) -> QueueDescription:
        """Takes the server's latest description of the queue."""
        if self.incarnation is None or self.incarnation.queue_id != description.queue_id:
            self.incarnation = Incarnation(description.queue_id)
        self.description = description
        self.found(description.queue_id)
        return description

    def forget(self) -> None:
        """The queue is gone; the next use looks again."""
        self.incarnation = None
        self.description = None

    async def resolve(self) -> Incarnation:
        """The queue's present incarnation; asks the server on first use, once for all who wait."""
        while self.incarnation is None:
            await self.describe()
        return self.incarnation

    async def refresh(self, refused: Incarnation) -> Incarnation | None:
        """Another incarnation after the server did not know `refused`; None when there is no other."""
        if self.incarnation is refused:
            self.forget()
        try:
            present = await self.resolve()
        except PenstockError as error:
            if error.code is ErrorCode.QUEUE_NOT_FOUND:
                return None
            raise
        return None if present.queue_id == refused.queue_id else present

    async def describe(self) -> QueueDescription:
        """Asks the server about the queue; callers that come meanwhile share the answer."""
        if self._describing is None:
            self._describing = self.link.ask(DescribeQueue(self.name), QueueDescription)
            self._describing.add_done_callback(self._described)
        return await asyncio.shield(self._describing)

    def _described(self, future: asyncio.Future[QueueDescription]) -> None:
        self._describing = None
        if not future.cancelled() and future.exception() is None:
            self.learn(future.result())

    # -- the line of what is sent ----------------------------------------------------------------------------

    def now(self) -> float:
        """See `QueueSender`."""
        return self.link.loop.time()

    def transmit(self, call: SendCall) -> None:
        """See `QueueSender`."""
        self.link.transmit(call)

    def wake_at(self, at: float | None) -> None:
        """See `QueueSender`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            self._timer = self.link.loop.call_at(at, self.go_on)

    def look_up(self) -> None:
        """See `QueueSender`."""
        self.forget()
        self.link.background.run(self._look_up())

    async def _look_up(self) -> None:
        try:
            await self.describe()  # which informs the line
        except PenstockError as error:
            self.not_found(error)
