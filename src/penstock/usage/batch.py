"""A batch of usage: rows of requests for the log."""

from __future__ import annotations

from typing import NamedTuple

from penstock.columnar.arrow import arrow_stream
from penstock.columnar.usage import USAGE
from penstock.usage.event import Row, UsageEvent
from penstock.usage.spool import Spool


class UsageBatch(NamedTuple):
    """Sent under (`producer`, `batch`), it is stored once however often it is sent."""

    spool: Spool
    front_end: str
    producer: int
    batch: int
    numbers: list[int]
    rows: list[Row]
    end: int
    """Where the spool continues."""

    @property
    def events(self) -> list[UsageEvent]:
        """The rows as objects, for access to single ones."""
        return [UsageEvent(*row) for row in self.rows]

    def stream(self) -> bytes:
        """The rows as Arrow."""
        if not self.rows:
            return arrow_stream(USAGE, [() for _ in USAGE.columns])
        time_ms, *columns = zip(*self.rows, strict=True)
        times_us = [time * 1000 for time in time_ms]
        return arrow_stream(USAGE, [times_us, [self.front_end] * len(times_us), self.numbers, *columns])

    def convertible(self) -> UsageBatch:
        """The same without the rows that cannot be turned into Arrow: a number that is too large for its column, for instance."""
        kept = [place for place in range(len(self.rows)) if self._is_convertible(place)]
        return self._replace(
            numbers=[self.numbers[place] for place in kept], rows=[self.rows[place] for place in kept]
        )

    def _is_convertible(self, place: int) -> bool:
        try:
            self._replace(numbers=[self.numbers[place]], rows=[self.rows[place]]).stream()
        except Exception:  # one bad row must not stop the others
            return False
        return True
