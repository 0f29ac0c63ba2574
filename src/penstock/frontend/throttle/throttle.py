"""Step 5, throttle: enforces the limits of users and queues.

Limits come from the metadata and apply from the next request on. Every front end counts for itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from penstock.frontend.throttle.bucket_table import BucketTable
from penstock.frontend.throttle.token_bucket import TokenBucket
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.request_limits import LIMITS, Kind, RequestLimit, decode, parse_key
from penstock.metadata.store.interface import Change
from penstock.sqs.refusals import request_throttled

logger = logging.getLogger(__name__)

BUCKETS = 100_000

Subject = tuple[Kind, str | None]
"""A user or a queue; without a name: all that have no limit of their own."""


class Refusal(NamedTuple):
    """The user or queue whose limit is used up, and that limit."""

    subject: Subject
    limit: RequestLimit


class Throttle:
    """The present limits, and a bucket for every recently limited user and queue."""

    def __init__(self, metadata: MetadataCache, most_buckets: int = BUCKETS) -> None:
        self._limits: dict[Subject, RequestLimit] = {}
        self._buckets: BucketTable[Subject] = BucketTable(most_buckets)
        for entry in metadata.list(LIMITS):
            self._changed(Change(entry.key, entry.value, entry.version))
        metadata.listen(LIMITS, self._changed)

    def admit(self, user: str, queue: str | None, cost: int, now_ms: int) -> None:
        """Lets a request pass or raises `RequestThrottled`; `queue` is the native name. A batch costs its entries."""
        if (
            self._limits
            and self.refuses(user, (queue,) if queue is not None else (), cost, now_ms) is not None
        ):
            raise request_throttled()

    @property
    def is_idle(self) -> bool:
        """Whether there are no limits at all."""
        return not self._limits

    def refuses(self, user: str, queues: Iterable[str], cost: int, now_ms: int) -> Refusal | None:
        """Lets a request pass, or names the limit that refuses it."""
        paying: list[TokenBucket] = []
        # All limits are checked before any is charged: a request that a queue's limit refuses costs the user nothing.
        for subject in _subjects(user, queues):
            bucket = self._bucket(subject, now_ms)
            if bucket is not None:
                if not bucket.has(cost, now_ms):
                    return Refusal(subject, bucket.limit)
                paying.append(bucket)
        for bucket in paying:
            bucket.take(cost)
        return None

    def charge(self, user: str, queues: Iterable[str], cost: int, now_ms: int) -> None:
        """Charges for what cannot be refused; the debt counts against later requests."""
        for subject in _subjects(user, queues):
            bucket = self._bucket(subject, now_ms)
            if bucket is not None:
                bucket.owe(cost, now_ms)

    def _bucket(self, subject: Subject, now_ms: int) -> TokenBucket | None:
        limits = self._limits
        limit = limits.get(subject) or limits.get((subject[0], None))
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
            # A limit that this version cannot read is ignored: refusing everything would be the worse mistake.
            self._limits.pop(subject, None)
            logger.warning(
                "ignored the limit %(entry)s, which cannot be read: %(error)s",
                {"entry": change.key, "error": error},
            )


def _subjects(user: str, queues: Iterable[str]) -> Iterator[Subject]:
    yield "user", user
    for queue in queues:
        yield "queue", queue
