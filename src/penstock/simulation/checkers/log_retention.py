"""Removal of old log batches: never what the settings promise to keep, and in time everything else.

A message stays while it is younger than the retention and among the newest `retain_bytes`. The newest removed message
shows whether a cut was allowed: all earlier ones are older, and have more bytes after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.batch import Batch
from penstock.model.records import Purged, Sent, decode_record
from penstock.simulation.checkers import log_cut_records
from penstock.simulation.history import History
from penstock.simulation.log_history import BoundsSeen, OffsetGone
from penstock.simulation.message_history import ENDLESS_MS, QueueLife
from penstock.simulation.violation import Violation

NAME = "log-cut"

_CLEANED_MS = 2_000
"""A message must be removed within this time after no setting promises it."""


class _Logged(NamedTuple):
    sent_ms: int
    size: int
    batch: int
    """The first of its batch: a batch goes as a whole."""


def check(history: History) -> Iterator[Violation]:
    """Cuts that came too early, and missing cuts."""
    yield from log_cut_records.check(history)
    last: dict[int, BoundsSeen] = {}
    contents: dict[int, dict[int, _Logged]] = {}
    purged: dict[int, int] = {}
    gone: list[tuple[QueueLife, int, int]] = [
        (seen.life, seen.begin - 1, seen.answered_ms) for seen in history.log.bounds if seen.begin > 1
    ]
    gone += [(seen.life, seen.start, seen.answered_ms) for seen in history.log.gone if _is_offset(seen)]
    for life, offset, at_ms in gone:
        if life.damaged_ms is not None or offset < purged.setdefault(
            life.queue_id, _purged_end(life, history)
        ):
            continue
        logged = contents.setdefault(life.queue_id, {})
        if not logged:
            logged.update(_contents(life, history))
        if offset in logged and not _may_go(life, offset, at_ms + history.skew_ms, logged):
            yield Violation(
                NAME,
                at_ms,
                f"{offset} of the log {life.name!r}, sent at {logged[offset].sent_ms}, is gone at {at_ms}: retention "
                f"{life.least_ms('retention_ms')} ms, {life.settings[-1].retain_bytes} bytes",
            )
    for seen in history.log.bounds:
        last[seen.life.queue_id] = seen
    for queue_id, seen in last.items():
        if seen.life.damaged_ms is None and history.was_well(seen.asked_ms - _CLEANED_MS, seen.asked_ms):
            logged = contents.get(queue_id) or _contents(seen.life, history)
            yield from _still_there(seen, logged)


def _is_offset(seen: OffsetGone) -> bool:
    return seen.start > 0


def _contents(life: QueueLife, history: History) -> dict[int, _Logged]:
    """Everything that was ever in the log, acknowledged or not."""
    found: dict[int, _Logged] = {}
    for entry in history.records.get(life.queue_id, []):
        record = decode_record(entry.head)
        if isinstance(record, Sent):
            for index, size in enumerate(Batch(entry.payload).message_sizes()):
                found[record.first + index] = _Logged(record.sent_ms, size, record.first)
    return found


def _purged_end(life: QueueLife, history: History) -> int:
    """Below it everything was purged."""
    records = (decode_record(entry.head) for entry in history.records.get(life.queue_id, []))
    return max((record.end for record in records if isinstance(record, Purged)), default=0)


def _least_bytes(life: QueueLife) -> int:
    return min(
        ENDLESS_MS if settings.retain_bytes is None else settings.retain_bytes for settings in life.settings
    )


def _may_go(life: QueueLife, offset: int, at_ms: int, logged: dict[int, _Logged]) -> bool:
    if logged[offset].sent_ms + life.least_ms("retention_ms") <= at_ms:
        return True
    newer = sum(row.size for other, row in logged.items() if other >= offset and row.sent_ms <= at_ms)
    return newer > _least_bytes(life)


def _still_there(seen: BoundsSeen, logged: dict[int, _Logged]) -> Iterator[Violation]:
    """Whether the oldest message should have been cleaned up by the end of the run."""
    life = seen.life
    oldest = logged.get(seen.begin)
    if oldest is None:
        return
    most_ms = max(settings.retention_ms for settings in life.settings)
    if oldest.sent_ms + most_ms + _CLEANED_MS < seen.asked_ms:
        yield Violation(
            NAME,
            seen.answered_ms,
            f"{seen.begin} of the log {life.name!r}, sent at {oldest.sent_ms}, is still there",
        )
    most_bytes = max(
        ENDLESS_MS if settings.retain_bytes is None else settings.retain_bytes for settings in life.settings
    )
    newest_ms = max(row.sent_ms for row in logged.values())
    behind = sum(
        row.size for offset, row in logged.items() if offset >= seen.begin and row.batch != oldest.batch
    )
    if behind >= most_bytes and newest_ms + _CLEANED_MS < seen.asked_ms:
        yield Violation(
            NAME,
            seen.answered_ms,
            f"{seen.begin} of the log {life.name!r} is still there, with {behind} bytes behind it",
        )
