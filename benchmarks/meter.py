"""The clock and the processor time of a task."""

from __future__ import annotations

import time

from benchmarks.figures import latency
from benchmarks.tasks import Outcome


class Meter:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._cpu_seconds = time.process_time()
        self._started_ns = time.monotonic_ns()

    def outcome(
        self,
        messages: int,
        samples_ns: list[int] | None = None,
        timed_seconds: float = 0.0,
        *,
        served: dict[str, int] | None = None,
        longest_gap: int = 0,
    ) -> Outcome:
        """What was done until now."""
        return Outcome(
            messages=messages,
            started_ns=self._started_ns,
            ended_ns=time.monotonic_ns(),
            cpu_seconds=time.process_time() - self._cpu_seconds,
            timed_seconds=timed_seconds,
            latency=latency(samples_ns) if samples_ns else None,
            served=served or {},
            longest_gap=longest_gap,
        )
