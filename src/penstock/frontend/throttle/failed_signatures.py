"""How often a client address may fail to authenticate before its requests are refused without a check.

An address that has used up its failures gets `RequestThrottled`, on which SDKs wait. A caller that has signed correctly
before is accepted all the same, so that a neighbour behind the same address cannot lock it out.
"""

from __future__ import annotations

from ipaddress import IPv6Address

from penstock.frontend.throttle.bucket_table import BucketTable
from penstock.metadata.request_limits import RequestLimit

ADDRESSES = 10_000
BURST_SECONDS = 10
_NETWORK_BITS = 64


class FailedSignatures:
    """The remaining failures of each address; every front end counts for itself."""

    def __init__(self, limit: RequestLimit | None, most_addresses: int = ADDRESSES) -> None:
        self._limit = limit
        self._addresses: BucketTable[str] = BucketTable(most_addresses)

    def __len__(self) -> int:
        return len(self._addresses)

    def are_used_up(self, address: str, now_ms: int) -> bool:
        """Whether the address has failed too often lately."""
        if not len(self._addresses):
            return False
        bucket = self._addresses.find(_network(address))
        return bucket is not None and not bucket.has(1, now_ms)

    def count(self, address: str, now_ms: int) -> None:
        """One more request of this address failed."""
        if self._limit is not None:
            self._addresses.bucket(_network(address), self._limit, now_ms).take(1)


def limit_of(failures_a_second: int | None) -> RequestLimit | None:
    """The measures of a bucket: the rate in the long run, and ten seconds of it at once; None: no limit."""
    if failures_a_second is None:
        return None
    return RequestLimit(failures_a_second, BURST_SECONDS * failures_a_second)


def _network(address: str) -> str:
    """The owner of one IPv6 address has 2^64 neighbouring ones: they count as one."""
    if ":" not in address:
        return address
    try:
        return f"{int(IPv6Address(address)) >> _NETWORK_BITS:x}"
    except ValueError:
        return address
