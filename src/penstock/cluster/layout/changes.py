"""A change of one entry of the layout, and the reason for it."""

from __future__ import annotations

from typing import NamedTuple

from penstock.cluster.layout.entries import LayoutEntry, PartitionEntry, encode, partition_key


class Change(NamedTuple):
    """Written on condition that the entry still has the version that was read; otherwise dropped."""

    key: str
    version: int
    entry: LayoutEntry | None
    """None: it is deleted."""
    reason: str
    """One sentence, for people."""

    @property
    def value(self) -> bytes | None:
        """The bytes to store; None: it is deleted."""
        return encode(self.entry) if self.entry is not None else None


def change_partition(version: int, entry: PartitionEntry) -> Change:
    """The new entry of a partition; its `reason` explains the change."""
    return Change(partition_key(entry.partition), version, entry, entry.reason)
