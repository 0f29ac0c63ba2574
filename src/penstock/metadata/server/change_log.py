"""The last changes of the store, for watches through this server; the store delivers older ones."""

from __future__ import annotations

from collections import deque

from penstock.metadata.store.interface import ABSENT, Change
from penstock.metadata.store.watchers import News

CHANGES_KEPT = 20_000
READ_AT_ONCE = 256
BYTES_AT_ONCE = 1 << 20


class ChangeLog:
    """Bounded in number and in bytes."""

    def __init__(self, limit_bytes: int, kept: int = CHANGES_KEPT) -> None:
        self.floor = ABSENT
        """Every change after this version, up to `heard`, is here."""
        self.heard = ABSENT
        self._limit_bytes = limit_bytes
        self._kept = kept
        self._bytes = 0
        self._changes: deque[Change] = deque()

    def begin(self, version: int) -> None:
        """Everything before is unknown here."""
        self._changes.clear()
        self._bytes = 0
        self.floor = self.heard = version

    def append(self, change: Change) -> None:
        """The next change of the store."""
        self._changes.append(change)
        self._bytes += _size(change)
        self.heard = change.version
        while len(self._changes) > self._kept or self._bytes > self._limit_bytes:
            oldest = self._changes.popleft()
            self._bytes -= _size(oldest)
            self.floor = oldest.version

    def news(self, prefix: str, after: int) -> News | None:
        """Changes under the prefix after a version, some at a time; None if not all of them are here."""
        if after < self.floor:
            return None
        newer: list[Change] = []
        for change in reversed(self._changes):
            if change.version <= after:
                break
            newer.append(change)
        newer.reverse()
        told: list[Change] = []
        size = 0
        upto = after
        for change in newer:
            # The changes of one version are never delivered in two parts: a watch that continues elsewhere would miss the
            # rest.
            if change.version != upto and (len(told) >= READ_AT_ONCE or size >= BYTES_AT_ONCE):
                return News(told, upto, True)
            upto = change.version
            if change.key.startswith(prefix):
                told.append(change)
                size += _size(change)
        return News(told, max(upto, self.heard), False)


def _size(change: Change) -> int:
    return len(change.key) + len(change.value or b"") + 200
