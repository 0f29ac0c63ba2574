"""How many receives of a subscription are in progress: few if few messages come, many if each receive comes back full."""

from __future__ import annotations

from penstock.model import limits

AT_ONCE = 16
"""The maximum of receives in progress when each comes back full. With few of them every lease and every delete needs its own
round through three disks; with many they share rounds.
"""
AHEAD_BYTES = 16 * limits.MEBIBYTE
"""The approximate maximum of bytes in transit: a front end holds them until the client takes them."""


def receives_at_once(now: int, delivery_bytes: int, *, full: bool) -> int:
    """How many receives may be on their way after a delivery: twice as many as now if it was full, else half as many."""
    most = min(AT_ONCE, AHEAD_BYTES // max(1, delivery_bytes))
    return max(1, min(2 * now, most) if full else now // 2)
