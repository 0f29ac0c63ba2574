"""Late messages of best-effort queues: messages older than delivered ones are served first, and counted.

By the records: a batch with stamps is late when its oldest message is older than the oldest of some batch that was
delivered before. While there are late messages that were not received yet, no others are delivered.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model import records
from penstock.model.batch import STAMPS, Batch
from penstock.model.runs import Runs
from penstock.simulation.history import History
from penstock.simulation.message_history import QueueLife
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.violation import Violation

NAME = "heads"


def check(history: History) -> Iterator[Violation]:
    """Late messages that were not seen to be, or had to wait."""
    for life in history.lives.values():
        if life.strict or life.damaged_ms is not None or not life.settings[0].has_queue:
            continue
        line = _Line()
        for entry in history.records.get(life.queue_id, []):
            for at_ms, sentence in line.apply(entry):
                yield Violation(NAME, at_ms, f"queue {life.name!r}: {sentence}")
        yield from _counted(life, line, history)


def _counted(life: QueueLife, line: _Line, history: History) -> Iterator[Violation]:
    if life.statistics is not None and life.statistics.late_total != line.late_total:
        yield Violation(
            NAME,
            history.ended_ms,
            f"queue {life.name!r} counts {life.statistics.late_total} late messages, there were {line.late_total}",
        )


class _Line:
    """One queue, record by record."""

    def __init__(self) -> None:
        self.late_total = 0
        self._stamps: dict[int, int] = {}
        """The oldest stamp of the batch of each message that has one."""
        self._newest_us = 0
        self._ahead: set[int] = set()
        """Late messages that were not received yet."""

    def apply(self, entry: AppendedRecord) -> Iterator[tuple[int, str]]:
        record = records.decode_record(entry.head)
        match record.effect if isinstance(record, records.TimersEnded) else record:
            case records.Sent() as sent if sent.origin is None:
                yield from self._sent(sent, Batch(entry.payload))
            case records.Leased() as leased:
                yield from self._leased(leased)
            case records.Purged():
                self._ahead.clear()
            case (
                records.Expired()
                | records.Dropped()
                | records.MoveStarted()
                | records.SpentMoved()
                | records.Deleted()
            ) as gone:
                self._ahead.difference_update(_sequences(gone.runs))
            case _:
                pass

    def _sent(self, record: records.Sent, batch: Batch) -> Iterator[tuple[int, str]]:
        times = batch.integers(STAMPS)
        if times is None and not record.stamp_us:
            return
        oldest_us = record.stamp_us if times is None else min(times)
        sequences = range(record.first, record.first + record.count)
        # A stamp from the future counts as one of the time at which it arrived.
        self._stamps.update(dict.fromkeys(sequences, min(oldest_us, record.sent_ms * 1_000)))
        late = record.count if oldest_us < self._newest_us else 0
        if record.late != late:
            found = f"the oldest is from {oldest_us}, the newest that was handed out from {self._newest_us}"
            yield (
                record.sent_ms,
                f"{record.late} from {record.first} on are said to be late, {late} are: {found}",
            )
        self.late_total += record.late
        if record.late:
            self._ahead.update(sequences)

    def _leased(self, record: records.Leased) -> Iterator[tuple[int, str]]:
        leased = set(_sequences(record.runs))
        others = leased - self._ahead
        self._ahead -= leased
        if others and self._ahead:
            yield (
                record.at_ms,
                f"{min(others)} was handed out (lease {record.lease}) while {min(self._ahead)}, which is late, waited",
            )
        stamps = [self._stamps[sequence] for sequence in leased if sequence in self._stamps]
        self._newest_us = max([self._newest_us, *stamps])


def _sequences(runs: Runs) -> Iterator[int]:
    return (sequence for first, count in runs for sequence in range(first, first + count))
