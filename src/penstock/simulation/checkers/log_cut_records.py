"""Every cut of a log, by its records: the settings at that moment allowed the removal of the newest batch that was removed.

Clients only see where a log begins when they ask. The records say when each cut was made, with which settings, and what
was after it, so no excuses are needed: neither settings of another time nor a purge.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.batch import Batch
from penstock.model.records import LogCut, Purged, Sent, SettingsChanged, decode_record
from penstock.simulation.history import History
from penstock.simulation.message_history import QueueLife
from penstock.simulation.violation import Violation

NAME = "log-cut"


class _Kept(NamedTuple):
    end: int
    """Behind its last message."""
    size: int
    sent_ms: int


def check(history: History) -> Iterator[Violation]:
    """Cuts that took what the settings promised."""
    for life in history.lives.values():
        if life.settings[0].has_log and life.damaged_ms is None:
            yield from _cuts(life, history)


def _cuts(life: QueueLife, history: History) -> Iterator[Violation]:
    settings, kept = life.settings[0], list[_Kept]()
    for entry in history.records.get(life.queue_id, []):
        record = decode_record(entry.head)
        match record:
            case Sent():
                size = sum(Batch(entry.payload).message_sizes())
                kept.append(_Kept(record.first + record.count, size, record.sent_ms))
            case SettingsChanged():
                settings = record.settings
            case Purged():
                kept = [batch for batch in kept if batch.end > record.end]
            case LogCut():
                gone = [batch for batch in kept if batch.end <= record.end]
                kept = kept[len(gone) :]
                left = sum(batch.size for batch in kept)
                if not gone or gone[-1].sent_ms + settings.retention_ms <= record.at_ms:
                    continue
                if settings.retain_bytes is None or left < settings.retain_bytes:
                    yield Violation(
                        NAME,
                        record.at_ms,
                        f"the log {life.name!r} (id {life.queue_id}) was cut at {record.end} ({record.reason}), with {left} "
                        f"bytes behind it and {settings.retain_bytes} to keep; what went last was sent at "
                        f"{gone[-1].sent_ms}, for {settings.retention_ms} ms",
                    )
            case _:
                pass
