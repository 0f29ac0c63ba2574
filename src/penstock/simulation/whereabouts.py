"""Where messages ended, by the records of all partitions: this makes the excuse "its queue was deleted" exact.

A deleted queue excuses only messages that were in it and should not leave it. A message that was moving to another queue,
or was delayed with a dead-letter queue, must be there; and a message that left must have arrived. So the records of all
partitions are applied again, to the product's own `Partition`, and each message is followed from queue to queue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from penstock.model.batch import Batch
from penstock.model.move_target import target_of
from penstock.model.records import (
    Deleted,
    Dropped,
    Expired,
    MoveFinished,
    Purged,
    QueueCreated,
    QueueDeleted,
    QueueRemoved,
    Sent,
    TimersEnded,
    decode_record,
)
from penstock.model.run_set import RunSet
from penstock.model.runs import count_of
from penstock.model.settings import QueueSettings
from penstock.queue.partition import Partition
from penstock.queue.state import states
from penstock.routing.numbers import inward
from penstock.simulation.message_history import QueueLife, SentMessage
from penstock.simulation.observed_store import AppendedRecord

FateKind = Literal[
    "deleted", "expired", "dropped", "purged", "left", "living", "went with its queue", "lost", "absent"
]
_ENDS: dict[type, FateKind] = {Deleted: "deleted", Expired: "expired", Dropped: "dropped"}

Place = tuple[int, int]
"""(partition, sequence number there)."""


class PartitionLog(NamedTuple):
    """A partition and all records of the surviving log."""

    partition: int
    queue_id: int
    ordinal: int
    name: str
    settings: QueueSettings
    """When it was made."""
    records: list[AppendedRecord]
    is_there: bool
    """Whether any node holds it at the end of the run."""
    unclean: bool = False
    """Whether an operator let a replica lead it that was not in sync."""


class Fate(NamedTuple):
    """What happened to a message at its last place, by the records."""

    kind: FateKind
    queue_id: int
    at_ms: int = 0
    """By the clock of the node that wrote the record; 0: no record says so."""
    is_first_place: bool = True
    """Whether it never left the queue that it was sent to."""


class _Replayed(NamedTuple):
    log: PartitionLog
    state: Partition
    left: set[int]
    """Messages recorded as arrived elsewhere."""
    living: set[int]
    ended: dict[int, tuple[FateKind, int]]
    """Messages that a record ended: how, and when."""


class Whereabouts:
    """All partitions of a run, replayed."""

    def __init__(
        self,
        logs: Iterable[PartitionLog],
        lives: Iterable[QueueLife],
        elsewhere: Mapping[int, Collection[int]] = MappingProxyType({}),
    ) -> None:
        """`elsewhere`: by partition, the numbers of messages in any log of it, also in those that a failover cut."""
        self._elsewhere = elsewhere
        self._arrivals: dict[Place, list[Place]] = {}
        self._replayed: dict[int, _Replayed] = {}
        self._broken: list[str] = []
        for log in logs:
            try:
                self._replayed[log.partition] = self._replay(log)
            except (LookupError, ValueError, AssertionError) as error:
                self._broken.append(
                    f"the records of partition {log.partition} of queue {log.name!r} cannot be applied again: {error!r}"
                )
        self._partitions = {
            (one.log.queue_id, one.log.ordinal): partition for partition, one in self._replayed.items()
        }
        self._deleted: dict[str, bool] = {}
        """By name: whether a queue of it was ever deleted, or may have been."""
        for life in lives:
            self._deleted[life.name] = (
                self._deleted.get(life.name, False) or life.deletion_asked_ms is not None
            )

    def _replay(self, log: PartitionLog) -> _Replayed:
        state, left = Partition(log.partition, log.name, log.settings, 0), set[int]()
        living, ended = set[int](), dict[int, tuple[FateKind, int]]()
        for written in log.records:
            record = decode_record(written.head)
            assert not isinstance(record, QueueCreated | QueueDeleted | QueueRemoved)
            batch = Batch(written.payload) if isinstance(record, Sent) else None
            if isinstance(record, Sent) and record.origin is not None:
                sources = [s for first, count in record.origin.runs for s in range(first, first + count)]
                for place, source in enumerate(sources, record.first):
                    self._arrivals.setdefault((record.origin.source_id, source), []).append(
                        (log.partition, place)
                    )
            elif isinstance(record, MoveFinished):
                left.update(s for first, count in record.runs for s in range(first, first + count))
            state.apply(record, batch, written.position)
            outcome = record.effect if isinstance(record, TimersEnded) else record
            match outcome:
                case Sent():
                    living.update(range(outcome.first, outcome.first + outcome.count))
                case MoveFinished():
                    living -= left
                case Deleted() | Expired() | Dropped():
                    named = {s for first, count in outcome.runs for s in range(first, first + count)}
                    _end(state, living, ended, named, _ENDS[type(outcome)], outcome.at_ms)
                case Purged():
                    named = {number for number in living if number < outcome.end}
                    _end(state, living, ended, named, "purged", outcome.at_ms)
                case _:
                    pass
        return _Replayed(log, state, left, living, ended)

    def _is_gone(self, target: str) -> bool:
        """Whether the queue that messages were on their way to may have been deleted as well."""
        name = target_of(target).name.partition("~")[0]
        return self._deleted.get(name, True)

    def fates(self, message: SentMessage) -> list[Fate] | None:
        """The fates of a stored message at every place that it reached; None: the records of its partition are unknown."""
        ordinal, number = inward(message.sequence)
        partition = self._partitions.get((message.life.queue_id, ordinal))
        return None if partition is None else self._fates((partition, number), is_first=True)

    def _fates(self, place: Place, *, is_first: bool) -> list[Fate]:
        arrivals = [arrival for arrival in self._arrivals.get(place, ()) if arrival != place]
        if arrivals:
            return [fate for arrival in arrivals for fate in self._fates(arrival, is_first=False)]
        partition, number = place
        log, _, left, living, ended = self._replayed[partition]
        if number in ended:
            kind, at_ms = ended[number]
            return [Fate(kind, log.queue_id, at_ms, is_first)]
        if number in left:
            return [Fate("left", log.queue_id, 0, is_first)]
        if number in living:
            return [Fate("living" if log.is_there else "went with its queue", log.queue_id, 0, is_first)]
        is_lost = number in self._elsewhere.get(partition, ())
        return [Fate("lost" if is_lost else "absent", log.queue_id, 0, is_first)]

    # -- questions -------------------------------------------------------------------------------------------

    def lost(self, message: SentMessage) -> str | None:
        """Why a stored message is lost, as a sentence; None: the records explain its end."""
        ordinal, number = inward(message.sequence)
        partition = self._partitions.get((message.life.queue_id, ordinal))
        return None if partition is None else self._lost((partition, number))

    def _lost(self, place: Place) -> str | None:
        arrivals = self._arrivals.get(place)
        if arrivals:
            # It may have arrived in a queue that was deleted then, and again elsewhere: one of them is enough.
            sentences = [self._lost(arrival) for arrival in arrivals if arrival != place]
            return None if any(sentence is None for sentence in sentences) else sentences[0]
        partition, number = place
        if partition not in self._replayed:
            return None
        log, state, left, *_ = self._replayed[partition]
        where = f"{number} of partition {partition} of queue {log.name!r}"
        if number in left:
            return f"{where} left it and arrived nowhere"
        kind = state.table.state(number) & states.STATE_BITS
        if log.is_there or kind == states.GONE:
            return None
        if kind == states.DELAYED and self._has_place(state.settings):
            return f"{where} was delayed and went with its queue, which has the dead-letter queue {state.settings.dead_letter_queue!r}"
        if kind == states.MOVING:
            for (target, _), runs in state.moves.items():
                if runs.among([(number, 1)]) and not self._is_gone(target):
                    return f"{where} was on its way to {target!r} and went with its queue"
        return None

    def _has_place(self, settings: QueueSettings) -> bool:
        target = settings.dead_letter_queue
        return target is not None and not self._is_gone(target)

    def doubled(self) -> Iterator[str]:
        """Messages that arrived more than once, in the next queue of a name as well as in one that was deleted, say.

        An unclean election may lose that a message has arrived, or that it has left.
        """
        for (partition, number), arrivals in self._arrivals.items():
            logs = [self._replayed[one].log for one in (partition, *dict(arrivals)) if one in self._replayed]
            if len(arrivals) > 1 and not any(log.unclean for log in logs):
                places = [f"{place} of partition {one}" for one, place in arrivals]
                yield f"{number} of partition {partition} arrived more than once: {', '.join(places)}"

    def dropped(self) -> Iterator[str]:
        """Partitions that were dropped with messages that were to leave them."""
        yield from self._broken
        for log, state, *_ in self._replayed.values():
            if log.is_there:
                continue
            where = f"partition {log.partition} of queue {log.name!r} was dropped"
            for (target, reason), runs in state.moves.items():
                lost = self._unarrived(log.partition, runs)
                if lost and not self._is_gone(target):
                    yield f"{where} with {lost} messages on their way to {target!r} ({reason})"
            delayed = state.table.counts[states.DELAYED]
            if delayed and self._has_place(state.settings):
                yield f"{where} with {delayed} delayed messages that have a dead-letter queue"

    def _unarrived(self, partition: int, runs: RunSet) -> int:
        arrived = sum(
            (partition, number) in self._arrivals
            for first, count in runs
            for number in range(first, first + count)
        )
        return count_of(runs) - arrived


def _end(
    state: Partition,
    living: set[int],
    ended: dict[int, tuple[FateKind, int]],
    named: set[int],
    kind: FateKind,
    at_ms: int,
) -> None:
    """Notes which of the messages that a record names it has ended."""
    for number in named & living:
        if state.table.state(number) & states.STATE_BITS == states.GONE:
            living.discard(number)
            ended[number] = (kind, at_ms)
