"""A bounded number of token buckets by their subjects."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from penstock.frontend.throttle.token_bucket import TokenBucket
from penstock.metadata.request_limits import RequestLimit

Subject = TypeVar("Subject", bound=Hashable)


class BucketTable(Generic[Subject]):
    """A bucket for every recently limited subject."""

    def __init__(self, most_buckets: int) -> None:
        self._buckets: dict[Subject, TokenBucket] = {}
        self._most_buckets = most_buckets

    def __len__(self) -> int:
        return len(self._buckets)

    def find(self, subject: Subject) -> TokenBucket | None:
        """The bucket, if there is one."""
        return self._buckets.get(subject)

    def bucket(self, subject: Subject, limit: RequestLimit, now_ms: int) -> TokenBucket:
        """The bucket under this limit; a new one is full."""
        bucket = self._buckets.get(subject)
        if bucket is None:
            if len(self._buckets) >= self._most_buckets:
                self._make_room(now_ms)
            bucket = self._buckets[subject] = TokenBucket(limit, now_ms)
        elif bucket.limit is not limit:
            bucket.change(limit, now_ms)
        return bucket

    def _make_room(self, now_ms: int) -> None:
        """Drops idle buckets; if that is not enough, the oldest ones, down to three quarters."""
        kept = {subject: bucket for subject, bucket in self._buckets.items() if not bucket.is_full(now_ms)}
        surplus = len(kept) - 3 * self._most_buckets // 4
        for subject in list(kept)[: max(0, surplus)]:
            del kept[subject]
        self._buckets = kept
