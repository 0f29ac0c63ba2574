"""Targeted faults beyond the network: a primary pauses in a turn, or its requests to the store do not arrive.

`hunt_turns` finds checks that are made too early. A primary that acknowledges alone pauses in the middle of a turn, while
its records are in transit to its disk. When it continues, its lease has ended, and its first event is that the flush has
ended. A random pause hardly ever falls between the two.

`hunt_unsaid` finds actions that come before the store knows them. One replica in sync receives nothing more. The primary
keeps its lease, and cannot reach the store to continue without that replica. Then that replica is the only one left.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.cluster.layout.entries import PartitionEntry, partition_key
from penstock.simulation.cluster.targeted_faults import Hunter
from penstock.simulation.driver import DiskPace
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.turn_pause import TurnPause

_ELECTED_MS = 7_000
_AWAITED_MS = 3_000
_GONE_ON_MS = 3_500


class AimedHunter(Hunter):
    """Hunts primaries, of `async` queues in turns and of `sync` queues at the store."""

    def hunt_turns(self, every_ms: int) -> None:
        """Begins."""
        self._tasks.start(self._hunt_again(every_ms, "async", self._stop_in_turn))

    def hunt_unsaid(self, every_ms: int) -> None:
        """Begins."""
        self._tasks.start(self._hunt_again(every_ms, "sync", self._leave_unsaid))

    def _hunt_again(
        self, every_ms: int, replication: str, hunt: Callable[[PartitionEntry, str], Steps[None]]
    ) -> Steps[None]:
        while not self._is_over():
            yield Pause(self._random.randint(every_ms // 3, every_ms))
            found = [
                entry
                for entry in self._entries().values()
                if entry.primary is not None
                and entry.settings.replication == replication
                and entry.serving == entry.epoch
                and self._machines[entry.primary].is_up
            ]
            if found and not self._is_over():
                entry = self._random.choice(found)
                yield from hunt(entry, entry.primary or "")

    def _leave_unsaid(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        others = [name for name in entry.in_sync if name != primary]
        if not others:
            return
        left = self._random.choice(others)
        self._say(
            f"{left} hears no more of partition {entry.partition}, and {primary} cannot say so to the store"
        )
        self._operators.counts["hunt: unsaid"] += 1
        self._metadata.unheard = (primary, partition_key(entry.partition))
        self._part(left, *(name for name in self._machines if name != left))
        yield from self._next_commit(entry, primary, 200)
        yield Pause(100)  # the remaining replica does not have what is committed from now on
        yield from self._next_commit(entry, primary, _GONE_ON_MS)
        yield Pause(self._random.choice((1, 5, 50)))
        self._metadata.unheard = None
        if self._is_over():
            return
        self._cut_power([name for name in entry.replicas if name != left], self._random.randint(6_000, 8_000))
        self._fabric.mend()
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)

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
        """Whether a flush is running for which a client with a promise about the partition waits."""
        machine = self._machines[primary]
        node = machine.replicated
        if node is None or not machine.is_flushing:
            return False
        waiting = node._parts.outbox._waiting
        return any(need[0] == entry.partition for answer in waiting for need in answer.needs)
