"""The positions of each partition's newest records in the journal, by index, for replicas that must catch up.

It takes eight bytes for each record in journal files that no checkpoint has vacated yet.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

from penstock.storage.entry import POSITION_SHIFT


class IndexMap:
    """The positions of records, without a gap for each partition."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, array[int]]] = {}

    def note(self, partition: int, index: int, position: int) -> None:
        """Notes a record that was appended; if it does not follow the last one, the partition begins again."""
        row = self._rows.get(partition)
        if row is None or index != row[0] + len(row[1]):
            self._rows[partition] = (index, array("Q", (position,)))
        else:
            row[1].append(position)

    def oldest(self, partition: int) -> int | None:
        """The first record whose position is known."""
        row = self._rows.get(partition)
        return row[0] if row is not None and row[1] else None

    def positions(self, partition: int, first: int, most: int) -> Sequence[int]:
        """The positions of records from `first` on, at most so many; none if that one is not known."""
        row = self._rows.get(partition)
        if row is None or first < row[0]:
            return ()
        return row[1][first - row[0] : first - row[0] + most]

    def cut(self, partition: int, last: int) -> None:
        """Drops records after `last`."""
        row = self._rows.get(partition)
        if row is not None:
            del row[1][max(0, last + 1 - row[0]) :]
            if not row[1]:
                del self._rows[partition]

    def forget(self, partition: int) -> None:
        """Drops the partition."""
        self._rows.pop(partition, None)

    def vacated(self, below: int) -> None:
        """Files with a lower number are used again."""
        for partition, (first, positions) in list(self._rows.items()):
            gone = bisect_left(positions, below << POSITION_SHIFT)
            if gone == len(positions):
                del self._rows[partition]
            elif gone:
                del positions[:gone]
                self._rows[partition] = (first + gone, positions)
