"""The checkpoint: vacates journal files so that a crash at any moment loses nothing.

1. `begin`: the journal continues in a fresh file, and the files before it, which are to be vacated, are committed. After a
   crash: the old snapshot and all journal files since it are there.
2. Copies: everything in those files that is still alive is copied to segments and synced, and the node's states in memory
   refer to
   the copies. After a crash: the old snapshot and its files are unchanged; nothing refers to the copies, and the next start
   removes them.
3. `add`: the state of each partition after its record `index`, with the end of the journal at that record (`mark`). Later
   records are in the fresh file or after it, and are replayed on top; earlier ones are in the state. Making a state may take many
   turns; the mark is the moment at which it was captured, not the moment at which it is added. A state may refer to
   entries that are not flushed yet, so
4. `snapshot_job` is returned only when everything appended before the last `mark` is committed. It writes under another
   name,
   syncs, renames, syncs the directory, and then removes the old snapshot. After a crash before the rename is on disk: the old
   snapshot and its files. After it: the new snapshot, whose segments and journal files were on disk earlier. Between the rename
   and the removal both are there, and both are valid.
5. `finish`: only now the vacated files are put aside for reuse. After a crash: the new snapshot does not need them, and
   the
   next start puts them aside again.

Damaged partitions take no part: the contents of the last snapshot are carried over unchanged, and the journal files with
the rest are kept until the partition is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from penstock.model.batch import Buffer
from penstock.storage.fences import Fences
from penstock.storage.journal import Journal
from penstock.storage.segments import Segments
from penstock.storage.snapshot import PartitionState, SnapshotJob


class Mark(NamedTuple):
    """The moment at which a state was captured."""

    position: int
    """The end of the journal at that moment: entries before it are in the state."""
    moves: int
    """The copies that the state refers to."""


class Checkpoint:
    """One running checkpoint; the node calls its steps."""

    def __init__(
        self,
        journal: Journal,
        segments: Segments,
        fences: Fences,
        below: int,
        vacating: Collection[int],
        make_job: Callable[[Checkpoint, list[PartitionState]], SnapshotJob],
    ) -> None:
        self._journal = journal
        self._segments = segments
        self._fences = fences
        self._vacating = frozenset(vacating)
        self._make_job = make_job
        self._states: dict[int, PartitionState] = {}
        self._gone: set[int] = set()
        self.below = below
        """Journal files with a lower number are to be vacated."""
        self.indexes: dict[int, int] = {}
        """The last record that each added state holds."""
        self.moves: dict[int, int] = {}
        """The copies that each added state refers to."""
        self.needs_position = journal.appended_position
        """The snapshot waits until the journal is committed up to here."""
        self.job: SnapshotJob | None = None

    def is_journal(self, file_number: int) -> bool:
        """Whether the file is to be vacated: everything alive in it must be copied before `add`."""
        return file_number in self._vacating

    def mark(self) -> Mark:
        """This moment, for a state that is taken now and added later."""
        return Mark(self._journal.appended_position, self._segments.moves)

    def add(
        self, partition: int, index: int, state: Buffer | Sequence[Buffer], mark: Mark | None = None
    ) -> None:
        """Adds the state of a partition after its record `index`, the last one at the mark (default: now).

        The state must not change afterwards. The state of a partition that was removed meanwhile is left out: if the
        partition comes back, it begins again, in the journal.
        """
        if partition in self._gone:
            return
        position, moves = mark or self.mark()
        buffers = state if isinstance(state, list | tuple) else (state,)
        self._states[partition] = PartitionState(partition, index, buffers, position=position)
        self.indexes[partition] = index
        self.moves[partition] = moves
        self.needs_position = max(self.needs_position, position)

    def is_added(self, partition: int) -> bool:
        """Whether the partition's state is in."""
        return partition in self._states

    def forget(self, partition: int) -> None:
        """The partition was removed meanwhile; its state must not come back."""
        self._gone.add(partition)
        self._states.pop(partition, None)
        self.indexes.pop(partition, None)

    def snapshot_job(self) -> SnapshotJob | None:
        """The job that writes the snapshot; None while something that a state refers to is not committed yet."""
        if self.job is not None:
            raise ValueError("the snapshot of this checkpoint was begun already")
        if self._journal.committed_position < self.needs_position:
            return None
        self.job = self._make_job(
            self,
            [state for partition, state in self._states.items() if partition not in self._fences],
        )
        self._states = {}
        return self.job
