"""Finds which partition lost a record: the accounting of indexes while the journal is read back.

The records of a partition are numbered 1, 2, 3…, so a missing one shows. If a part of the journal is unreadable, its
partitions are unknown, and until there is a proof every partition may be one of them:

- a record that directly follows the last one before the hole proves that nothing was lost;
- a gap in the numbers proves that something was lost;
- the table at the end of the file with the hole contains the last record of each partition in it;
- a partition without a proof at the end is reported as damaged, also a partition without any readable record if it existed
  before
  the hole (`unread`).

Once a partition is damaged none of its later records is replayed, because its state would be wrong. Only a whole state
from another replica repairs it.

The records of a replica may be cut, and their numbers used again. So the position in the journal at which a state was
captured says which records a snapshot contains, and a table with fewer records than were read shows that a cut was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.storage.errors import Damage


class Hole(NamedTuple):
    """A part of the journal that was written and cannot be read."""

    file: str
    offset: int
    reason: str


class Ledger:
    """The known facts about each partition's records."""

    def __init__(
        self,
        snapshot_indexes: Mapping[int, int],
        damages: Iterable[Damage] = (),
        gone: Iterable[int] = (),
        taken: Mapping[int, int] | None = None,
    ) -> None:
        self._snapshot = dict(snapshot_indexes)
        self._taken = dict(taken or {})
        """The position in the journal before which everything of a partition is in the snapshot."""
        self.last = dict(snapshot_indexes)
        """The last record of each partition that the snapshot or the replay holds."""
        self.damages = {damage.partition: damage for damage in damages}
        self.gone = set(gone)
        """Partitions that the snapshot says are gone, and that have not come back since."""
        self._holes: list[Hole | None] = []  # None: its owners have been found
        self._shown_until: dict[int, int] = {}  # how many of the holes a partition is known to have survived
        self._first_hole_in_file = 0

    def start_file(self) -> None:
        """The holes that follow are in the next file."""
        self._first_hole_in_file = len(self._holes)

    def hole(self, file: str, offset: int, reason: str) -> None:
        """Something was written there and its owner is unknown."""
        self._holes.append(Hole(file, offset, reason))

    def is_taken(self, partition: int, position: int) -> bool:
        """Whether an entry is in the snapshot's state of the partition."""
        return position < self._taken.get(partition, 0)

    def record(self, partition: int, index: int, file: str, offset: int, position: int = 2**64) -> bool:
        """A readable record; whether it is to be replayed."""
        if partition in self.gone:
            return False
        if position < self._taken.get(partition, 0):
            self._shown_until[partition] = len(self._holes)
            return False
        last = self.last.get(partition, 0)
        if partition in self.damages:
            if index <= last and self._taken.get(partition, 0):
                self._misplaced(partition, index, file, offset)
            return False
        if index == last + 1:
            self.last[partition] = index
            self._shown_until[partition] = len(self._holes)
            return True
        if index <= self._snapshot.get(partition, 0) and not self._taken.get(partition, 0):
            self._shown_until[partition] = len(self._holes)
        elif index <= last:
            self._misplaced(partition, index, file, offset)
        else:
            self._lost(partition, index, last, file, offset)
        return False

    def _misplaced(self, partition: int, index: int, file: str, offset: int) -> None:
        """A record is where it was not written. It replaced other bytes, which may have belonged to any partition."""
        reason = f"record {index} stands after record {self.last.get(partition, 0)}"
        self.hole(file, offset, reason)
        self._damaged(partition, Hole(file, offset, reason))

    def cut(self, partition: int, index: int, file: str, offset: int) -> bool:
        """Notes a cut after `index`; returns whether it is possible."""
        if partition in self.gone:
            return False
        last, snapshot = self.last.get(partition, 0), self._snapshot.get(partition, 0)
        if partition in self.damages or index < snapshot:
            # New records after `index` are not misplaced then.
            self._damaged(partition, Hole(file, offset, f"it is cut to {index}, before its snapshot"))
            self.last[partition], self._snapshot[partition] = min(last, index), min(snapshot, index)
            return False
        if index > last:
            self._lost(partition, index + 1, last, file, offset)
            return False
        self.last[partition] = index
        self._shown_until[partition] = len(self._holes)
        return True

    def image(self, partition: int, index: int) -> None:
        """A whole state as of `index`, in place of everything before, a former life of the partition included."""
        self.gone.discard(partition)
        self.damages.pop(partition, None)
        self.last[partition] = self._snapshot[partition] = index
        self._shown_until[partition] = len(self._holes)

    def incomplete_image(self, partition: int, file: str, offset: int) -> None:
        """The end of a state whose beginning cannot be read."""
        if partition not in self.gone:
            self._damaged(partition, Hole(file, offset, "a part of the state is missing before it"))

    def unreadable_record(
        self,
        partition: int,
        index: int,
        file: str,
        offset: int,
        reason: str,
        position: int = 2**64,
        *,
        is_state: bool = False,
    ) -> None:
        """A record of a known partition whose bytes differ from what was written; or a part of a whole state.

        A record that the snapshot contains is not needed to rebuild the state. If its message is still alive, reading or
        moving it reports the damage. A whole state that was written after the snapshot is always needed: the numbers of
        its records may be lower than those of the state in the snapshot, which it replaced. A record with a lower number
        after the position at which the snapshot was captured was not written there.
        """
        if self.is_taken(partition, position) or partition in self.gone:
            return
        if is_state or index > self._snapshot.get(partition, 0):
            self._damaged(partition, Hole(file, offset, reason))
        elif self._taken.get(partition, 0):
            self._misplaced(partition, index, file, offset)

    def table(self, rows: Iterable[tuple[int, int]], file: str, offset: int, position: int = 2**64) -> None:
        """Checks the table that a file has at its end: a partition that does not match lost something in the file."""
        for partition, index in rows:
            last = self.last.get(partition, 0)
            if self.is_taken(partition, position):
                continue
            if index > last:
                self._lost(partition, index + 1, last, file, offset)
            elif 0 < index < last and last > self._snapshot.get(partition, 0):
                reason = f"records after {index} were cut, and where cannot be read"
                self._damaged(partition, Hole(file, offset, reason))
        for number in range(self._first_hole_in_file, len(self._holes)):
            self._holes[number] = None

    def finish(self) -> list[Damage]:
        """Reports every partition without a proof as damaged; returns all damages, by partition."""
        for number, hole in enumerate(self._holes):
            if hole is not None:
                for partition in self.last:
                    if self._shown_until.get(partition, 0) <= number:
                        self._damaged(partition, _unexplained(hole))
        return [self.damages[partition] for partition in sorted(self.damages)]

    def unread(self, partition: int, file: str, offset: int) -> Damage | None:
        """The possible damage of a partition without any record, which exists since that place in the journal.

        All records that it ever had may have been in a hole after that place. This ledger does not know which partitions
        exist, so the caller must ask for each.
        """
        for hole in self._holes:
            if hole is not None and (hole.file, hole.offset) > (file, offset):
                return Damage(partition, *_unexplained(hole))
        return None

    @property
    def all_found(self) -> bool:
        """Whether the owners of all holes in the present file are known."""
        return all(hole is None for hole in self._holes[self._first_hole_in_file :])

    def _lost(self, partition: int, index: int, last: int, file: str, offset: int) -> None:
        """Records after `last` and before `index` are missing: most likely they were in the first open hole."""
        since = self._holes[self._shown_until.get(partition, 0) :]
        hole = next((hole for hole in since if hole is not None), Hole(file, offset, "the journal has a gap"))
        missing = f"record {last + 1}" if index == last + 2 else f"records {last + 1} to {index - 1}"
        self._damaged(
            partition, hole._replace(reason=f"{hole.reason}; {missing} of the partition cannot be read")
        )

    def _damaged(self, partition: int, hole: Hole) -> None:
        if partition not in self.gone:
            self.damages.setdefault(partition, Damage(partition, *hole))


def _unexplained(hole: Hole) -> Hole:
    return hole._replace(
        reason=f"{hole.reason}; it cannot be shown that no record of this partition was there"
    )
