"""Receive attempts: the lease that each receive got, so that a repeated receive gets the same messages.

Attempts change only when a record is applied, and are forgotten by the time in records, so every replica remembers the
same. An attempt whose whole lease ended by time is forgotten with it: a repeated receive is then a new one.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.model import limits
from penstock.model.aged_map import AgedMap
from penstock.queue.state.deduplication import FORGOTTEN_AT_ONCE


class Attempt(NamedTuple):
    """A receive that got messages."""

    lease: int
    messages: int
    """How many it was served with."""
    ended: int
    """The number of them whose lease ended by time."""
    until_ms: int


class AttemptTable:
    """The attempts of the last five minutes, oldest first."""

    def __init__(self) -> None:
        self.rows: AgedMap[bytes, Attempt] = AgedMap()
        self._by_lease: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def find(self, identifier: bytes, now_ms: int) -> Attempt | None:
        """How the attempt was served, if it was and is not too long ago."""
        found = self.rows.get(identifier)
        return found if found is not None and now_ms < found.until_ms else None

    def add(self, identifier: bytes, lease: int, messages: int, at_ms: int) -> None:
        """The attempt was served with a lease; an earlier one under the same id no longer counts."""
        self._drop(identifier)
        self.put(identifier, Attempt(lease, messages, 0, at_ms + limits.ATTEMPT_MS))
        if len(self.rows) > limits.ATTEMPTS_PER_QUEUE and (oldest := self.rows.oldest()) is not None:
            self._drop(oldest[0])

    def put(self, identifier: bytes, attempt: Attempt) -> None:
        """An attempt that is not there, the youngest of all."""
        self.rows.put(identifier, attempt)
        self._by_lease[attempt.lease] = identifier

    def lease_ended(self, lease: int, messages: int) -> None:
        """Notes that so many messages of a lease came back because its time was over."""
        identifier = self._by_lease.get(lease)
        attempt = self.rows.get(identifier) if identifier is not None else None
        if identifier is None or attempt is None:
            return
        ended = attempt.ended + messages
        if ended >= attempt.messages:
            self._drop(identifier)
        else:
            self.rows.replace(identifier, attempt._replace(ended=ended))

    def forget_lease(self, lease: int) -> None:
        """A repeated receive is a new one from now on: the messages were never seen, or their holder resumed the lease."""
        identifier = self._by_lease.get(lease)
        if identifier is not None:
            self._drop(identifier)

    def forget(self, now_ms: int) -> None:
        """Drops those that are too long ago, oldest first, so many at a time; stops at the first that is not."""
        for _, attempt in self.rows.pop_while(lambda attempt: attempt.until_ms <= now_ms, FORGOTTEN_AT_ONCE):
            del self._by_lease[attempt.lease]

    def _drop(self, identifier: bytes) -> None:
        known = self.rows.pop(identifier)
        if known is not None:
            del self._by_lease[known.lease]

    def clear(self) -> None:
        """A purge forgets attempts."""
        self.rows.clear()
        self._by_lease = {}
