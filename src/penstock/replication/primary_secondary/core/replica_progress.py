"""Another replica as the primary sees it: which records it has, whether it lags, and whether it is close enough to join.

While messages keep arriving, a replica out of sync is always slightly behind, even at full speed. So it need not have
everything at the moment of a check. It is close when it confirms within `CLOSE_MS` everything that was there before. Then
commits wait for it as if it were in sync, so it soon has everything.
"""

from __future__ import annotations

from dataclasses import dataclass

LAG_MS = 1_000
"""A replica in sync that has not confirmed what it was sent for so long is to be taken out."""
LAST_LAG_MS = 3_000
"""The same where too few would be left to take sends: then to wait a little longer costs less than to refuse."""
CLOSE_MS = 300
"""Maximum lag, and maximum time to make it up, with which a replica may join the in-sync set."""
AWAIT_MS = 600
"""Commits wait so long at most for one that comes in to have everything."""
AWAIT_AGAIN_MS = 10_000
"""The pause before the primary waits again for a replica that did not catch up."""


@dataclass(slots=True)
class Follower:
    """One other replica."""

    joined: int = 0
    """Which of the node's memberships this is (`PartitionEntry.joined`)."""
    confirmed: int = 0
    """The last record on its disk, as it confirmed; 0: it has confirmed nothing yet."""
    waiting_since_ms: int | None = None
    """Since when there is something that it has not confirmed; None: it has everything."""
    aim: int = 0
    """The last record at `aimed_ms`; 0: none was noted."""
    aimed_ms: int = 0
    trail_ms: int = 0
    """How long it took to confirm all that was there, when that was last measured."""
    trail_measured_ms: int | None = None
    awaited_until_ms: int | None = None
    """Commits wait for it until then, so that it gets everything."""
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
        """Whether it lags by at most this, and has sent a message since then."""
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
        """It starts again, and its earlier confirmations no longer count."""
        self.confirmed = self.aim = 0
        self.trail_measured_ms = self.awaited_until_ms = None

    def spared(self, duration_ms: int, now_ms: int) -> None:
        """It could not be heard for so long, and was not at fault."""
        if self.waiting_since_ms is not None:
            self.waiting_since_ms = min(now_ms, self.waiting_since_ms + duration_ms)
        if self.awaited_until_ms is not None:
            self.awaited_until_ms = min(now_ms + AWAIT_MS, self.awaited_until_ms + duration_ms)

    def lags(self, now_ms: int, limit_ms: int) -> bool:
        """Whether it has confirmed nothing for too long."""
        return self.waiting_since_ms is not None and now_ms - self.waiting_since_ms >= limit_ms
