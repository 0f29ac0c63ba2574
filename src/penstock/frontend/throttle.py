"""Step 5, throttle: no user asks more, and no queue is asked more, than its limit says.

Limits come from the metadata and hold from the next request on. Every front end counts for itself.
"""

from __future__ import annotations

import logging

import msgspec

from penstock.frontend.bucket_table import BucketTable
from penstock.frontend.token_bucket import TokenBucket
from penstock.metadata.cache import MetadataCache
from penstock.metadata.request_limits import LIMITS, Kind, RequestLimit, decode, parse_key
from penstock.metadata.store.interface import Change
from penstock.sqs.refusals import request_throttled

log = logging.getLogger(__name__)

BUCKETS = 100_000

Subject = tuple[Kind, str | None]
"""A user or a queue; without a name: all that have no limit of their own."""


class Throttle:
    """The limits as of now, and a bucket for everyone who was limited lately."""

    def __init__(self, metadata: MetadataCache, most_buckets: int = BUCKETS) -> None:
        self._limits: dict[Subject, RequestLimit] = {}
        self._buckets: BucketTable[Subject] = BucketTable(most_buckets)
        for entry in metadata.list(LIMITS):
            self._changed(Change(entry.key, entry.value, entry.version))
        metadata.listen(LIMITS, self._changed)

    def admit(self, user: str, queue: str | None, cost: int, now_ms: int) -> None:
        """Lets a request pass or raises `RequestThrottled`; `queue` is the native name. A batch costs its entries."""
        if not self._limits:
            return
        by_user = self._bucket("user", user, now_ms)
        by_queue = self._bucket("queue", queue, now_ms) if queue is not None else None
        # Both are asked before either pays: what the queue refuses costs the user nothing.
        for bucket in (by_user, by_queue):
            if bucket is not None and not bucket.has(cost, now_ms):
                raise request_throttled()
        for bucket in (by_user, by_queue):
            if bucket is not None:
                bucket.take(cost)

    def _bucket(self, kind: Kind, name: str, now_ms: int) -> TokenBucket | None:
        limits = self._limits
        subject = (kind, name)
        limit = limits.get(subject) or limits.get((kind, None))
        return self._buckets.bucket(subject, limit, now_ms) if limit is not None else None

    def _changed(self, change: Change) -> None:
        subject = parse_key(change.key)
        if subject is None:
            return
        if change.value is None:
            self._limits.pop(subject, None)
            return
        try:
            self._limits[subject] = decode(change.value)
        except msgspec.MsgspecError as error:
            # What cannot be read by this version limits nobody: refusing everything would be the worse mistake.
            self._limits.pop(subject, None)
            log.warning("ignored the limit %s, which cannot be read: %s", change.key, error)
