"""How long a node may count on its lease in the metadata store.

The store takes a node for dead when the lease ends by the store's clock. An `async` primary serves alone, so it must have
stopped by then. The node measures with a clock that may run slower than the store's: after the system's clock was set
back it runs at nine tenths of its pace until the system's clock has caught up. So of a lease of 2 s it may count on
2 s × 0.9 = 1.8 s at the most. It counts on 0.2 s less, which covers what oscillators differ by and what is rounded. The
time begins before the renewal is asked for.
"""

from __future__ import annotations

from penstock.model.limits import SLOWEST_CLOCK_PERCENT

LEASE_MS = 2_000
RENEW_MS = LEASE_MS // 4
RETRY_MS = 200
SPARE_MS = 200


def counted_on_ms(lease_ms: int = LEASE_MS) -> int:
    """For how long after a renewal was asked for the node may count on it, by its own clock."""
    return lease_ms * SLOWEST_CLOCK_PERCENT // 100 - SPARE_MS
