"""Bugs to plant in what a start relies on: the patches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from penstock.backend.node import opening
from penstock.backend.node.parts import NodeParts
from penstock.model.records import CATALOGUE
from penstock.simulation.patching import Patch
from penstock.storage.checkpoint import Checkpoint
from penstock.storage.entry import IMAGE
from penstock.storage.recovery import Entry, JournalTail
from penstock.storage.snapshot import SnapshotJob


def snapshots_claim_more() -> Sequence[Patch]:
    """A snapshot says of every state that it was taken when the snapshot was written, which is later."""

    def snapshot_job(self: Checkpoint) -> SnapshotJob | None:
        written = self._journal.committed_position
        if written >= self.needs_position:
            self._states = {
                partition: msgspec.structs.replace(state, position=written)
                for partition, state in self._states.items()
            }
        return real(self)

    real = Checkpoint.snapshot_job
    return [(Checkpoint, "snapshot_job", snapshot_job)]


def starts_fall_short() -> Sequence[Patch]:
    """The last record of the journal is not replayed, and nobody asks where the states should stand."""

    def entries(self: JournalTail) -> Iterator[Entry]:
        last = max((file.number for file in self.files if file.offsets), default=0)
        for file in self.files:
            if file.number == last and len(file.offsets) > 1:
                file.offsets.pop()
        yield from real(self)

    def check_indexes(parts: NodeParts) -> None:
        parts.logbook.catalogue_index = parts.store.recovery.indexes.get(CATALOGUE, 0)

    real = JournalTail.entries
    return [(JournalTail, "entries", entries), (opening, "_check_indexes", check_indexes)]


def whole_states_are_forgotten() -> Sequence[Patch]:
    """A start does not take over a whole state that came from another replica, and nobody asks where the states should stand."""

    def replay_replica(parts: NodeParts, entry: Entry, images: dict[int, list[bytes]]) -> None:
        if entry.kind != IMAGE:
            real(parts, entry, images)

    def check_indexes(parts: NodeParts) -> None:
        return None

    real = opening._replay_replica
    return [(opening, "_replay_replica", replay_replica), (opening, "_check_indexes", check_indexes)]
