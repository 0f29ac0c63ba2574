"""The checkpoint: how journal files are vacated without a moment in which a crash could lose anything.

1. `begin`: the journal has gone on in a fresh file, and the files before it, which are to be vacated, are
   committed. A crash: nothing happened, the old snapshot and all journal files since it are there.
2. Copies: what is still alive in those files is copied to segments, synced, and the node's states follow the
   copies in memory. A crash: the old snapshot and its files are untouched; the copies are referred to by
   nothing and are removed at the next start.
3. `add`: each partition's state after its record `index`, with where the journal ended at that record (`mark`).
   Records after that are in the fresh file or later, and are replayed on top; what stands before that place is
   in the state. It may take many turns to make a state, each at its own time: what counts is when it was taken,
   not when it is added. A state may refer to entries that are not flushed yet, so
4. `snapshot_job` is given out only when everything appended before the last `mark` is committed. It writes
   under another name, syncs, renames, syncs the folder, and then removes the old snapshot. A crash before the
   rename is on disk: the old snapshot and its files. After it: the new one, whose segments and journal files
   were on disk before it was. Between the rename and the removal both are there, and both are good.
5. `finish`: only now are the vacated files put aside for reuse. A crash: the new snapshot does not need them,
   and the next start puts them aside again.

Damaged partitions take no part: what the last snapshot said of them is carried over as it is, and the journal
files that hold the rest are kept until the partition is removed.
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
    """The moment at which a state was taken."""

    position: int
    """Where the journal ended: what stands before is in the state."""
    moves: int
    """The copies that the state knows of."""


class Checkpoint:
    """One checkpoint under way, driven by the node in steps."""

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
        """The copies that each added state knows of."""
        self.needs_position = journal.appended_position
        """The snapshot waits until the journal is committed up to here."""
        self.job: SnapshotJob | None = None

    def is_journal(self, file_number: int) -> bool:
        """Whether the file is to be vacated: what is alive in it must be copied before `add`."""
        return file_number in self._vacating

    def mark(self) -> Mark:
        """This moment, for a state that is taken now and added later."""
        return Mark(self._journal.appended_position, self._segments.moves)

    def add(
        self, partition: int, index: int, state: Buffer | Sequence[Buffer], mark: Mark | None = None
    ) -> None:
        """Takes the state of a partition after its record `index`, which was its last at the mark (now, if none is given).

        The state must not change afterwards. One of a partition that was removed meanwhile is left out: should the
        partition come back, it begins anew, in the journal.
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
