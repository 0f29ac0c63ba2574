"""A subscription over an event loop; `client_core.subscribing` makes its decisions."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.route import Route
from penstock.client.settle.delivered import DeliveredMessages, Message
from penstock.client.settle.heartbeat import Heartbeat
from penstock.client.settle.settlement import Settler
from penstock.client_core.settling import GIVE_BACK
from penstock.client_core.subscribing import ConsumerTerms, PushedMessages, Subscribing
from penstock.model.errors import PenstockError
from penstock.wire.messages import AddCredit, Delivery

__all__ = ["CLOSE_SECONDS", "ConsumerTerms", "Subscription"]

logger = logging.getLogger("penstock.client")

CLOSE_SECONDS = 5.0


class Subscription(Subscribing[Message]):
    """The state of one push consumer; the iterating caller takes deliveries from it."""

    __slots__ = (
        "__weakref__",
        "_heartbeat",
        "_incarnation",
        "_route",
        "_settler",
        "_started",
        "_starting",
        "_waiters",
    )

    def __init__(self, route: Route, settler: Settler, terms: ConsumerTerms) -> None:
        super().__init__(terms)
        self._route = route
        self._settler = settler
        self._incarnation = route.incarnation
        self._waiters: deque[asyncio.Future[None]] = deque()
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
        self.begin(self._incarnation.queue_id, timeout_ms)

    async def next(self) -> DeliveredMessages | None:
        """The next delivery; None when closed. Raises what ended the subscription."""
        while await self._has_begun():
            delivery = self.next_at_hand()
            if delivery is not None:
                assert isinstance(delivery, DeliveredMessages)
                return delivery
            await self._arrival()
        return None

    async def next_message(self) -> Message | None:
        """The next message; None when closed. Raises what ended the subscription."""
        while await self._has_begun():
            message = self.next_message_at_hand()
            if message is not None:
                return message
            await self._arrival()
        return None

    async def _has_begun(self) -> bool:
        """Whether there is any use in waiting for messages; raises when something ended the subscription."""
        if not self._started and not self.closed:
            await self.start()
        return self.is_open()

    async def _arrival(self) -> None:
        waiter: asyncio.Future[None] = self._route.link.loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake(1)  # the wake-up was ours to take, and we cannot
            raise

    # -- see `Subscribing` -----------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._route.link.loop.time()

    def _open(self) -> None:
        self._route.link.background.add(self)
        self._route.link.open_stream(self)

    def _post(self, credit: AddCredit) -> None:
        self._route.link.post(credit)

    def _received(self, delivery: Delivery, body: memoryview) -> PushedMessages[Message]:
        messages = DeliveredMessages(self._route.name, self._settler, delivery, body, self._now())
        if self._heartbeat is not None:
            self._heartbeat.keep(messages.lease)
        return messages

    def _look_again(self, error: PenstockError) -> None:
        assert self._incarnation is not None  # it was asked for under an id
        self._route.link.background.run(self._find_again(self._incarnation, error))

    async def _find_again(self, gone: Incarnation, error: PenstockError) -> None:
        try:
            present = await self._route.refresh(gone)
            if present is not None:
                self._incarnation = present
            self.found_again(None if present is None else present.queue_id, error)
        except PenstockError as another:
            self.end(another)

    def _wake(self, waiters: int) -> None:
        while self._waiters and waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                waiters -= 1

    def _wake_all(self) -> None:
        self._wake(len(self._waiters))

    # -- ending ----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Unsubscribes and returns messages that were not taken; it does not wait long for a server that does not answer."""
        if self.closed:
            return
        self.closed = True
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._route.link.close_stream(self)
                await self._give_back()
        except (PenstockError, TimeoutError) as error:
            logger.warning(
                "could not give back messages of %(queue)r; they are redelivered when their lease ends: "
                "%(error)s",
                {"queue": self._route.name, "error": error},
            )
        finally:
            self._wake_all()

    async def _give_back(self) -> None:
        leases, left = self.left_over()
        if self._route.link.connected:
            await asyncio.gather(
                self._settler.all_of(GIVE_BACK, leases), self._settler.chosen(GIVE_BACK, left)
            )
