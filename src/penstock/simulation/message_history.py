"""One queue, one message, one delivery: what the clients of a run know of each.

All times are the clock's. An action that was requested at `asked_ms` and answered at `answered_ms` happened on the node
somewhere between the two; without an answer it may have happened or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from penstock.model.origin import Lateness, Reason
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.ordering.timestamp_id import TimestampId
from penstock.wire.messages import QueueStatistics

Fate = Literal["unknown", "stored", "duplicate", "refused"]
Result = Literal["pending", "done", "gone", "done-or-gone", "stale", "refused", "lost"]
Kind = Literal["delete", "release", "extend"]


@dataclass(slots=True, eq=False)
class QueueLife:
    """One incarnation of a queue."""

    queue_id: int
    name: str
    settings: list[QueueSettings]
    """Every version that may have been in force, the first one first."""
    created_ms: int
    deletion_asked_ms: int | None = None
    purges: list[Span] = field(default_factory=list)
    redriven: bool = False
    """Whether messages were moved out of it, or may have been, by a request."""
    damaged_ms: int | None = None
    watermarks_us: set[int] = field(default_factory=set)
    """All known watermarks."""
    statistics: QueueStatistics | None = None
    """As the node saw it at the end."""

    @property
    def watermark_us(self) -> int:
        """The highest known watermark."""
        return max(self.watermarks_us, default=0)

    @property
    def strict(self) -> bool:
        """Whether its groups are strictly ordered."""
        return self.settings[0].strict

    @property
    def sorted(self) -> bool:
        """Whether its producers' stamps make the order."""
        return self.settings[0].sorted

    @property
    def late_queue(self) -> str | None:
        """The queue for messages that come too late for the order."""
        return f"{self.name}.late" if self.sorted else None

    def dead_letter_queues(self) -> list[str]:
        """The queues to which its messages may have moved."""
        return sorted({s.dead_letter_queue for s in self.settings if s.dead_letter_queue is not None})

    def least_ms(self, name: str) -> int:
        """The least value of a time setting; one that is not set counts as endless."""
        values = [getattr(settings, name) for settings in self.settings]
        return min(ENDLESS_MS if value is None else int(value) for value in values)

    @property
    def bounded(self) -> bool:
        """Whether it may ever have been full."""
        return any((s.max_messages, s.max_bytes, s.max_groups) != (None, None, None) for s in self.settings)


ENDLESS_MS = 2**60


@dataclass(slots=True, eq=False)
class Span:
    """A request with an optional answer."""

    asked_ms: int
    answered_ms: int | None = None
    messages: int | None = None
    """How many it was about, where the answer says so."""
    undone: set[int] = field(default_factory=set)
    """Of a purge: the ordinals of partitions in which a failover lost it."""


@dataclass(slots=True, eq=False)
class SentMessage:
    """A message that a producer tried to send."""

    number: int
    life: QueueLife
    body: bytes
    attributes: bytes
    group: bytes
    priority: int
    delay_ms: int | None
    ttl_ms: int | None
    deduplication_id: bytes
    asked_ms: int
    began_us: int
    """True time when it was first sent."""
    fate: Fate = "unknown"
    sequence: int = 0
    """Its own, or that of the message it is a duplicate of."""
    sent_ms: int = 0
    sent_at_most: bool = False
    """Whether it may have been sent earlier than that."""
    answered_ms: int = 0
    deliveries: list[DeliveredMessage] = field(default_factory=list)
    deleted_late: bool = False
    """Whether it was deleted with the receipt of a lease that a failover lost."""
    identifier: TimestampId | None = None
    """The producer's stamp."""
    made_us: int = 0
    """True time when it was stamped."""
    uncertainty_us: int | None = None
    """How far the stamp may be from true time, where the producer honestly believes that; None: it says nothing."""
    stamp_us: int = 0
    """The server's stamp."""
    answered_us: int = 0
    """True time when the answer arrived."""

    def least_delay_ms(self) -> int:
        """It cannot have been ready sooner than this after it was sent."""
        return self.delay_ms if self.delay_ms is not None else self.life.least_ms("delay_ms")

    def most_delay_ms(self) -> int:
        """It must have been ready this much after it was sent."""
        if self.delay_ms is not None:
            return self.delay_ms
        return max(settings.delay_ms for settings in self.life.settings)

    def least_ttl_ms(self) -> int:
        """It cannot have expired sooner than this after it was sent."""
        ttl_ms = self.ttl_ms if self.ttl_ms is not None else self.life.least_ms("default_ttl_ms")
        return min(ttl_ms, self.life.least_ms("retention_ms"))

    def most_ttl_ms(self) -> int:
        """It must be gone, or moved on, this much after it was sent."""
        if self.ttl_ms is not None:
            return self.ttl_ms
        values = [settings.default_ttl_ms for settings in self.life.settings]
        return max(ENDLESS_MS if value is None else value for value in values)


