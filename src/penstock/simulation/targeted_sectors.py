"""Targeted damage on a disk: of sectors that are about to be read.

Random damage mostly hits data that is not read again: messages in memory, or journal files that a checkpoint has made
superfluous. A hunt waits for a position that is read next, damages it, and if only a start reads it kills the process.
"""

from __future__ import annotations

from random import Random
from typing import Literal

from penstock.simulation.damage import Stretch, file_number
from penstock.simulation.inode import SECTOR_BYTES
from penstock.simulation.machine import Machine
from penstock.simulation.machine_faults import MachineFaults
from penstock.simulation.schedule import Schedule
from penstock.storage.entry import decode_header
from penstock.storage.journal_file import FOLDER

SectorHunt = Literal["misdirected", "stale", "unreadable"]
_KINDS: tuple[SectorHunt | None, ...] = (None, "misdirected", "stale", "unreadable")
_LOOKS_MS = (50, 400)
_MOST = 6
_KILLED_MS = (0, 40, 200)


def draw_sector_hunt(duration_ms: int) -> SectorHunt | None:
    """The target in a run with damaged sectors. With its own random generator."""
    return Random(f"sectors: {duration_ms}").choice(_KINDS)


class SectorHunter:
    """Damages one machine until told to stop."""

    def __init__(
        self, hunt: SectorHunt, machine: Machine, inside: MachineFaults, schedule: Schedule, dice: Random
    ) -> None:
        self._hunt = hunt
        self._machine = machine
        self._inside = inside
        self._schedule = schedule
        self._dice = dice
        self._left = _MOST
        self.over = False

    def start(self) -> None:
        """Looks for the first place."""
        self._schedule.after_rest(self._dice.randint(*_LOOKS_MS), self._look)

    def _look(self) -> None:
        if self.over or not self._left:
            return
        if self._machine.is_up and self._strikes():
            self._left -= 1
            if self._hunt != "misdirected":
                self._schedule.after(self._dice.choice(_KILLED_MS), self._kill)
        self.start()

    def _kill(self) -> None:
        if not self.over:
            self._machine.crash(power=False)

    def _strikes(self) -> bool:
        match self._hunt:
            case "misdirected":
                return self._inside.misdirect(self._machine, self._dice)
            case "stale":
                found = [place for place in self._journal() if self._was_used_before(place)]
                if not found:
                    return False
                self._inside.lose(self._machine, self._dice.choice(found), sectors=1)
            case "unreadable":
                last = max((place.file for place in self._journal()), default="")
                found = [place for place in self._journal() if place.file == last]
                if not found:
                    return False
                self._inside.make_unreadable(self._machine, self._dice.choice(found), sectors=1)
        return True

    def _journal(self) -> list[Stretch]:
        return [place for place in self._inside.places(self._machine) if place.file.startswith(f"{FOLDER}/")]

    def _was_used_before(self, place: Stretch) -> bool:
        """Whether the file begins there, and began with another entry in its former life."""
        if place.first or place.offset:
            return False
        inode = self._machine.disk.inode(place.file)
        header = decode_header(inode.before(0), 0, self._machine.identity.seed)
        start = inode.content[:SECTOR_BYTES]
        return (
            header is not None and header.file_number != file_number(place.file) and inode.before(0) != start
        )
