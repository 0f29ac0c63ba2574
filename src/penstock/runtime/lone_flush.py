"""Where the flush of a lone request runs: on the event loop's own thread, or in the flush thread.

With one request in a turn of the loop there is nothing to overlap its flush with, and waking another thread and
being woken by it costs 50 to 90 µs where a sync takes 200. On a machine whose cores are all busy it is the other
way round: a thread that sleeps most of the time gets a core at once, the loop's own thread waits for its turn. So
both are measured, and the quicker one is used. See `docs/adr/0007-a-lone-request-flushes-inline.md`.
"""

from __future__ import annotations

INLINE_SECONDS = 0.002
"""A slower disk never holds up the loop; the cost of a hand-off does not matter there."""
TRY_OTHER_EVERY = 64
"""Every so many lone flushes the other place is tried, to see whether things have changed."""
STEP = 0.05


class LoneFlush:
    """Keeps the median time of a lone flush in either place, and says which one is next."""

    def __init__(self) -> None:
        self._inline_seconds = 1e-6
        self._thread_seconds = 1e-6
        self._count = 0

    def runs_inline(self) -> bool:
        """Whether the next lone flush runs on the loop's thread."""
        self._count += 1
        inline = self._inline_seconds <= self._thread_seconds and self._inline_seconds < INLINE_SECONDS
        return inline is not (self._count % TRY_OTHER_EVERY == 0)

    def took(self, seconds: float, *, inline: bool) -> None:
        """A lone flush took so long, from being handed out to being reported."""
        if inline:
            self._inline_seconds = _median(self._inline_seconds, seconds)
        else:
            self._thread_seconds = _median(self._thread_seconds, seconds)


def _median(estimate: float, sample: float) -> float:
    """A running median: steps towards every sample by the same share, so that a rare stall moves it no further."""
    if estimate <= 1e-6:
        return sample
    return estimate * (1 + STEP) if sample > estimate else estimate * (1 - STEP)
