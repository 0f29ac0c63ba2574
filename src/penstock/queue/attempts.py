"""Receive attempts: which lease a receive was served with, so that asking again gives the same messages again.

Changed only when a record is applied, and forgotten by the time in records, so that every replica remembers the
same. An attempt whose whole lease ended by time is forgotten with it: asking again is then a fresh receive.
"""

from __future__ import annotations

from collections import OrderedDict

from penstock.model import limits

AttemptImage = tuple[bytes, int, int, int, int]
"""(attempt, lease, messages, ended, until)."""


class Attempt:
    """A receive that was served."""

    __slots__ = ("ended", "lease", "messages", "until_ms")

    def __init__(self, lease: int, messages: int, ended: int, until_ms: int) -> None:
        self.lease = lease
        self.messages = messages
        """How many it was served with."""
        self.ended = ended
        """Those of them whose lease ended by time."""
        self.until_ms = until_ms


class AttemptTable:
    """The attempts of the last five minutes, oldest first."""

    def __init__(self) -> None:
        self._attempts: OrderedDict[bytes, Attempt] = OrderedDict()
        self._by_lease: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._attempts)

    def find(self, identifier: bytes, now_ms: int) -> Attempt | None:
        """How the attempt was served, if it was and is not too long ago."""
        found = self._attempts.get(identifier)
        return found if found is not None and now_ms < found.until_ms else None

    def add(self, identifier: bytes, lease: int, messages: int, at_ms: int) -> None:
        """The attempt was served with a lease; an earlier one under the same id no longer counts."""
        self._drop(identifier)
        self._attempts[identifier] = Attempt(lease, messages, 0, at_ms + limits.ATTEMPT_MS)
        self._by_lease[lease] = identifier
        if len(self._attempts) > limits.ATTEMPTS_PER_QUEUE:
            self._drop(next(iter(self._attempts)))

    def lease_ended(self, lease: int, messages: int) -> None:
        """So many messages of a lease came back because its time was over."""
        identifier = self._by_lease.get(lease)
        if identifier is None:
            return
        attempt = self._attempts[identifier]
        attempt.ended += messages
        if attempt.ended >= attempt.messages:
            self._drop(identifier)

    def forget_lease(self, lease: int) -> None:
        """Whoever asks anew gets a fresh receive: the lease's messages were never seen, or who has them resumed it."""
        identifier = self._by_lease.get(lease)
        if identifier is not None:
            self._drop(identifier)

    def forget(self, now_ms: int) -> None:
        """Drops those that are too long ago, oldest first; stops at the first that is not."""
        while self._attempts:
            oldest = next(iter(self._attempts))
            if self._attempts[oldest].until_ms > now_ms:
                return
            self._drop(oldest)

    def _drop(self, identifier: bytes) -> None:
        known = self._attempts.pop(identifier, None)
        if known is not None:
            del self._by_lease[known.lease]

    def clear(self) -> None:
        """A purge forgets attempts."""
        self._attempts.clear()
        self._by_lease.clear()

    def dump(self) -> list[AttemptImage]:
        """For the snapshot."""
        return [(key, a.lease, a.messages, a.ended, a.until_ms) for key, a in self._attempts.items()]

    def load(self, dumped: list[AttemptImage]) -> None:
        """From the snapshot."""
        self._attempts = OrderedDict((key, Attempt(*values)) for key, *values in dumped)
        self._by_lease = {attempt.lease: key for key, attempt in self._attempts.items()}