class SendAnswer(NamedTuple):
    """The answer to a producer about a batch."""

    runs: Runs
    duplicates: list[int]
    sent_ms: int


@dataclass(slots=True, eq=False)
class SentBatch:
    """A batch with all its attempts under one number."""

    life: QueueLife
    producer: int
    number: int
    messages: list[SentMessage]
    encoded: bytes
    first_id: TimestampId | None = None
    uncertainty_us: int = 0
    unanswered: int = 0
    """Attempts that may have reached the node and were not answered."""
    answers: list[SendAnswer] = field(default_factory=list)
    heard: list[tuple[int, int, int]] = field(default_factory=list)
    """With each answer: when it arrived, that in true time, and the server's stamp."""
    is_ordered: bool = False
    """Whether its producer named the batch that it follows, so that the order is promised."""


class MovedFrom(NamedTuple):
    """Where a moved message was before."""

    queue_id: int
    name: str
    sequence: int
    reason: Reason
    receive_count: int
    root: tuple[int, int]
    """(queue id, sequence number) of its first home, as the node says."""
    late: Lateness | None = None


@dataclass(slots=True, eq=False)
class Settlement:
    """A consumer's action on a message that it holds, or once held."""

    kind: Kind
    asked_ms: int
    amount_ms: int
    """The delay of a release, the timeout of an extension."""
    answered_ms: int | None = None
    result: Result = "pending"
    again: bool = False
    """Whether it was repeated because the outcome of the first attempt was unknown; the answer is that of the last."""

    def may_have_deleted(self) -> bool:
        """Whether the message may be gone because of it."""
        if self.kind != "delete":
            return False
        return self.result in ("done", "done-or-gone", "lost", "pending") or (
            self.again and self.result == "gone"
        )


@dataclass(slots=True, eq=False)
class DeliveredMessage:
    """One delivery of a message to one consumer."""

    life: QueueLife
    message: SentMessage | None
    """None: its bytes are none that were ever sent."""
    problem: str | None
    """How it differs from what was sent."""
    sequence: int
    lease: int
    token: bytes
    place: int
    """Its position in the delivery."""
    asked_ms: int
    arrived_ms: int
    granted_ms: int | None
    """When the lease began, where the consumer can tell."""
    until_ms: int
    receive_count: int
    first_received_ms: int
    sent_ms: int
    source: MovedFrom | None
    identifier: TimestampId
    """Its stamp, as the node says."""
    settlements: list[Settlement] = field(default_factory=list)

    @property
    def granted_at_least_ms(self) -> int:
        """The lease did not begin before this."""
        return self.granted_ms if self.granted_ms is not None else self.asked_ms

    @property
    def granted_at_most_ms(self) -> int:
        """The lease had begun by this."""
        return self.granted_ms if self.granted_ms is not None else self.arrived_ms


class EmptyPoll(NamedTuple):
    """A receiver that waited and got nothing."""

    life: QueueLife
    asked_ms: int
    answered_ms: int
    wait_ms: int


class Sighting(NamedTuple):
    """A message that was seen without being leased."""

    life: QueueLife
    message: SentMessage | None
    problem: str | None
    sequence: int
    state: str
    asked_ms: int
    seen_ms: int
