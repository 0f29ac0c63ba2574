"""An interval that contains true time, and what a queue does when it is too wide.

No process knows the exact time; it knows two bounds. An order that is decided by comparing intervals is right for every
behaviour of the clocks inside them, and their width says how long order takes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Readiness = Literal["go", "hold", "refuse"]


class ClockInterval(NamedTuple):
    """True time, in microseconds since 1970, is not before `earliest_us` and not after `latest_us`."""

    earliest_us: int
    latest_us: int

    @property
    def middle_us(self) -> int:
        """The best guess."""
        return (self.earliest_us + self.latest_us) // 2

    @property
    def uncertainty_us(self) -> int:
        """How far the best guess may be off."""
        return (self.latest_us - self.earliest_us + 1) // 2

    def furthest_us(self, time_us: int) -> int:
        """How far true time may be from this."""
        return max(self.latest_us - time_us, time_us - self.earliest_us)

    def holds(self, time_us: int) -> bool:
        """Whether true time may be this."""
        return self.earliest_us <= time_us <= self.latest_us

    def hull(self, other: ClockInterval) -> ClockInterval:
        """The smallest interval that contains both."""
        return ClockInterval(min(self.earliest_us, other.earliest_us), max(self.latest_us, other.latest_us))

    def contradicts(self, other: ClockInterval) -> bool:
        """Whether the two have no time in common."""
        return self.earliest_us > other.latest_us or other.earliest_us > self.latest_us


def around(time_us: int, error_us: int) -> ClockInterval:
    """A reading and its error bound, as chrony and ClockBound give them."""
    return ClockInterval(time_us - error_us, time_us + error_us)


class UncertaintyPolicy(NamedTuple):
    """How wide the interval may be for a strict queue, and what happens to sends while it is wider."""

    max_uncertainty_us: int
    when_wider: Literal["hold", "refuse"] = "refuse"

    def judge(self, now: ClockInterval | None) -> Readiness:
        """Whether to continue. None is a clock that has not been compared with any other yet."""
        if now is not None and now.uncertainty_us <= self.max_uncertainty_us:
            return "go"
        return self.when_wider

    def explain(self, now: ClockInterval | None) -> str:
        """Why a send is held or refused, for the one who sent it."""
        if now is None:
            return "the server's clock is not synchronized yet; `penstock clock` shows what it waits for"
        return (
            f"the server's clock is uncertain by {now.uncertainty_us} µs, more than the {self.max_uncertainty_us} µs "
            "that the queue allows (its max_uncertainty); `penstock clock` shows where it has the time from"
        )
