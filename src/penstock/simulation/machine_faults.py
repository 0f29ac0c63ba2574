"""The faults inside one machine, for a single node and for a cluster: each is counted, and noted for checkers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from random import Random

from penstock.simulation.damage import Stretch, living_positions, misplaced, stretches
from penstock.simulation.history import BitFlip, History
from penstock.simulation.inode import SECTOR_BYTES, Inode
from penstock.simulation.machine import Machine
from penstock.simulation.message_history import Span
from penstock.simulation.refusals import RefusedAppends, draw_refusal
from penstock.simulation.schedule import Schedule
from penstock.simulation.trace import Trace
from penstock.simulation.turn_pause import TurnPause, draw_pause
from penstock.storage.disk import DiskFailedError
from penstock.storage.journal_file import FOLDER

_OPERATIONS = (
    "sync",
    "sync",
    "write",
    "create",
    "rename",
    "remove",
    "truncate",
    "sync_directory",
    "make_folder",
)
_UPKEEP_MS = 2_000
"""Work that a refused append postponed is repeated by then."""


class MachineFaults:
    """Injects faults into machines, one at a time."""

    def __init__(
        self, history: History, schedule: Schedule, random: Random, trace: Trace, counts: Counter[str]
    ) -> None:
        self._history = history
        self._schedule = schedule
        self._random = random
        self._trace = trace
        self._counts = counts
        self._undo: list[Callable[[], None]] = []

    def add(self, machine: Machine) -> None:
        """Registers for the outcome of faults that wait for their moment."""
        machine.refusals.refused = lambda refusal, what: self._refused(machine, refusal, what)
        machine.refusals.reserve_begun = lambda: self._history.reserves_begun.append(self._schedule.now_ms)
        machine.stood_still = self._stood_still

    def heal(self, machine: Machine) -> None:
        """Nothing waits for its moment any more."""
        machine.refusals.disarm()
        machine.turn_pause = None
        machine.disk.fault = None

    # -- the journal -----------------------------------------------------------------------------------------

    def refuse_appends(self, machine: Machine) -> None:
        """Some append will find no room in the journal."""
        if not machine.refusals.is_armed:
            machine.refusals.arm(draw_refusal(self._random))

    def _refused(self, machine: Machine, refusal: RefusedAppends, what: str) -> None:
        self._counts[f"journal {refusal.why}"] += 1
        self._trace.add("faults", f"{machine.name}: no room in the journal for {what} ({refusal.why})")
        self._slow(_UPKEEP_MS)
        if refusal.why == "full":
            self._history.full_journals.append(self._schedule.now_ms)

    # -- turns -----------------------------------------------------------------------------------------------

    def pause_in_turn(self, machine: Machine) -> None:
        """The process will pause in the middle of an action."""
        machine.turn_pause = draw_pause(self._random)

    def _stood_still(self, pause: TurnPause) -> None:
        self._counts[f"pause in a turn: {pause.site}"] += 1
        self._slow(pause.duration_ms + _UPKEEP_MS)
        self._history.downtimes.append(self._span(pause.duration_ms))

    # -- the disk --------------------------------------------------------------------------------------------

    def fail_operation(self, machine: Machine) -> None:
        """The k-th operation of a kind fails, as on a dying disk; the node must stop and answer nothing that needs it."""
        self.fail(
            machine,
            self._random.choice(_OPERATIONS),
            self._random.randint(1, self._random.choice((1, 4, 20))),
        )

    def fail(self, machine: Machine, operation: str, left: int) -> None:
        """The same, for an operation that is named."""
        disk = machine.disk

        def fault(what: str, name: str) -> Exception | None:
            nonlocal left
            if what != operation:
                return None
            left -= 1
            if left:
                return None
            disk.fault = None
            if (
                operation == "read"
            ):  # the next one succeeds: a process that did not start for it is started again
                self._undo.append(lambda: None)
            self._counts[f"failing {operation}"] += 1
            self._trace.add("faults", f"{machine.name}: {operation} of {name} fails")
            return DiskFailedError("simulated")

        disk.fault = fault

    def cannot_read(self, machine: Machine) -> None:
        """A sector cannot be read any more; or one read fails, and the next one would not."""
        if self._random.random() < 0.3:
            self.fail(machine, "read", self._random.randint(1, 30))
            self._history.flips.append(BitFlip(self._schedule.now_ms, "", None))
            return
        places = self.places(machine)
        if places:
            place = self._random.choice(places)
            self.make_unreadable(machine, place, self._random.randint(1, place.sectors))

    def make_unreadable(self, machine: Machine, place: Stretch, sectors: int) -> None:
        """The first sectors of a place cannot be read any more."""
        inode = machine.disk.inode(place.file)
        inode.unreadable.update(range(place.first, place.first + sectors))
        self._undo.append(inode.unreadable.clear)
        self._damaged(machine, "unreadable sector", place, place.owners)

    def lose_write(self, machine: Machine) -> None:
        """A write was synced, and never reached the medium: the earlier contents are there."""
        places = self.places(machine)
        if places:
            place = self._random.choice(places)
            self._restore(machine, place, self._random)
            self._damaged(machine, "stale write", place, place.owners)

    def lose(self, machine: Machine, place: Stretch, sectors: int) -> None:
        """The same, for the first sectors of a place."""
        inode = machine.disk.inode(place.file)
        for sector in range(place.first, place.first + sectors):
            self._put(inode, sector * SECTOR_BYTES, inode.before(sector))
        self._damaged(machine, "stale write", place, place.owners)

    def misdirect_write(self, machine: Machine) -> None:
        """Something was written to another place than it should have been: it is there, and not where it is looked for."""
        pairs = misplaced(self.places(machine))
        if pairs:
            self._misdirect(machine, *self._random.choice(pairs), self._random)

    def misdirect(self, machine: Machine, dice: Random) -> bool:
        """The same, if the message that should be there will be read and may be confused with the other one."""
        read_next = _read_next(machine)
        pairs = [
            (written, landed)
            for written, landed in misplaced(self.places(machine))
            if written.partition == landed.partition and landed.position in read_next
        ]
        if pairs:
            self._misdirect(machine, *dice.choice(pairs), dice)
        return bool(pairs)

    def _misdirect(self, machine: Machine, written: Stretch, landed: Stretch, dice: Random) -> None:
        disk, size = machine.disk, written.sectors * SECTOR_BYTES
        start = written.first * SECTOR_BYTES
        data = disk.contents(written.file)[start : start + size]
        self._put(disk.inode(landed.file), landed.first * SECTOR_BYTES, data)
        self._damaged(machine, "misdirected write", landed, written.owners | landed.owners)
        if dice.random() < 0.5:  # else it was repeated, and is at both places
            self._restore(machine, written, dice)
            self._suspect(written, written.owners)

    def places(self, machine: Machine) -> list[Stretch]:
        """The places on a machine that may be damaged."""
        store = machine.store
        return (
            stretches(machine.disk, store.identity.seed, store.committed_position)
            if store is not None
            else []
        )

    def _restore(self, machine: Machine, place: Stretch, dice: Random) -> None:
        inode = machine.disk.inode(place.file)
        first = dice.randint(place.first, place.end - 1)
        for sector in range(first, dice.randint(first + 1, place.end)):
            self._put(inode, sector * SECTOR_BYTES, inode.before(sector))

    def _put(self, inode: Inode, offset: int, data: bytes) -> None:
        before = bytes(inode.content[offset : offset + len(data)])
        inode.damage(offset, data)

        def undo() -> None:
            if inode.content[offset : offset + len(data)] == data:  # else it was written again
                inode.damage(offset, before)

        self._undo.append(undo)

    def put_right(self) -> bool:
        """Undoes the damage to sectors, as from a copy; False if there was none."""
        undone, self._undo = self._undo, []
        for undo in reversed(undone):
            undo()
        return bool(undone)

    def _damaged(self, machine: Machine, what: str, place: Stretch, owners: Collection[int]) -> None:
        self._counts[what] += 1
        self._trace.add(
            "faults",
            f"{machine.name}: {what} at sector {place.first} of {place.file}, of queues {sorted(owners)}",
        )
        self._suspect(place, owners)

    def _suspect(self, place: Stretch, owners: Collection[int]) -> None:
        """Notes for checkers who may be fenced because a place holds something else."""
        # A header that is gone leaves a hole in the journal, and whose it was is not known.
        suspects: list[int | None] = [None] if place.file.startswith(f"{FOLDER}/") else [*sorted(owners)]
        for owner in suspects:
            self._history.flips.append(BitFlip(self._schedule.now_ms, place.file, owner))

    # -- for checkers ----------------------------------------------------------------------------------------

    def _slow(self, duration_ms: int) -> None:
        """The disk could not keep up, or was not used: due work is late."""
        self._history.slow_disks.append(self._span(duration_ms))

    def _span(self, duration_ms: int) -> Span:
        span = Span(self._schedule.now_ms)

        def over() -> None:
            span.answered_ms = self._schedule.now_ms

        self._schedule.after(duration_ms, over)
        return span


def _read_next(machine: Machine) -> set[int]:
    """The places of messages that are waited for and not in memory."""
    store, node = machine.store, machine.node
    if store is None or node is None:
        return set()
    return {position for position in living_positions(node) if not store.has_cached(position)}
