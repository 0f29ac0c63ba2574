"""How many receives a subscription has on their way: few where little comes, many where each comes back full."""

from __future__ import annotations

from penstock.model import limits

AT_ONCE = 16
"""How many receives are on their way at most where each comes back full. With few of them every lease and every delete is
a round of its own through three disks; with many they share rounds."""
AHEAD_BYTES = 16 * limits.MEBIBYTE
"""What is on its way should not be much more than this: a front end holds it until the client takes it."""


def receives_at_once(now: int, delivery_bytes: int, *, full: bool) -> int:
    """How many receives may be on their way after a delivery: twice as many as now if it was full, else half as many."""
    most = min(AT_ONCE, AHEAD_BYTES // max(1, delivery_bytes))
    return max(1, min(2 * now, most) if full else now // 2)
