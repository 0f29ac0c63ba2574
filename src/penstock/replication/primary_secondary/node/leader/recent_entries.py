"""The newest records of the partitions that a node leads, in memory, for replicas that are nearly up to date.

Bounded in bytes for the whole node: what came first goes first, and is read from the journal if somebody still needs it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from penstock.model.batch import Buffer
from penstock.model.limits import MEBIBYTE

RECENT_BYTES = 32 * MEBIBYTE
_OVERHEAD_BYTES = 200


class RecentEntry(NamedTuple):
    """A record as it was appended."""

    head: bytes
    payload: Buffer
    """Empty for all but batches."""


class RecentEntries:
    """An unbroken stretch of the newest records of each partition."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, deque[RecentEntry]]] = {}
        self._order: deque[int] = deque()
        self._bytes = 0

    def add(self, partition: int, index: int, head: bytes, payload: Buffer) -> None:
        """A record was appended."""
        row = self._rows.get(partition)
        if row is not None and row[0] + len(row[1]) == index:
            row[1].append(RecentEntry(head, payload))
        else:
            self.forget(partition)
            self._rows[partition] = (index, deque((RecentEntry(head, payload),)))
        self._order.append(partition)
        self._bytes += len(head) + len(payload) + _OVERHEAD_BYTES
        while self._bytes > RECENT_BYTES and len(self._order) > 1:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        partition = self._order.popleft()
        first, entries = self._rows[partition]
        gone = entries.popleft()
        self._bytes -= len(gone.head) + len(gone.payload) + _OVERHEAD_BYTES
        if entries:
            self._rows[partition] = (first + 1, entries)
        else:
            del self._rows[partition]

    def since(self, partition: int, index: int, most_bytes: int) -> Sequence[RecentEntry]:
        """Records from `index` on, not many more bytes than asked for; nothing where that one is not here."""
        row = self._rows.get(partition)
        if row is None or not row[0] <= index < row[0] + len(row[1]):
            return ()
        found: list[RecentEntry] = []
        size = 0
        first, entries = row
        for place in range(index - first, len(entries)):
            entry = entries[place]
            found.append(entry)
            size += len(entry.head) + len(entry.payload)
            if size >= most_bytes:
                break
        return found

    def forget(self, partition: int) -> None:
        """The partition is not led any more."""
        row = self._rows.pop(partition, None)
        if row is not None:
            self._bytes -= sum(len(e.head) + len(e.payload) + _OVERHEAD_BYTES for e in row[1])
            self._order = deque(other for other in self._order if other != partition)
