"""The speed of a simulation campaign: seeds a minute, in the progress bar or as a line a minute."""

from __future__ import annotations

LINE_SECONDS = 60.0


class SeedPace:
    """Counts the seeds of one campaign. Times are seconds of a clock that never goes back."""

    def __init__(self, total: int, now: float) -> None:
        self._total = total
        self._started = self._said = now
        self._done = self._failed = 0

    def ended(self, *, failed: bool) -> None:
        """One more seed was run."""
        self._done += 1
        self._failed += failed

    def a_minute(self, now: float) -> float:
        """Seeds a minute since the start."""
        return 60.0 * self._done / max(now - self._started, 1e-9)

    def note(self, now: float) -> str:
        """For a progress bar."""
        failed = f", {self._failed} with violations" if self._failed else ""
        return f"{self.a_minute(now):,.0f} a minute{failed}"

    def line(self, now: float) -> str | None:
        """For a log, once a minute."""
        if now - self._said < LINE_SECONDS:
            return None
        self._said = now
        return f"{self._done} of {self._total} seeds, {self.note(now)}"
