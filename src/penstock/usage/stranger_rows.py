"""Usage rows of unknown callers: a few of each minute unchanged, the others as sums.

The usage log has a limited size. Otherwise any client that can reach a port could push the rows of users out of it, by
sending requests without a key until the log is full of them.
"""

from __future__ import annotations

from penstock.columnar.usage import REFUSED
from penstock.model.limits import MINUTE_MS
from penstock.usage.event import Row, UsageEvent

ROWS_A_MINUTE = 100
"""Of one front end: in the two weeks that rows are kept they take a tenth of the log."""
KINDS = 64
"""So many sums there are at once. Outcomes are words of the program, and fewer."""
_OTHERS = "others"


class StrangerRows:
    """Those of one front end. It has no clock: a row contains the time of its request."""

    def __init__(self) -> None:
        self._minute = 0
        self._taken = 0
        """Rows of this minute that were kept as they are."""
        self._sums: dict[tuple[str, int], UsageEvent] = {}
        """The other rows of this minute, by outcome and status."""

    def take(self, row: Row) -> list[Row]:
        """The rows to write for a refused request: the sums of a minute that is over, and the row unless it is summed."""
        event = UsageEvent(*row)
        due = self.due(event.time_ms)
        minute = event.time_ms // MINUTE_MS
        if minute > self._minute:
            self._minute, self._taken = minute, 0
        if self._taken < ROWS_A_MINUTE:
            self._taken += 1
            return [*due, row]
        self._add(event)
        return due

    def due(self, now_ms: int) -> list[Row]:
        """The sums, if their minute is over."""
        return self.rest() if now_ms // MINUTE_MS > self._minute else []

    def rest(self) -> list[Row]:
        """The sums, also of a minute that is not over."""
        sums, self._sums = self._sums, {}
        return [event.row() for event in sums.values()]

    def _add(self, event: UsageEvent) -> None:
        kind = event.outcome, event.status
        if kind not in self._sums and len(self._sums) >= KINDS:
            kind = _OTHERS, 0
        known = self._sums.get(kind)
        self._sums[kind] = UsageEvent(
            time_ms=known.time_ms if known is not None else event.time_ms,
            account="",
            user="",
            address=event.address if known is None or known.address == event.address else "",
            action=REFUSED,
            queue="",
            messages=1 + (known.messages if known is not None else 0),
            bytes_in=event.bytes_in + (known.bytes_in if known is not None else 0),
            bytes_out=event.bytes_out + (known.bytes_out if known is not None else 0),
            outcome=kind[0],
            status=kind[1],
            latency_us=max(event.latency_us, known.latency_us if known is not None else 0),
            request_id="",
        )
