"""Damaged partitions: the known facts about each, and the files that are kept for a repair.

A fenced partition is neither replayed further nor written to. Every snapshot carries over the contents of the last one,
and the journal files that may have the rest are not reused until the partition is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.storage.errors import Damage
from penstock.storage.snapshot import Snapshot


class Fence(NamedTuple):
    """A damaged partition and the files that are kept for it."""

    damage: Damage
    held: tuple[int, ...]
    """Journal files that must not be reused."""


class Fences(dict[int, Fence]):
    """The fenced partitions of a node."""

    @classmethod
    def recovered(cls, damages: Iterable[Damage], snapshot: Snapshot, journal_files: Iterable[int]) -> Fences:
        """Damage found when the directory was opened, or by an earlier life and written in its snapshot."""
        known = {
            section.partition: section for section in snapshot.table.sections if section.damage is not None
        }
        files = tuple(journal_files)
        fences = cls()
        for damage in damages:
            held = tuple(known[damage.partition].held) if damage.partition in known else files
            fences[damage.partition] = Fence(damage, held)
        return fences

    def add(self, damage: Damage, journal_files: Iterable[int]) -> None:
        """Fences a partition for damage found while running; only the first finding counts."""
        self.setdefault(damage.partition, Fence(damage, tuple(journal_files)))

    def holds(self, file_number: int) -> bool:
        """Whether a journal file is kept for a damaged partition."""
        return bool(self) and any(file_number in fence.held for fence in self.values())
