"""Damage to rare contents of a disk, which a randomly chosen bit hardly ever hits.

These are tables of snapshots, entries of rare kinds, whole files, and the identity of the directory. In a cluster one
machine is damaged, in some of the runs with disk damage: nothing is expected of that machine, and the others must
continue. On a single node only the front table of the newest snapshot is damaged: a second one at its end replaces it, so
nothing may be lost.

It has its own random generator, so runs without aimed damage do not change.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.history import BitFlip, History
from penstock.simulation.schedule import Schedule
from penstock.simulation.trace import Trace
from penstock.storage import copy, identity, snapshot
from penstock.storage.entry import HEADER_BYTES, Header
from penstock.storage.journal_file import journal_name, list_journal
from penstock.storage.scan import JournalScan

_SHARE = 0.6
_FRONT_BYTES = 60
"""Of a snapshot: its header, and at least the beginning of its first table."""


def draw_aimed(
    seed: int, history: History, schedule: Schedule, trace: Trace, counts: Counter[str]
) -> AimedDamage | None:
    """The aimed damage of a run with disk damage; None in some of them."""
    dice = Random(f"{seed} aimed damage")
    return AimedDamage(dice, history, schedule, trace, counts) if dice.random() < _SHARE else None


class AimedDamage:
    """Damages a disk while its machine is off, or removes files while it is running."""

    def __init__(
        self, random: Random, history: History, schedule: Schedule, trace: Trace, counts: Counter[str]
    ) -> None:
        self._random = random
        self._history = history
        self._schedule = schedule
        self._trace = trace
        self._counts = counts

    def strike(self, name: str, disk: SimulatedDisk, seed: int) -> None:
        """Before a start: up to three things that the machine will miss or not, up to its identity."""
        kinds = (self._snapshot_tables, self._entry, self._entry, self._entry, self._lose_segment)
        vital = (self._vital_file, self._lose_journal_file)
        for _ in range(self._random.choice((0, 1, 1, 2, 3))):
            chosen = self._random.choice(vital if self._random.random() < 0.2 else kinds)
            what = chosen(disk, seed)
            if what is not None:
                self._note(name, *what)

    def wants_restart(self) -> bool:
        """Whether the machine should stop now, so that it is struck when it starts."""
        return self._random.random() < 0.5

    def take_segment(self, name: str, disk: SimulatedDisk) -> None:
        """While the machine runs: a file with messages is gone."""
        if self._random.random() < 0.3:
            what = self._lose_segment(disk, 0)
            if what is not None:
                self._note(name, *what)

    def spoil_front(self, disk: SimulatedDisk) -> None:
        """Before a start of a single node: damages the first table of the newest snapshot, which has another."""
        numbers = snapshot.list_snapshots(disk)
        if numbers and self._random.random() < 0.3:
            file = snapshot.snapshot_name(numbers[-1])
            offset = self._random.randrange(min(_FRONT_BYTES, len(disk.contents(file)) // 2))
            if not disk.inode(file).unreadable:
                disk.flip_bit(file, offset, self._random.randrange(8))
                self._counts["front of a snapshot"] += 1
                self._trace.add("faults", f"damages the front of {file}")

    def _note(self, name: str, what: str, file: str) -> None:
        self._counts[what] += 1
        self._trace.add("faults", f"{name}: {what}: {file}")
        self._history.flips.append(BitFlip(self._schedule.now_ms, file, None))

    def _flip(self, disk: SimulatedDisk, file: str, offset: int) -> None:
        disk.flip_bit(file, offset, self._random.randrange(8))

    def _snapshot_tables(self, disk: SimulatedDisk, seed: int) -> tuple[str, str] | None:
        """The first table of the newest snapshot, or both."""
        numbers = snapshot.list_snapshots(disk)
        if not numbers:
            return None
        file = snapshot.snapshot_name(numbers[-1])
        size = len(disk.contents(file))
        reach = min(_FRONT_BYTES, size // 2)
        if not reach:
            return None
        self._flip(disk, file, self._random.randrange(reach))
        if self._random.random() < 0.3:
            self._flip(disk, file, size - 1 - self._random.randrange(reach))
            return "both tables of a snapshot", file
        return "a table of a snapshot", file

    def _entry(self, disk: SimulatedDisk, seed: int) -> tuple[str, str] | None:
        """An entry of the journal, each kind as often as another, in its header or behind it."""
        by_kind: dict[int, list[tuple[str, int, Header]]] = {}
        for number in list_journal(disk)[0]:
            file, offset = journal_name(number), 0
            scan = JournalScan(number, disk.contents(file), seed)
            while (header := scan.header_at(offset)) is not None:
                by_kind.setdefault(header.kind, []).append((file, offset, header))
                offset += header.size
        if not by_kind:
            return None
        file, offset, header = self._random.choice(by_kind[self._random.choice(sorted(by_kind))])
        inside = header.head_size + header.payload_size
        if inside and self._random.random() < 0.5:
            offset += HEADER_BYTES + self._random.randrange(inside)
        else:
            offset += self._random.randrange(HEADER_BYTES)
        self._flip(disk, file, offset)
        return "an entry of some kind", file

    def _lose_segment(self, disk: SimulatedDisk, seed: int) -> tuple[str, str] | None:
        return self._lose(disk, [name for name in disk.files() if name.startswith(f"{copy.FOLDER}/")])

    def _lose_journal_file(self, disk: SimulatedDisk, seed: int) -> tuple[str, str] | None:
        return self._lose(disk, [journal_name(number) for number in list_journal(disk)[0]])

    def _vital_file(self, disk: SimulatedDisk, seed: int) -> tuple[str, str] | None:
        """The identity of the directory is damaged or gone, or all snapshots are gone."""
        files = disk.files()
        snapshots = [snapshot.snapshot_name(number) for number in snapshot.list_snapshots(disk)]
        if identity.NAME not in files or not snapshots:
            return None
        chance = self._random.random()
        if chance < 0.4:
            self._flip(disk, identity.NAME, self._random.randrange(files[identity.NAME]))
            return "a damaged identity", identity.NAME
        if chance < 0.7:
            disk.lose(identity.NAME)
            return "a lost file", identity.NAME
        for file in snapshots:
            disk.lose(file)
        return "lost snapshots", snapshots[-1]

    def _lose(self, disk: SimulatedDisk, names: list[str]) -> tuple[str, str] | None:
        if not names:
            return None
        name = self._random.choice(names)
        disk.lose(name)
        return "a lost file", name
