"""When leases are extended: of messages that are being worked on, and of group members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

BEATS_PER_TIMEOUT = 3
BEATS_PER_LEASE = 3
STAND_BY_SECONDS = 1.0
"""How often a member without a share asks whether there is one for it, at least."""
ASKS_PER_SECOND = 16
"""The maximum rate of requests of a member that stands by at many partitions."""


def next_beat_seconds(lease_ms: int, partitions: int, *, has_share: bool) -> float:
    """When a group member renews its lease; one that stands by also asks whether it has an assignment."""
    renewal = lease_ms / 1000 / BEATS_PER_LEASE
    return renewal if has_share else min(renewal, max(STAND_BY_SECONDS, partitions / ASKS_PER_SECOND))


class KeptLease(Protocol):
    """The interface of a lease."""

    @property
    def arrived(self) -> float:
        """When its delivery came."""
        ...

    def open_runs(self) -> object:
        """Its messages that are not settled; nothing where all are."""
        ...


Lease = TypeVar("Lease", bound=KeptLease)


class LeaseKeeping:
    """The renewals of one consumer: they continue as long as a lease has messages that are not settled."""

    __slots__ = ("interval", "is_beating")

    def __init__(self, visibility_timeout_ms: int) -> None:
        self.interval = visibility_timeout_ms / 1000 / BEATS_PER_TIMEOUT
        self.is_beating = False

    def begins(self) -> bool:
        """A lease is to be kept; whether that calls for the next beat after `interval`."""
        if self.is_beating or self.interval <= 0:
            return False
        self.is_beating = True
        return True

    def beat(self, leases: Iterable[Lease], now: float) -> tuple[list[Lease], list[Lease]]:
        """Those that are kept from now on, and those of them that are extended now. Without any the beats end.

        A lease younger than half an interval can wait for the next beat; a busy consumer has mostly those.
        """
        kept = [lease for lease in leases if lease.open_runs()]
        self.is_beating = bool(kept)
        young = now - self.interval / 2
        return kept, [lease for lease in kept if lease.arrived <= young]
