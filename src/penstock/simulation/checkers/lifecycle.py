"""Lifecycle: the lifecycle log, read by an ordinary reader, says about every message exactly what its records say.

This file computes that from the records again, message by message, with dictionaries only.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.columnar.lifecycle import LIFECYCLE, LIFECYCLE_QUEUE, Change
from penstock.columnar.reading import rows_of
from penstock.model import records
from penstock.model.batch import Batch
from penstock.model.records import CATALOGUE, decode_record
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.simulation.history import History
from penstock.simulation.lifecycle_ledger import Event, LifecycleLedger
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.violation import Violation

_NAME = "lifecycle"


def check(history: History) -> Iterable[Violation]:
    """Compares; if bits were flipped, fenced partitions may be missing, and nothing is required."""
    if history.flips:
        return
    created: dict[int, QueueSettings] = {}
    removed: set[int] = set()
    log: list[AppendedRecord] = []
    for written in history.records.get(CATALOGUE, ()):
        record = decode_record(written.head)
        if isinstance(record, records.QueueCreated):
            created[record.partition_id] = record.settings
            if record.name == LIFECYCLE_QUEUE:
                log = history.records.get(record.partition_id, [])
        elif isinstance(record, records.QueueRemoved):
            removed.add(record.partition_id)
    rows = [
        row
        for written in log
        if isinstance(decode_record(written.head), records.Sent)
        for body in Batch(written.payload).bodies()
        for row in rows_of(LIFECYCLE, bytes(body))
    ]
    ledger = LifecycleLedger(rows)
    for problem in ledger.problems:
        yield Violation(_NAME, history.ended_ms, problem)
    for queue_id, settings in created.items():
        if queue_id in removed and history.full_disks:
            continue  # messages deleted while the disk is full may have no rows
        model = LifecycleModel(settings)
        for written in history.records.get(queue_id, ()):
            model.apply(decode_record(written.head))
        told = ledger.messages.get(queue_id, {})
        for sequence in sorted(model.told.keys() | told.keys()):
            wanted, found = model.told.get(sequence, []), told.get(sequence, [])
            if wanted != found:
                yield Violation(
                    _NAME,
                    history.ended_ms,
                    f"message {sequence} of queue {queue_id}: its records say {wanted}, the log says {found}",
                )
                break


class LifecycleModel:
    """The living messages of a queue, each separately, and the ends of those with lifecycle rows."""

    def __init__(self, settings: QueueSettings) -> None:
        self._is_log = not settings.has_queue
        self._following = settings.lifecycle
        self._living: dict[int, bool] = {}
        """Of each message that is there: whether it is on its way elsewhere."""
        self._reasons: dict[int, str] = {}
        self.told: dict[int, list[Event]] = {}

    def apply(self, record: records.Record) -> None:
        match record:
            case records.Sent():
                change = Change.SENT if record.origin is None else Change.ARRIVED
                reason = None if record.origin is None else record.origin.reason
                for sequence in range(record.first, record.first + record.count):
                    self._living[sequence] = False
                    self._tell(sequence, change, record.sent_ms, reason=reason)
            case records.Leased():
                self._each(record.runs, Change.LEASED, record.at_ms, record.lease)
            case records.Released():
                self._each(record.runs, Change.RELEASED, record.at_ms, record.lease, record.reason)
            case records.Extended():
                self._each(record.runs, Change.EXTENDED, record.at_ms, record.lease)
            case records.Resumed():
                self._each(record.runs, Change.RESUMED, record.at_ms, record.lease)
            case records.Matured():
                self._each(record.runs, Change.MATURED, record.at_ms)
            case records.Deleted():
                self._end(_expand(record.runs), Change.DELETED, record.at_ms, record.lease)
            case records.Expired():
                self._end(_expand(record.runs), Change.EXPIRED, record.at_ms, reason=record.reason)
            case records.Dropped():
                self._end(_expand(record.runs), Change.DROPPED, record.at_ms)
            case records.MoveStarted():
                self._each(record.runs, Change.MOVE_STARTED, record.at_ms, reason=record.reason)
                for sequence in _expand(record.runs):
                    self._living[sequence] = True
                    self._reasons[sequence] = record.reason
            case records.SpentMoved():
                self.apply(record.released)
                self.apply(record.started)
            case records.TimersEnded():
                self.apply(record.effect)
            case records.MoveFinished():
                for sequence in _expand(record.runs):
                    why = self._reasons[sequence]
                    self._end([sequence], Change.MOVE_FINISHED, record.at_ms, reason=why)
            case records.MoveAbandoned():
                for sequence in _expand(record.runs):
                    self._living[sequence] = False
                    self._tell(sequence, Change.MOVE_ABANDONED, record.at_ms, reason=self._reasons[sequence])
            case records.Purged():
                self._end(self._before(record.end), Change.PURGED, record.at_ms)
            case records.LogCut() if self._is_log:
                self._end(self._before(record.end), Change.EXPIRED, record.at_ms, reason=record.reason)
            case records.LifecycleEnded():
                self._end(list(self._living), Change.QUEUE_DELETED, record.at_ms)
            case records.SettingsChanged() if record.settings.lifecycle is not self._following:
                self._following = True
                change = Change.STOOD if record.settings.lifecycle else Change.UNFOLLOWED
                for sequence in self._living:
                    self._tell(sequence, change, record.at_ms)
                self._following = record.settings.lifecycle
            case _:
                return

    def _before(self, end: int) -> list[int]:
        return [sequence for sequence, moving in self._living.items() if sequence < end and not moving]

    def _each(
        self, runs: Runs, change: Change, at_ms: int, lease: int | None = None, reason: str | None = None
    ) -> None:
        for sequence in _expand(runs):
            self._tell(sequence, change, at_ms, lease, reason)

    def _end(
        self,
        sequences: Iterable[int],
        change: Change,
        at_ms: int,
        lease: int | None = None,
        reason: str | None = None,
    ) -> None:
        for sequence in sequences:
            self._living.pop(sequence, None)
            self._tell(sequence, change, at_ms, lease, reason)

    def _tell(
        self, sequence: int, change: Change, at_ms: int, lease: int | None = None, reason: str | None = None
    ) -> None:
        if self._following:
            self.told.setdefault(sequence, []).append(Event(change, at_ms, lease, reason))


def _expand(runs: Runs) -> list[int]:
    return [sequence for first, count in runs for sequence in range(first, first + count)]
