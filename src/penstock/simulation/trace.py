"""The trace of a run: one line an event. The same seed writes the same bytes, which is how a run is replayed."""

from __future__ import annotations

from penstock.simulation.schedule import Schedule


class Trace:
    """Lines in order of time."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.lines: list[str] = []

    def add(self, who: str, what: str) -> None:
        """Adds an event."""
        self.lines.append(f"{self._schedule.since_start_ms:>8} {who:<12} {what}")
