"""Made from `penstock.client.queue` by `make blocking`: do not edit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.consumer import BlockingBatchConsumer, BlockingConsumer
from penstock.client.blocking.delivered import BlockingDeliveredMessages, BlockingMessage
from penstock.client.blocking.log import BlockingLog
from penstock.client.blocking.producer import BlockingProducer
from penstock.client.consume.message import PeekedMessage
from penstock.client.duration import Duration
from penstock.client.produce.outgoing import AttributeValue, Body, Sendable
from penstock.client.produce.sent import SentMessage, SentMessages
from penstock.client.queue import Queue
from penstock.client.replies.reply import Reply
from penstock.client.settle.settlement import Settlement
from penstock.model import limits
from penstock.wire.messages import PeekFilter, QueueDescription


class BlockingQueue:
    """A handle on one queue; made by `client.queue(name)`, without asking the server."""

    def __init__(self, bridge: Bridge, queue: Queue) -> None:
        self._bridge = bridge
        self._queue = queue

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._queue.name

    def __repr__(self) -> str:
        return repr(self._queue)

    def describe(self) -> QueueDescription:
        """Settings and statistics as of now."""
        return self._bridge.call(self._queue.describe)

    def send(
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
        return self._bridge.call(
            self._queue.send,
            body,
            attributes=attributes,
            delay=delay,
            ttl=ttl,
            priority=priority,
            group=group,
            deduplication_id=deduplication_id,
            timestamp=timestamp,
            stamp=stamp,
        )

    def send_batch(self, messages: Sequence[Sendable], *, stamp: bool | None = None) -> SentMessages:
        """Sends messages as one batch, stored together or not at all; returns when it is on disk.

        `stamp` is that of `send`; all messages without a timestamp of their own get one time.
        """
        return self._bridge.call(self._queue.send_batch, messages, stamp=stamp)

    def producer(
        self,
        *,
        batch_messages: int = 100,
        batch_bytes: int = limits.MEBIBYTE,
        linger: Duration = 0.002,
        in_flight: int = 16,
        in_flight_bytes: int = 16 * limits.MEBIBYTE,
        stamp: bool | None = None,
    ) -> BlockingProducer:
        """A producer that batches by itself and keeps several batches on their way; use it with `with`.

        A batch is sent when it has `batch_messages` or `batch_bytes`, or `linger` after its first message. With
        `in_flight` batches or `in_flight_bytes` unanswered, `send` waits. `stamp` is that of `send`; each message is
        stamped with the time at which the producer took it.
        """
        return BlockingProducer(
            self._bridge,
            self._bridge.call_plain(
                self._queue.producer,
                batch_messages=batch_messages,
                batch_bytes=batch_bytes,
                linger=linger,
                in_flight=in_flight,
                in_flight_bytes=in_flight_bytes,
                stamp=stamp,
            ),
        )

    def request(
        self,
        body: Body,
        *,
        timeout: Duration = 30.0,
        attributes: Mapping[str, AttributeValue] | None = None,
        ttl: Duration | None = None,
        priority: int | None = None,
        group: str | bytes | None = None,
    ) -> Reply:
        """Sends a message and returns the `Reply` of its consumer, see `message.reply`.

        A reply that says `failed` is returned like any other: check `reply.outcome`, or call `reply.raise_for_outcome()`.
        Raises `no-reply` after `timeout` seconds; the message stays in the queue then, unless a `ttl` ends it.
        """
        return self._bridge.call(
            self._queue.request,
            body,
            timeout=timeout,
            attributes=attributes,
            ttl=ttl,
            priority=priority,
            group=group,
        )

    def receive(
        self,
        max_messages: int = 10,
        *,
        wait: Duration = 0,
        visibility_timeout: Duration | None = None,
        max_bytes: int | None = None,
    ) -> BlockingDeliveredMessages:
        """Receives up to `max_messages` ready messages; if there are none, waits up to `wait` seconds for some.

        The messages are leased for `visibility_timeout` seconds (the queue's setting when None). An empty result means
        that there were no messages. After a lost connection the wait begins again.
        """
        return BlockingDeliveredMessages(
            self._bridge,
            self._bridge.call(
                self._queue.receive,
                max_messages,
                wait=wait,
                visibility_timeout=visibility_timeout,
                max_bytes=max_bytes,
            ),
        )

    def consume(
        self,
        *,
        credit: int = 1_000,
        batch_messages: int = 100,
        visibility_timeout: Duration | None = None,
        heartbeat: bool = False,
    ) -> BlockingConsumer:
        """Messages as the server pushes them: `for message in queue.consume(): ...`.

        The server sends up to `credit` messages ahead, in deliveries of up to `batch_messages`. With `heartbeat`, leases
        are extended as long as their messages are being worked on. Messages sent ahead whose lease ends before they are
        handed out are dropped here, because the server delivers them again.
        """
        return BlockingConsumer(
            self._bridge,
            self._bridge.call_plain(
                self._queue.consume,
                credit=credit,
                batch_messages=batch_messages,
                visibility_timeout=visibility_timeout,
                heartbeat=heartbeat,
            ),
        )

    def consume_batches(
        self,
        *,
        credit: int = 10_000,
        batch_messages: int = 1_000,
        visibility_timeout: Duration | None = None,
        heartbeat: bool = False,
    ) -> BlockingBatchConsumer:
        """Like `consume`, a whole delivery at a time: the fast way."""
        return BlockingBatchConsumer(
            self._bridge,
            self._bridge.call_plain(
                self._queue.consume_batches,
                credit=credit,
                batch_messages=batch_messages,
                visibility_timeout=visibility_timeout,
                heartbeat=heartbeat,
            ),
        )

    def log(self) -> BlockingLog:
        """The queue's retained log, where it has one (consumption `log` or `both`)."""
        return BlockingLog(self._bridge, self._bridge.call_plain(self._queue.log))

    def delete_batch(self, messages: Iterable[BlockingMessage]) -> Settlement:
        """Deletes received messages, from any number of deliveries."""
        return self._bridge.call(self._queue.delete_batch, [one.message for one in messages])

    def release_batch(
        self, messages: Iterable[BlockingMessage], delay: Duration = 0, *, error: str | BaseException = ""
    ) -> Settlement:
        """Gives received messages back, ready again after `delay` seconds."""
        return self._bridge.call(
            self._queue.release_batch, [one.message for one in messages], delay, error=error
        )

    def extend_batch(self, messages: Iterable[BlockingMessage], visibility_timeout: Duration) -> Settlement:
        """Keeps received messages for so many seconds from now."""
        return self._bridge.call(
            self._queue.extend_batch, [one.message for one in messages], visibility_timeout
        )

    def peek(
        self,
        start: int = 0,
        *,
        limit: int | None = None,
        filter: PeekFilter | None = None,  # noqa: A002  # the word that users expect
    ) -> Iterator[PeekedMessage]:
        """Peeks at messages from sequence number `start` on without receiving them, in any state."""
        for page in self._bridge.each(self._queue.peek_pages(start, limit, filter)):
            yield from page.messages()

    def purge(self) -> int:
        """Deletes every message that is in the queue now; returns how many."""
        return self._bridge.call(self._queue.purge)

    def redrive(
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
        return self._bridge.call(
            self._queue.redrive,
            target,
            max_messages=max_messages,
            rate=rate,
            sequences=None if sequences is None else list(sequences),
            filter=filter,
            on_progress=on_progress,
        )
