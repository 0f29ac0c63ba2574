"""A queue for a client: send, receive, consume, settle, peek, purge, redrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime

from penstock.client.connection.call import FutureCall
from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.route import Route
from penstock.client.consume.browse import Page, pages, redrive, resolved
from penstock.client.consume.consumer import BatchConsumer, MessageConsumer
from penstock.client.consume.message import PeekedMessage
from penstock.client.consume.subscription import ConsumerTerms, Subscription
from penstock.client.duration import Duration, milliseconds, optional_milliseconds
from penstock.client.log.log import Log
from penstock.client.produce.outgoing import (
    AttributeValue,
    Body,
    OutgoingMessage,
    Sendable,
    prepared,
)
from penstock.client.produce.producer import Producer
from penstock.client.produce.sending import send_messages
from penstock.client.produce.sent import SentMessage, SentMessages
from penstock.client.replies.reply import Reply
from penstock.client.replies.requester import Requester
from penstock.client.settle.delivered import DeliveredMessages, Message
from penstock.client.settle.settlement import DELETE, SettleAction, Settlement, Settler, giving_back
from penstock.client_core.call import unexpected
from penstock.client_core.settling import GIVE_BACK
from penstock.model import limits
from penstock.wire.messages import Answer, Count, Delivery, PeekFilter, Purge, QueueDescription, Receive


class Queue:
    """A handle on one queue; made by `client.queue(name)`, without asking the server."""

    def __init__(self, route: Route, settler: Settler, requester: Requester) -> None:
        self._route = route
        self._settler = settler
        self._requester = requester

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._route.name

    @property
    def route(self) -> Route:
        """What the client knows about the queue."""
        return self._route

    @property
    def settler(self) -> Settler:
        """Settles what was received from the queue."""
        return self._settler

    def __repr__(self) -> str:
        return f"<queue {self.name!r}>"

    async def describe(self) -> QueueDescription:
        """Settings and statistics as of now."""
        return await self._route.describe()

    # -- sending ---------------------------------------------------------------------------------------------

    async def send(
        self,
        body: Body,
        *,
        attributes: Mapping[str, AttributeValue] | None = None,
        delay: Duration | None = None,
        ttl: Duration | None = None,
        priority: int | None = None,
        group: str | bytes | None = None,
        deduplication_id: str | bytes | None = None,
        timestamp: datetime | float | None = None,
        stamp: bool | None = None,
    ) -> SentMessage:
        """Sends one message; returns when it is on disk. See `OutgoingMessage` for what the arguments mean.

        On a queue ordered by its producers' stamps it is stamped with the time of this call. `stamp=True` does so on
        other queues too, by the server's time; `stamp=False` leaves it to the server.
        """
        message = OutgoingMessage(body, attributes, delay, ttl, priority, group, deduplication_id, timestamp)
        return SentMessages(await send_messages(self._route, [prepared(message)[0]], stamp))[0]

    async def send_batch(self, messages: Sequence[Sendable], *, stamp: bool | None = None) -> SentMessages:
        """Sends messages as one batch, stored together or not at all; returns when it is on disk.

        `stamp` is that of `send`; all messages without a timestamp of their own get one time.
        """
        if not messages:
            return SentMessages(None)
        return SentMessages(await send_messages(self._route, messages, stamp))

    def producer(
        self,
        *,
        batch_messages: int = 100,
        batch_bytes: int = limits.MEBIBYTE,
        linger: Duration = 0.002,
        in_flight: int = 16,
        in_flight_bytes: int = 16 * limits.MEBIBYTE,
        stamp: bool | None = None,
    ) -> Producer:
        """A producer that batches by itself and keeps several batches on their way; use it with `async with`.

        A batch is sent when it has `batch_messages` or `batch_bytes`, or `linger` after its first message. With
        `in_flight` batches or `in_flight_bytes` unanswered, `send` waits. `stamp` is that of `send`; each message is
        stamped with the time at which the producer took it.
        """
        return Producer(
            self._route,
            batch_messages=batch_messages,
            batch_bytes=batch_bytes,
            linger=linger,
            in_flight=in_flight,
            in_flight_bytes=in_flight_bytes,
            stamp=stamp,
        )

    async def request(
        self,
        body: Body,
        *,
        timeout: Duration = 30.0,  # noqa: ASYNC109  # the word that users expect
        attributes: Mapping[str, AttributeValue] | None = None,
        ttl: Duration | None = None,
        priority: int | None = None,
        group: str | bytes | None = None,
    ) -> Reply:
        """Sends a message and returns the `Reply` of its consumer, see `message.reply`.

        A reply that says `failed` is returned like any other: check `reply.outcome`, or call `reply.raise_for_outcome()`.
        Raises `no-reply` after `timeout` seconds; the message stays in the queue then, unless a `ttl` ends it.
        """

        async def send(carried: dict[str, AttributeValue]) -> None:
            await self.send(body, attributes=carried, ttl=ttl, priority=priority, group=group)

        return await self._requester.request(self.name, send, attributes, timeout)

    # -- receiving -------------------------------------------------------------------------------------------

    async def receive(
        self,
        max_messages: int = 10,
        *,
        wait: Duration = 0,
        visibility_timeout: Duration | None = None,
        max_bytes: int | None = None,
    ) -> DeliveredMessages:
        """Receives up to `max_messages` ready messages; if there are none, waits up to `wait` seconds for some.

        The messages are leased for `visibility_timeout` seconds (the queue's setting when None). An empty result means
        that there were no messages. After a lost connection the wait begins again.
        """
        wait_ms = milliseconds(wait, "wait")
        timeout_ms = optional_milliseconds(visibility_timeout, "visibility_timeout")

        async def ask(incarnation: Incarnation) -> DeliveredMessages:
            call = FutureCall(self._route.link.loop, self._delivered, unclaimed=self._give_back)
            request = Receive(incarnation.queue_id, max_messages, wait_ms, timeout_ms, max_bytes)
            self._route.link.start(call, request)
            try:
                return await call.future
            except asyncio.CancelledError:
                if not call.future.cancelled():  # it came in the very turn in which this task was cancelled
                    self._give_back(call.future.result())
                raise

        return await resolved(self._route, ask)

    def _delivered(
        self, _call: FutureCall[DeliveredMessages], answer: Answer, body: memoryview
    ) -> DeliveredMessages:
        if not isinstance(answer, Delivery):
            raise unexpected(answer)
        return DeliveredMessages(self.name, self._settler, answer, body, self._route.link.loop.time())

    def _give_back(self, messages: DeliveredMessages) -> None:
        """A receive was cancelled and messages came all the same: returns them for other consumers."""
        if messages:
            self._settler.together(GIVE_BACK, messages.lease)

    def consume(
        self,
        *,
        credit: int = 1_000,
        batch_messages: int = 100,
        visibility_timeout: Duration | None = None,
        heartbeat: bool = False,
    ) -> MessageConsumer:
        """Messages as the server pushes them: `async for message in queue.consume(): ...`.

        The server sends up to `credit` messages ahead, in deliveries of up to `batch_messages`. With `heartbeat`, leases
        are extended as long as their messages are being worked on. Messages sent ahead whose lease ends before they are
        handed out are dropped here, because the server delivers them again.
        """
        return MessageConsumer(
            self._route.link, self._subscription(credit, batch_messages, visibility_timeout, heartbeat)
        )

    def consume_batches(
        self,
        *,
        credit: int = 10_000,
        batch_messages: int = 1_000,
        visibility_timeout: Duration | None = None,
        heartbeat: bool = False,
    ) -> BatchConsumer:
        """Like `consume`, a whole delivery at a time: the fast way."""
        return BatchConsumer(
            self._route.link, self._subscription(credit, batch_messages, visibility_timeout, heartbeat)
        )

    def _subscription(
        self, credit: int, batch_messages: int, visibility_timeout: Duration | None, heartbeat: bool
    ) -> Subscription:
        timeout_ms = optional_milliseconds(visibility_timeout, "visibility_timeout")
        return Subscription(
            self._route, self._settler, ConsumerTerms(credit, batch_messages, timeout_ms, heartbeat)
        )

    def log(self) -> Log:
        """The queue's retained log, where it has one (consumption `log` or `both`)."""
        return Log(self._route)

    # -- settling many ---------------------------------------------------------------------------------------

    async def delete_batch(self, messages: Iterable[Message]) -> Settlement:
        """Deletes received messages, from any number of deliveries."""
        return await self._settle(DELETE, messages)

    async def release_batch(
        self, messages: Iterable[Message], delay: Duration = 0, *, error: str | BaseException = ""
    ) -> Settlement:
        """Gives received messages back, ready again after `delay` seconds."""
        return await self._settle(giving_back(delay, error), messages)

    async def extend_batch(self, messages: Iterable[Message], visibility_timeout: Duration) -> Settlement:
        """Keeps received messages for so many seconds from now."""
        action = SettleAction("extend", milliseconds(visibility_timeout, "visibility_timeout"))
        return await self._settle(action, messages)

    async def _settle(self, action: SettleAction, messages: Iterable[Message]) -> Settlement:
        return await self._settler.chosen(
            action, ((message.delivery.lease, message.sequence) for message in messages)
        )

    # -- looking and moving ----------------------------------------------------------------------------------

    async def peek(
        self,
        start: int = 0,
        *,
        limit: int | None = None,
        filter: PeekFilter | None = None,  # noqa: A002  # the word that users expect
    ) -> AsyncIterator[PeekedMessage]:
        """Peeks at messages from sequence number `start` on without receiving them, in any state."""
        async for page in self.peek_pages(start, limit, filter):
            for message in page.messages():
                yield message

    def peek_pages(self, start: int, limit: int | None, chosen: PeekFilter | None) -> AsyncIterator[Page]:
        """The requests of `peek`, one page at a time."""
        return pages(self._route, start, limit, chosen)

    async def purge(self) -> int:
        """Deletes every message that is in the queue now; returns how many."""

        def ask(incarnation: Incarnation) -> asyncio.Future[Count]:
            return self._route.link.ask(Purge(incarnation.queue_id), Count)

        return (await resolved(self._route, ask)).messages

    async def redrive(
        self,
        target: str | None = None,
        *,
        max_messages: int | None = None,
        rate: float | None = None,
        sequences: Iterable[int] | None = None,
        filter: PeekFilter | None = None,  # noqa: A002  # the word that users expect
        on_progress: Callable[[int], None] | None = None,
    ) -> int:
        """Moves the ready messages of this (dead-letter) queue; returns how many are moving.

        Each goes back to the queue in which it died, or all go to `target`. Choose them by `sequences` or `filter`, at
        most `max_messages`, at most `rate` a second; `on_progress` is called with the count after each step.
        """
        return await redrive(
            self._route,
            target=target,
            max_messages=max_messages,
            rate=rate,
            sequences=sequences,
            chosen=filter,
            on_progress=on_progress,
        )
