"""Where the flush of a lone request runs: on the event loop's own thread, or in the flush thread.

With one request in a turn of the loop there is nothing to overlap its flush with, and waking another thread and
being woken by it costs some 56 µs where a sync takes 200 to 300. On a machine whose cores were all busy it has been
the other way round, presumably because a thread that sleeps most of the time gets a core at once and the loop's own
thread waits for its turn. So both are measured, and the quicker one is used. See `docs/adr/0007-a-lone-request-flushes-inline.md`.
"""

from __future__ import annotations

from collections import deque

INLINE_SECONDS = 0.002
"""A slower disk never holds up the loop; the cost of a hand-off does not matter there."""
TRY_OTHER_EVERY = 64
"""Every so many lone flushes the other place is tried, to see whether things have changed."""
SAMPLES = 15
"""Medians are taken of so many, and the two places take turns until each has them."""


class LoneFlush:
    """Keeps the median time of a lone flush in either place, and says which one is next."""

    def __init__(self) -> None:
        self._inline = _Median()
        self._thread = _Median()
        self._count = 0

    def runs_inline(self) -> bool:
        """Whether the next lone flush runs on the loop's thread."""
        self._count += 1
        if self._count <= 2 * SAMPLES:
            return self._count % 2 == 0
        inline = self._inline.seconds <= self._thread.seconds and self._inline.seconds < INLINE_SECONDS
        return inline is not (self._count % TRY_OTHER_EVERY == 0)

    def took(self, seconds: float, *, inline: bool) -> None:
        """A lone flush took so long, from being handed out to being reported."""
        (self._inline if inline else self._thread).add(seconds)


class _Median:
    """The median of the last samples: a rare stall does not move it."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=SAMPLES)
        self.seconds = 0.0

    def add(self, sample: float) -> None:
        self._samples.append(sample)
        self.seconds = sorted(self._samples)[len(self._samples) // 2]
