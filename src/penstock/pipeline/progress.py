"""The progress of a run: figures for the terminal, for monitoring and for the end."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from penstock.metrics.exposition import Family, Sample
from penstock.model.number_gaps import NumberGaps
from penstock.pipeline.batches import BatchDone

_LATELY_SECONDS = 30.0


@dataclass
class Progress:
    """The figures of one run. Batches are counted in Spark's thread, and read in others."""

    job: str
    batches: int = 0
    rows: int = 0
    repeated: int = 0
    missing: int = 0
    """Rows that never came, by their numbers."""
    last_batch: int = -1
    batch_seconds: float = 0.0
    lag_seconds: float | None = None
    """How old the youngest row was when its batch was in the table."""
    lag_messages: int | None = None
    """Messages of the log that were not read yet."""
    roll_ups: int = 0
    findings: int | None = None
    _lock: Lock = field(default_factory=Lock, repr=False)
    _recent: list[tuple[float, int]] = field(default_factory=list, repr=False)

    def add_batch(self, done: BatchDone) -> None:
        """A batch is in its tables."""
        now = time.monotonic()
        with self._lock:
            self.batches += 1
            self.rows += done.rows
            self.repeated += done.repeated
            self.last_batch = done.batch
            self.batch_seconds = done.seconds
            if done.latest is not None:
                # Spark gives times in the session's zone, which is UTC, as times of this computer.
                self.lag_seconds = max(0.0, time.time() - done.latest.timestamp())
            self._recent.append((now, done.rows))
            self._recent = [one for one in self._recent if one[0] > now - _LATELY_SECONDS]
            self._recent = self._recent[-1000:]

    @property
    def rows_per_second(self) -> float:
        """Over the last half minute."""
        now = time.monotonic()
        with self._lock:
            recent = [one for one in self._recent if one[0] > now - _LATELY_SECONDS]
            if not recent:
                return 0.0
            since = recent[0][0] - self.batch_seconds
            return sum(rows for _, rows in recent) / max(now - since, 0.001)

    def note_offsets(self, source: Mapping[str, Any]) -> None:
        """The query's lag behind the log's end, from Spark's report about its source."""
        said = _offset(source.get("latestOffset"))
        ends, latest = _following(_offset(source.get("endOffset"))), _following(said)
        if latest:
            gaps = said.get("gaps") or {}
            self.lag_messages = sum(
                NumberGaps((start, end) for start, end in gaps.get(one, ())).messages(
                    ends.get(one, 0), number
                )
                for one, number in latest.items()
            )

    def facts(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "job": self.job,
            "batches": self.batches,
            "rows": self.rows,
            "repeated_rows": self.repeated,
            "missing_rows": self.missing,
            "rows_per_second": round(self.rows_per_second),
            "batch_seconds": round(self.batch_seconds, 3),
            "lag_seconds": None if self.lag_seconds is None else round(self.lag_seconds, 3),
            "lag_messages": self.lag_messages,
            "roll_ups": self.roll_ups,
        }

    def families(self) -> list[Family]:
        """For monitoring."""
        labels = {"job": self.job}
        gauges: list[tuple[str, str, float | None]] = [
            ("rows_per_second", "Rows a second over the last half minute.", self.rows_per_second),
            ("batch_seconds", "How long the last micro-batch took.", self.batch_seconds),
            (
                "lag_seconds",
                "How old the youngest row was when its batch was in the table.",
                self.lag_seconds,
            ),
            ("lag_messages", "Messages of the log that were not read yet.", self.lag_messages),
            (
                "missing_rows",
                "Rows that never reached the job: lost before the log, or removed from the log before they were read.",
                self.missing,
            ),
        ]
        counters = [
            ("batches_total", "Micro-batches since the run began.", self.batches),
            ("rows_total", "New rows since the run began.", self.rows),
            ("repeated_rows_total", "Rows that came more than once, and were counted once.", self.repeated),
            ("roll_ups_total", "Roll-ups since the run began.", self.roll_ups),
        ]
        return [
            *(
                Family(f"penstock_pipeline_{name}", "gauge", meaning, [Sample(value, labels)])
                for name, meaning, value in gauges
                if value is not None
            ),
            *(
                Family(f"penstock_pipeline_{name}", "counter", meaning, [Sample(value, labels)])
                for name, meaning, value in counters
            ),
        ]


def _offset(offset: object) -> Mapping[str, Any]:
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    return offset if isinstance(offset, Mapping) else {}


def _following(offset: Mapping[str, Any]) -> dict[str, int]:
    following = offset.get("next")
    return (
        {str(one): int(number) for one, number in following.items()} if isinstance(following, Mapping) else {}
    )
