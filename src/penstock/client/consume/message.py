"""A message for its reader: a view of the received bytes. Nothing here communicates with the server."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from penstock.client.consume.delivered_run import DeliveredRun
from penstock.client.duration import moment, moment_us
from penstock.client.produce.outgoing import AttributeValue
from penstock.model.batch import DELAYS, PRIORITIES, STAMPS, TTLS, UNSET
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.origin import Origin, Reason
from penstock.ordering.timestamp_id import TimestampId, from_text
from penstock.wire.messages import MessageState

_attributes: msgspec.msgpack.Decoder[dict[str, Any]] = msgspec.msgpack.Decoder(dict[str, Any])
_ATTRIBUTE_TYPES = {str, int, float, bool, bytes}


class DeadLetter(NamedTuple):
    """The origin of a moved message, and the reason for the move."""

    reason: Reason
    source: str
    """The queue it came from."""
    sequence: int
    """Its sequence number there."""
    sent_at: datetime
    """When it was sent to that queue."""
    receive_count: int
    """How often it had been received there."""
    moved_at: datetime


class LateArrival(NamedTuple):
    """How late a message came to a queue ordered by its producers' stamps: messages that should follow it had left already."""

    lateness: timedelta
    """How far it was behind what had left."""
    window_needed: timedelta | None
    """The window that would have been wide enough; None: unknown, because its producer used its own clock."""
    should_have_preceded: TimestampId | None
    """The nearest message known to have left before it though it is younger; None: none is known."""


class MessageView(msgspec.Struct, eq=False):  # a struct because it is made in C, in a third of the time
    """The readable part of a message."""

    _part: DeliveredRun
    _index: int

    @property
    def queue_name(self) -> str:
        """The queue it was read from."""
        return self._part.queue

    @property
    def sequence(self) -> int:
        """Its number in the queue, rising in the order of sending."""
        return self._part.first + self._index

    @property
    def body(self) -> bytes:
        """The body, as it was sent; copied out every time it is asked for."""
        return self._part.body(self._index)

    def text(self, encoding: str = "utf-8") -> str:
        """The body as text."""
        return self.body.decode(encoding)

    @property
    def attributes(self) -> dict[str, AttributeValue]:
        """The attributes it was sent with; a new dict every time."""
        encoded = self._part.attributes(self._index)
        if not encoded:
            return {}
        try:
            attributes = _attributes.decode(encoded)
            if _ATTRIBUTE_TYPES.issuperset(map(type, attributes.values())):
                return attributes
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"message {self.sequence} has attributes that are not a map of text, numbers and bytes",
        )

    @property
    def group(self) -> str | None:
        """The group it was sent in."""
        return _name(self._part.group(self._index))

    @property
    def deduplication_id(self) -> str | None:
        """The deduplication id it was sent with."""
        return _name(self._part.deduplication_id(self._index))

    @property
    def priority(self) -> int:
        """0 (least) to 9."""
        batch = self._part.batch
        return int(batch.priorities()[self._index]) if batch.columns & PRIORITIES else 0

    @property
    def delay_ms(self) -> int | None:
        """The delay it was sent with; None: the queue's."""
        return self._integer(DELAYS)

    @property
    def ttl_ms(self) -> int | None:
        """The time to live it was sent with; None: the queue's."""
        return self._integer(TTLS)

    def _integer(self, column: int) -> int | None:
        values = self._part.batch.integers(column)
        if values is None or values[self._index] == UNSET:
            return None
        return int(values[self._index])

    @property
    def sent_ms(self) -> int:
        """When the server took it, in milliseconds since 1970."""
        return self._part.head.sent_ms

    @property
    def sent_at(self) -> datetime:
        """When the server took it."""
        return moment(self.sent_ms)

    @property
    def timestamp_id(self) -> TimestampId | None:
        """Its timestamp id: its producer's stamp, or the server's where that stamps; None: it has none."""
        head = self._part.head
        batch = self._part.batch
        if batch.columns & STAMPS:
            stamps = batch.integers(STAMPS)
            time_us = int(stamps[self._index]) if stamps is not None else 0
        else:
            time_us = head.stamp_us
        return TimestampId(time_us, head.process, head.counter + self._index) if time_us else None

    @property
    def stamped_at(self) -> datetime | None:
        """The time of its timestamp id; None: it has none."""
        identifier = self.timestamp_id
        return None if identifier is None else moment_us(identifier.time_us)

    @property
    def late(self) -> LateArrival | None:
        """How late it was, if that is why it was moved here; None: it was not."""
        origin = self._part.head.origin
        if origin is None or origin.late is None:
            return None
        found = origin.late
        identifier = self.timestamp_id
        lateness_us = 0 if identifier is None else max(0, found.floor_us - identifier.time_us)
        needed_us = found.window_needed_us
        return LateArrival(
            timedelta(microseconds=lateness_us),
            None if needed_us is None else timedelta(microseconds=needed_us),
            None if found.precedes is None else from_text(found.precedes),
        )

    @property
    def receive_count(self) -> int:
        """How often it has been received, this time included."""
        counts = self._part.head.receive_counts
        return counts if isinstance(counts, int) else counts[self._index]

    @property
    def first_received_ms(self) -> int | None:
        """When it was first received, in milliseconds since 1970; None: never yet."""
        stamps = self._part.head.first_received_ms
        return (stamps if isinstance(stamps, int) else stamps[self._index]) or None

    @property
    def first_received_at(self) -> datetime | None:
        """When it was first received; None: never yet."""
        stamp = self.first_received_ms
        return None if stamp is None else moment(stamp)

    @property
    def dead_letter(self) -> DeadLetter | None:
        """Its origin and reason, if it was moved here; None: it was sent here."""
        origin = self._part.head.origin
        return None if origin is None else _dead_letter(origin, self._index)

    def __repr__(self) -> str:
        body = self.body
        shown = repr(body) if len(body) <= 40 else f"{body[:40]!r}… ({len(body)} bytes)"
        return f"<message {self.sequence} of {self.queue_name!r}: {shown}>"


class PeekedMessage(MessageView, eq=False):
    """A message that was peeked at, not received: it can be read, not settled."""

    @property
    def state(self) -> MessageState:
        """Its state in the queue: ready, leased, delayed or moving."""
        states = self._part.head.states
        return "ready" if states is None else states[self._index]


def _name(name: bytes) -> str | None:
    return name.decode("utf-8", "surrogateescape") if name else None


def _dead_letter(origin: Origin, index: int) -> DeadLetter:
    before = index
    for first, count in origin.runs:
        if before < count:
            return DeadLetter(
                origin.reason,
                origin.source,
                first + before,
                moment(origin.sent_ms),
                origin.receive_counts[index] if index < len(origin.receive_counts) else 0,
                moment(origin.moved_ms),
            )
        before -= count
    raise PenstockError(ErrorCode.INTERNAL, "the server sent a dead letter without its origin")
