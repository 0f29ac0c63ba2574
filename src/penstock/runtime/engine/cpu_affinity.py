"""Where two threads should run that pass the interpreter's lock to each other: a decision, without the system calls.

On one processor the lock and the data that it protects stay in one cache, and releasing it wakes no other processor. But a
thread that is restricted to a processor cannot use another one. So the threads are restricted only while they are busy, to
the processor where the kernel has put them, and released as soon as other programs use its time.
"""

from __future__ import annotations

from typing import NamedTuple

BUSY_SHARE = 0.15
"""Below this share of a processor it does not matter where they run."""
CROWDED_SHARE = 0.25
"""If a thread waits for its processor for more than this share of the time because of other programs, it is released."""
REST_LOOKS = 5
"""So many looks long the kernel then decides alone."""


class Sample(NamedTuple):
    """The kernel's counters of the threads; times since they began, in nanoseconds."""

    at_ns: int
    loop_ran_ns: int
    loop_waited_ns: int
    """How long the event loop's thread could have run and did not, because its processor was taken."""
    partners_ran_ns: int
    """How long the other threads have run."""
    processor: int
    """The processor on which the event loop's thread ran last."""


class AffinityChoice:
    """Is shown samples, one look after the other, and says what to do."""

    def __init__(self) -> None:
        self.kept_on: int | None = None
        self._last: Sample | None = None
        self._rest = 0

    def look(self, sample: Sample) -> bool:
        """Whether `kept_on` has changed: to the processor to use, or to None to release."""
        last, self._last = self._last, sample
        if last is None or sample.at_ns <= last.at_ns:
            return False
        elapsed_ns = sample.at_ns - last.at_ns
        if self.kept_on is None:
            return self._keep_if_busy(sample, sample.loop_ran_ns - last.loop_ran_ns, elapsed_ns)
        # They wait for each other, too, which is no harm: that is never longer than the others ran.
        waited_ns = sample.loop_waited_ns - last.loop_waited_ns
        foreign_ns = waited_ns - (sample.partners_ran_ns - last.partners_ran_ns)
        if foreign_ns <= CROWDED_SHARE * elapsed_ns:
            return False
        self.kept_on = None
        self._rest = REST_LOOKS
        return True

    def _keep_if_busy(self, sample: Sample, ran_ns: int, elapsed_ns: int) -> bool:
        if self._rest:
            self._rest -= 1
            return False
        if ran_ns < BUSY_SHARE * elapsed_ns:
            return False
        self.kept_on = sample.processor
        return True
