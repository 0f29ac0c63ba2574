"""A lease of the metadata store, and how long its holder may rely on it.

The store ends the lease by the store's clock. The holder's clock may run slower: after the system's clock was set back, it
runs at nine tenths of its pace until the system's clock has caught up. So the holder may rely on a lease of 2 s for at
most 2 s × 0.9 = 1.8 s. It relies on it for 0.2 s less, which covers the differences of oscillators and rounding. The time
begins before the grant or the renewal is requested, because the store may have done it at once.

Renewals are requested at fixed intervals, also while an earlier one is unanswered: one slow answer does not cost the
lease.
"""

from __future__ import annotations

from penstock.cluster.membership.store_requests import Outcome, Renewed, Unknown
from penstock.model.limits import SLOWEST_CLOCK_PERCENT

SPARE_MS = 200
RENEWALS_AT_ONCE = 4
"""So many renewals may be unanswered. After as many intervals the lease has ended anyway, or the store is away."""


def counted_on_ms(lease_ms: int) -> int:
    """For how long after a grant or renewal was asked for its holder may count on the lease, by its own clock."""
    return lease_ms * SLOWEST_CLOCK_PERCENT // 100 - SPARE_MS


class HeldLease:
    """One lease, from its grant to its end."""

    def __init__(self, number: int, lease_ms: int, renew_ms: int, retry_ms: int, asked_ms: int) -> None:
        self.number = number
        self.until_ms = asked_ms + counted_on_ms(lease_ms)
        """Before this time, by the holder's clock, the store has certainly not ended the lease."""
        self._lease_ms = lease_ms
        self._renew_ms = renew_ms
        self._retry_ms = retry_ms
        self._next_ms = asked_ms + renew_ms
        self._asked: dict[int, int] = {}
        """Question → when it was asked."""

    def holds(self, now_ms: int) -> bool:
        """Whether the lease has certainly not ended."""
        return now_ms < self.until_ms

    @property
    def next_ms(self) -> int | None:
        """When the next renewal is to be asked for; None: too many are unanswered."""
        return self._next_ms if len(self._asked) < RENEWALS_AT_ONCE else None

    def is_due(self, now_ms: int) -> bool:
        """Whether a renewal is to be asked for now."""
        next_ms = self.next_ms
        return next_ms is not None and next_ms <= now_ms

    def awaits(self, question: int) -> bool:
        """Whether this is the number of a renewal without an answer."""
        return question in self._asked

    def asked(self, question: int, now_ms: int) -> None:
        """A renewal is asked for under this number."""
        self._asked[question] = now_ms
        self._next_ms = now_ms + self._renew_ms

    def answered(self, question: int, outcome: Outcome, now_ms: int) -> bool:
        """Takes the outcome of a renewal in; False: the lease has ended."""
        asked_ms = self._asked.pop(question)
        match outcome:
            case Renewed(alive=True):
                self.until_ms = max(self.until_ms, asked_ms + counted_on_ms(self._lease_ms))
            case Unknown():
                self._next_ms = min(self._next_ms, now_ms + self._retry_ms)
            case _:
                return False
        return True
