"""Another replica as the primary sees it: what it has, whether it lags, and whether it is close enough to come in.

A replica out of sync that is sent as much as it takes is always a moment behind while messages keep coming: whenever
somebody looks, something more is committed. So it need not be caught having everything. It is close when it confirms
within `CLOSE_MS` all that was there before; then commits wait for it as if it were in sync, and so it has everything soon.
"""

from __future__ import annotations

from dataclasses import dataclass

LAG_MS = 1_000
"""A replica in sync that has not confirmed what it was sent for so long is to be taken out."""
LAST_LAG_MS = 3_000
"""The same where too few would be left to take sends: then to wait a little longer costs less than to refuse."""
CLOSE_MS = 300
"""Who is so far behind at most, and makes that up in the same time, may come in."""
AWAIT_MS = 600
"""Commits wait so long at most for one that comes in to have everything."""
AWAIT_AGAIN_MS = 10_000
"""Who was waited for in vain is not waited for again so soon."""


@dataclass(slots=True)
class Follower:
    """One other replica."""

    joined: int = 0
    """Which of the node's memberships this is (`PartitionEntry.joined`)."""
    confirmed: int = 0
    """Up to which record its disk has the log, as it said itself; 0: it has said nothing yet."""
    waiting_since_ms: int | None = None
    """Since when there is something that it has not confirmed; None: it has everything."""
    aim: int = 0
    """The last record at `aimed_ms`; 0: none was noted."""
    aimed_ms: int = 0
    trail_ms: int = 0
    """How long it took to confirm all that was there, when that was last measured."""
    trail_measured_ms: int | None = None
    awaited_until_ms: int | None = None
    """It is let in: until then commits wait for it, so that it has everything."""
    not_before_ms: int | None = None
    """It was waited for in vain, and is not again before this."""
    vouched_ms: int = 0
    """The primary sent it something then, or later, and it has confirmed that: it knew of no later primary."""

    def heard(self, last: int, now_ms: int) -> None:
        """It has confirmed more: was that everything there was a moment ago?"""
        if self.confirmed < self.aim:
            return
        if self.aim:
            self.trail_ms, self.trail_measured_ms = now_ms - self.aimed_ms, now_ms
        self.aim, self.aimed_ms = last, now_ms

    def trails_by(self, limit_ms: int, now_ms: int) -> bool:
        """Whether it is so little behind, and has been heard of since."""
        if self.trail_measured_ms is None:
            return False
        return self.trail_ms <= limit_ms and now_ms - self.trail_measured_ms <= limit_ms

    def await_if_close(self, now_ms: int) -> None:
        """Commits wait for it from now on, if it is close and was not waited for in vain lately."""
        may_try = self.not_before_ms is None or now_ms >= self.not_before_ms
        if self.awaited_until_ms is None and may_try and self.trails_by(CLOSE_MS, now_ms):
            self.awaited_until_ms = now_ms + AWAIT_MS

    def disappointed(self, now_ms: int) -> None:
        """It was waited for in vain."""
        self.awaited_until_ms = None
        self.not_before_ms = now_ms + AWAIT_AGAIN_MS

    def lost(self) -> None:
        """It starts again, and what it said before counts no more."""
        self.confirmed = self.aim = 0
        self.trail_measured_ms = self.awaited_until_ms = None

    def spared(self, duration_ms: int, now_ms: int) -> None:
        """For so long it could not be heard, through no fault of its own."""
        if self.waiting_since_ms is not None:
            self.waiting_since_ms = min(now_ms, self.waiting_since_ms + duration_ms)
        if self.awaited_until_ms is not None:
            self.awaited_until_ms = min(now_ms + AWAIT_MS, self.awaited_until_ms + duration_ms)

    def lags(self, now_ms: int, limit_ms: int) -> bool:
        """Whether it has confirmed nothing for too long."""
        return self.waiting_since_ms is not None and now_ms - self.waiting_since_ms >= limit_ms
