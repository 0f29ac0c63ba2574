"""The knowledge of a run's clients: their requests, times, and answers. Only checkers read it.

`message_history` and `log_history` have the details of messages, deliveries and logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.simulation.log_history import LogHistory
from penstock.simulation.message_history import (
    DeliveredMessage,
    EmptyPoll,
    QueueLife,
    SentBatch,
    SentMessage,
    Sighting,
    Span,
)
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.whereabouts import Whereabouts


class BitFlip(NamedTuple):
    """A bit that was changed on the disk behind the node's back."""

    at_ms: int
    file: str
    owner: int | None
    """The queue of these bytes; None: it does not follow from the bytes alone."""


class ClockStep(NamedTuple):
    """A jump of the clock: its readings before and after."""

    before_ms: int
    after_ms: int


@dataclass(slots=True, eq=False)
class History:
    """Everything that the clients of a run, and the fault injectors, know."""

    lives: dict[int, QueueLife] = field(default_factory=dict)
    messages: dict[int, SentMessage] = field(default_factory=dict)
    batches: list[SentBatch] = field(default_factory=list)
    deliveries: list[DeliveredMessage] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    empty_polls: list[EmptyPoll] = field(default_factory=list)
    forgeries_accepted: list[tuple[int, str]] = field(default_factory=list)
    beyond_credit: list[tuple[int, str]] = field(default_factory=list)
    """(when, what) of messages that were pushed to a consumer without credit."""
    broken_attempts: list[tuple[int, str]] = field(default_factory=list)
    """(when, what) of receives that were asked again and gave something else under the same lease."""
    refusals_of_settlements: list[tuple[int, int, str]] = field(default_factory=list)
    """(when asked, when refused, code) of deletes and other settlements that were refused for another reason than the receipt."""
    refused_as_full: list[tuple[int, int]] = field(default_factory=list)
    """(when asked, when refused) of sends refused because the disk was full."""
    clock_steps: list[ClockStep] = field(default_factory=list)
    skew_ms: int = 0
    """By how much the clocks of nodes may differ, and leases and delays with them."""
    is_crowded: bool = False
    """Whether few receivers may wait at a partition: one that is refused at one waits at the others, and does not notice."""
    downtimes: list[Span] = field(default_factory=list)
    full_disks: list[Span] = field(default_factory=list)
    full_journals: list[int] = field(default_factory=list)
    """When an append was refused as on a disk whose reserve is used up."""
    reserves_begun: list[int] = field(default_factory=list)
    """When a journal continued in the last prepared file."""
    slow_disks: list[Span] = field(default_factory=list)
    fenced: set[int] = field(default_factory=set)
    """Queues that were found to be damaged after they were deleted. The node keeps them for a repair, and no client sees them."""
    unclean: set[int] = field(default_factory=set)
    """Queues that an operator let a replica lead which was not in sync."""
    claims_lost: set[tuple[int, bytes]] = field(default_factory=set)
    """(queue, deduplication id) of which a failover lost where it belongs."""
    returned: set[tuple[int, int]] = field(default_factory=set)
    """(queue, sequence number) of messages that were away for a while: an unclean election brought them back."""
    moves_lost: set[tuple[int, int]] = field(default_factory=set)
    """(queue, sequence number) of messages of which an unclean election lost that they left: they may be in two places."""
    flips: list[BitFlip] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    """Work that did not end after all faults had ended."""
    cold_reads: bool = False
    """Whether a delivery may have to wait for the disk."""
    log: LogHistory = field(default_factory=LogHistory)
    records: dict[int, list[AppendedRecord]] = field(default_factory=dict)
    """Of each partition: the node's records that no crash removed, in order."""
    whereabouts: Whereabouts | None = None
    """Where messages ended by the records, if a queue was deleted."""
    clocks_are_true: bool = False
    """Whether the clock intervals of all processes contained true time throughout."""
    ended_ms: int = 0
    most_unflushed_bytes: int = 0
    max_unflushed_bytes: int = 0

    @property
    def has_deletions(self) -> bool:
        """Whether a deletion of a queue was requested."""
        return any(life.deletion_asked_ms is not None for life in self.lives.values())

    def lives_named(self, name: str) -> list[QueueLife]:
        """All incarnations under a name."""
        return [life for life in self.lives.values() if life.name == name]

    def by_place(self) -> Iterator[tuple[QueueLife, int, list[DeliveredMessage]]]:
        """Deliveries of each message of each queue, in the order of their leases."""
        places: dict[tuple[int, int], list[DeliveredMessage]] = {}
        for delivery in self.deliveries:
            places.setdefault((delivery.life.queue_id, delivery.sequence), []).append(delivery)
        for (queue_id, sequence), deliveries in sorted(places.items()):
            deliveries.sort(key=lambda delivery: delivery.lease)
            yield self.lives[queue_id], sequence, deliveries

    def was_well(self, from_ms: int, until_ms: int) -> bool:
        """Whether all that time the node served, its clock ran evenly, and the disk was quick."""
        if any(from_ms <= step.before_ms <= until_ms for step in self.clock_steps):
            return False
        return self.disk_was_well(from_ms, until_ms) and not _overlap(self.downtimes, from_ms, until_ms)

    def disk_was_well(self, from_ms: int, until_ms: int) -> bool:
        """Whether all that time the disk was quick and had room."""
        return not _overlap([*self.slow_disks, *self.full_disks], from_ms, until_ms)

    def say_when_sent(self) -> None:
        """The answer for a batch in several shares has the time of the last; each delivery has its own."""
        for message in self.messages.values():
            if message.life.settings[0].partitions > 1 and message.fate == "stored":
                times = [delivery.sent_ms for delivery in message.deliveries if delivery.source is None]
                message.sent_ms = min([message.sent_ms, *times])
                message.sent_at_most = not times


def _overlap(spans: list[Span], from_ms: int, until_ms: int) -> bool:
    return any(
        span.asked_ms <= until_ms and (span.answered_ms is None or span.answered_ms >= from_ms)
        for span in spans
    )
