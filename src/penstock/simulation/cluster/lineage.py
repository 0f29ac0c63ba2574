"""Which epoch wrote which record of every log, for a whole run.

A partition remembers only its newest epochs. One primary begins an epoch, with one record, so the epoch before it and the
index of that record determine the rest: the last epoch of a log identifies the whole log.
"""

from __future__ import annotations


class Lineage:
    """All epochs of all partitions of a run."""

    def __init__(self) -> None:
        self._begun: dict[tuple[int, int], tuple[int, int]] = {}
        """(partition, epoch) → (its first record, the epoch that wrote the record before it)."""

    def begin(self, partition: int, epoch: int, first: int, previous: int) -> None:
        """A primary wrote the first record of an epoch; replicas that take it over say the same again."""
        self._begun.setdefault((partition, epoch), (first, previous))

    def first_of(self, partition: int, epoch: int) -> int:
        """The first record that an epoch wrote."""
        return self._begun[partition, epoch][0]

    def at(self, partition: int, last_epoch: int, index: int) -> int:
        """The epoch that wrote a record of the log whose newest epoch is `last_epoch`; 0: before all."""
        epoch = last_epoch
        while epoch:
            first, previous = self._begun[partition, epoch]
            if first <= index:
                return epoch
            epoch = previous
        return 0

    def last_common(self, partition: int, one: tuple[int, int], other: tuple[int, int]) -> int:
        """The last record that two logs share, each identified by its newest epoch and its last index."""
        index = min(one[1], other[1])
        while index > 0 and (epoch := self.at(partition, one[0], index)) != self.at(
            partition, other[0], index
        ):
            later = max(epoch, self.at(partition, other[0], index))
            index = self._begun[partition, later][0] - 1
        return index
