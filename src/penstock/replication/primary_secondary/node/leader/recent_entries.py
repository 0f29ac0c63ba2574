"""The newest records of the partitions that a node leads, in memory, for replicas that are nearly up to date.

The bytes are bounded for the whole node: the oldest records are dropped first, and read from the journal if a replica
still needs them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from penstock.backend.node.logbook import WrittenRecord
from penstock.model.batch import Buffer
from penstock.model.limits import MEBIBYTE

RECENT_BYTES = 32 * MEBIBYTE
_OVERHEAD_BYTES = 200
_GONE_AT_LEAST = 1_024
"""Records of partitions that were dropped leave the order when they are more than this, and half of it."""


class RecentEntry(NamedTuple):
    """A record as it was appended."""

    head: bytes
    payload: Buffer
    """Empty for all but batches."""


class RecentEntries:
    """The newest records of each partition, without a gap."""

    def __init__(self, written: list[WrittenRecord]) -> None:
        self._written = written
        """The logbook notes here what it writes; this class empties it."""
        self._touched: dict[int, None] = {}
        self._rows: dict[int, tuple[int, deque[RecentEntry]]] = {}
        self._order: deque[int] = deque()
        """The partition of each record, in the order of coming."""
        self._gone_records = 0
        self._gone: Counter[int] = Counter()
        """Of partitions that were dropped: how many of their first ones in there are left behind. A node that loses its lease drops all."""
        self._bytes = 0

    def take_touched(self) -> dict[int, None]:
        """Partitions to which something was written since the last time."""
        self._take_up()
        touched, self._touched = self._touched, {}
        return touched

    def _take_up(self) -> None:
        for partition, index, head, payload in self._written:
            self._add(partition, index, head, payload)
            self._touched[partition] = None
        self._written.clear()

    def _add(self, partition: int, index: int, head: bytes, payload: Buffer) -> None:
        row = self._rows.get(partition)
        if row is not None and row[0] + len(row[1]) == index:
            row[1].append(RecentEntry(head, payload))
        else:
            self._drop(partition)
            self._rows[partition] = (index, deque((RecentEntry(head, payload),)))
        self._order.append(partition)
        self._bytes += len(head) + len(payload) + _OVERHEAD_BYTES
        while self._bytes > RECENT_BYTES and len(self._order) > 1:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        partition = self._order.popleft()
        if self._gone_records and self._gone[partition]:
            self._gone[partition] -= 1
            self._gone_records -= 1
            return
        first, entries = self._rows[partition]
        gone = entries.popleft()
        self._bytes -= len(gone.head) + len(gone.payload) + _OVERHEAD_BYTES
        if entries:
            self._rows[partition] = (first + 1, entries)
        else:
            del self._rows[partition]

    def since(self, partition: int, index: int, most_bytes: int) -> Sequence[RecentEntry]:
        """Records from `index` on, not many more bytes than asked for; nothing where that one is not here."""
        self._take_up()
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
        self._take_up()
        self._drop(partition)

    def _drop(self, partition: int) -> None:
        row = self._rows.pop(partition, None)
        if row is not None:
            self._bytes -= sum(len(e.head) + len(e.payload) + _OVERHEAD_BYTES for e in row[1])
            self._gone[partition] += len(row[1])
            self._gone_records += len(row[1])
            if self._gone_records * 2 > len(self._order) + _GONE_AT_LEAST:
                self._leave_out_gone()

    def _leave_out_gone(self) -> None:
        order, self._order = self._order, deque()
        for partition in order:
            if self._gone[partition]:
                self._gone[partition] -= 1
            else:
                self._order.append(partition)
        self._gone.clear()
        self._gone_records = 0
