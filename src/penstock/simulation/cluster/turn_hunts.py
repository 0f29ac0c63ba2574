"""A hunt for what is looked at too early: a primary that acknowledges alone stands still in the middle of a turn.

What it has written is on its way to its disk then. When it goes on, its lease has ended, and the first that it hears is that the
disk has it. By chance a pause hardly ever falls between the two.
"""

from __future__ import annotations

from penstock.cluster.layout import PartitionEntry
from penstock.simulation.cluster.hunts import Hunter
from penstock.simulation.driver import DiskPace
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.turn_pause import TurnPause

_ELECTED_MS = 7_000
_AWAITED_MS = 3_000


class TurnHunter(Hunter):
    """Hunts primaries of `async` queues."""

    def hunt_turns(self, every_ms: int) -> None:
        """Begins."""
        self._tasks.start(self._hunt_turns(every_ms))

    def _hunt_turns(self, every_ms: int) -> Steps[None]:
        while not self._is_over():
            yield Pause(self._random.randint(every_ms // 3, every_ms))
            found = [
                entry
                for entry in self._entries().values()
                if entry.primary is not None
                and entry.settings.replication == "async"
                and entry.serving == entry.epoch
                and self._machines[entry.primary].is_up
            ]
            if found and not self._is_over():
                entry = self._random.choice(found)
                yield from self._stop_in_turn(entry, entry.primary or "")

    def _stop_in_turn(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        machine = self._machines[primary]
        duration_ms = self._random.choice((2_500, 5_000))
        pause = TurnPause("append", 1, duration_ms, lambda: self._awaits_disk(entry, primary))
        machine.pace = DiskPace((2, 10), (0, 8))
        machine.turn_pause = pause
        stood = yield from self._until(lambda: machine.turn_pause is not pause, _AWAITED_MS)
        machine.pace = DiskPace()
        if stood:
            self._say(
                f"{primary} stood still while what partition {entry.partition} waits for was on its way to the disk"
            )
            self._operators.counts["hunt: pause in a turn"] += 1
            yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)
        elif machine.turn_pause is pause:
            machine.turn_pause = None

    def _awaits_disk(self, entry: PartitionEntry, primary: str) -> bool:
        """Whether a flush is under way that somebody waits for who was promised something of the partition."""
        machine = self._machines[primary]
        node = machine.replicated
        if node is None or not machine.is_flushing:
            return False
        waiting = node._parts.outbox._waiting
        return any(need[0] == entry.partition for answer in waiting for need in answer.needs)
