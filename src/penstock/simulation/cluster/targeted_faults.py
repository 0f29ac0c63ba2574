"""Hunts: targeted faults. Each waits for the moment in which only one rule of replication protects a message.

Random faults rarely hit that moment: that a replica lags, that this is not known yet, and that all others fail just then.
A hunt picks a partition, waits for an acknowledgement, and strikes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, Protocol, get_args

from penstock.cluster.layout.entries import PartitionEntry
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.driver import DiskPace
from penstock.simulation.schedule import Schedule
from penstock.simulation.tasks import Pause, Steps, Tasks
from penstock.simulation.trace import Trace

HuntName = Literal[
    "left-behind",
    "dark",
    "lost-answer",
    "old-primary",
    "standstill",
    "hand-over",
    "rejoin",
    "whole-state",
    "dead-letter",
    "late-move",
    "unsaid",
]
HUNTS: tuple[HuntName, ...] = tuple(
    name for name in get_args(HuntName) if name not in ("dead-letter", "late-move", "unsaid")
)
"""Those that any queue may meet. Two of the others are for scenarios with dead letters, `dead-letter` for those that may lose some;
`unsaid` (`targeted_stops.py`) is for `sync` queues, in place of `left-behind`."""

_ELECTED_MS = 7_000
"""By then another primary is elected, if possible."""


class Operators(Protocol):
    """The faults that hunts need."""

    counts: Counter[str]

    def keep_down(self, name: str, duration_ms: int) -> None:
        """A machine that goes down now is not started before."""

    def bring_up(self, name: str) -> None:
        """A machine that is down is started."""

    def drain(self, name: str) -> None:
        """A node is to hold nothing."""

    def undrain(self, name: str) -> None:
        """It may again."""


class Hunter:
    """Hunts, one after the other, until all faults end."""

    def __init__(
        self,
        machines: list[ClusterMachine],
        fabric: Fabric,
        metadata: SimulatedMetadata,
        operators: Operators,
        entries: Callable[[], Mapping[int, PartitionEntry]],
        schedule: Schedule,
        random: Random,
        trace: Trace,
    ) -> None:
        self._machines = {machine.name: machine for machine in machines}
        self._fabric = fabric
        self._metadata = metadata
        self._operators = operators
        self._entries = entries
        self._schedule = schedule
        self._random = random
        self._trace = trace
        self._tasks = Tasks(schedule)
        self.over = False

    def start(self, name: HuntName, every_ms: int, queues: list[str]) -> None:
        """Hunts for partitions of these queues."""
        self._tasks.start(self._hunt_on(name, every_ms, queues))

    def _hunt_on(self, name: HuntName, every_ms: int, queues: list[str]) -> Steps[None]:
        hunts: dict[HuntName, Callable[[PartitionEntry, str], Steps[None]]] = {
            "left-behind": self._leave_behind,
            "dark": self._darken,
            "lost-answer": self._lose_answer,
            "old-primary": self._cut_off,
            "standstill": self._stand_still,
            "hand-over": self._hand_over,
            "rejoin": self._rejoin,
            "whole-state": self._take_whole,
            "dead-letter": self._lose_dead_letter,
            "late-move": self._be_late,
        }
        while not self._is_over():
            yield Pause(self._random.randint(every_ms // 3, every_ms))
            found = [
                entry
                for entry in self._entries().values()
                if entry.queue in queues
                and entry.primary is not None
                and entry.serving == entry.epoch
                and self._machines[entry.primary].is_up
                and len(entry.in_sync) > 1
            ]
            if found and not self._is_over():
                entry = self._random.choice(found)
                assert entry.primary is not None
                self._operators.counts[f"hunt: {name}"] += 1
                yield from hunts[name](entry, entry.primary)

    def _is_over(self) -> bool:
        return self.over

    # -- what hunts are made of ------------------------------------------------------------------------------

    def _say(self, sentence: str) -> None:
        self._trace.add("hunt", sentence)

    def _until(self, holds: Callable[[], bool], most_ms: int) -> Steps[bool]:
        """Looks every millisecond; False once everything is well again, or it took too long."""
        for _ in range(most_ms):
            if self._is_over():
                return False
            if holds():
                return True
            yield Pause(1)
        return False

    def _committed(self, entry: PartitionEntry, name: str) -> int:
        node = self._machines[name].replicated
        led = node.replication.state.led.get(entry.partition) if node is not None else None
        return led.primary.committed if led is not None else 0

    def _sent(self, entry: PartitionEntry, name: str) -> int:
        node = self._machines[name].replicated
        partition = node._parts.catalogue.partitions.get(entry.partition) if node is not None else None
        return partition.totals.sent if partition is not None else 0

    def _next_commit(self, entry: PartitionEntry, primary: str, most_ms: int) -> Steps[bool]:
        """Waits until the primary commits something more, so that an acknowledgement is on its way."""
        before = self._committed(entry, primary)
        return self._until(lambda: self._committed(entry, primary) > before, most_ms)

    def _now(self, entry: PartitionEntry) -> PartitionEntry:
        return self._entries().get(entry.partition, entry)

    def _is_replaced(self, entry: PartitionEntry) -> bool:
        now = self._now(entry)
        return now.epoch > entry.epoch and now.serving == now.epoch

    def _cut_power(self, names: list[str], down_ms: int) -> None:
        """They lose all that was not synced, and stay away."""
        for name in names:
            machine = self._machines[name]
            self._operators.keep_down(name, down_ms)
            if machine.is_up:
                machine.disk.loses_all = True
                self._operators.counts["power cut"] += 1
                machine.crash(power=True)

    def _part(self, one: str, *others: str) -> None:
        self._fabric.part([one], others)

    # -- hunts -----------------------------------------------------------------------------------------------

    def _leave_behind(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """One replica in sync receives nothing more from the primary, then it is the only one left."""
        left = self._random.choice([name for name in entry.in_sync if name != primary])
        others = [name for name in entry.replicas if name != left]
        self._say(f"{left} hears no more of partition {entry.partition}, then is the only one left")
        self._part(left, *others)
        if self._random.random() < 0.6:
            self._metadata.unreachable_from.add(primary)
            yield Pause(self._random.choice((300, 1_000, 1_200, 1_400)))
        else:
            yield Pause(self._random.choice((50, 300, 700, 1_000, 1_500, 1_800)))
        yield from self._next_commit(entry, primary, 400)
        if self._is_over():
            return
        self._cut_power(others, self._random.randint(6_000, 8_000))
        self._fabric.mend()
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)

    def _darken(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """All replicas lose their power with an acknowledgement on its way, and the primary stays away."""
        self._say(f"the power of all that hold partition {entry.partition} goes, {primary} stays away")
        for name in entry.replicas:
            if name != primary:
                self._machines[name].pace = DiskPace((100, 600), (0, 8))
        for _ in range(self._random.randint(1, 4)):
            yield from self._next_commit(entry, primary, 1_500)
        for name in entry.replicas:
            self._machines[name].pace = DiskPace()
        if self._is_over():
            return
        self._cut_power([primary], self._random.randint(6_000, 8_000))
        self._cut_power([name for name in entry.replicas if name != primary], 10)
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)

    def _lose_answer(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """An acknowledgement does not arrive, and the primary is gone: clients repeat their requests to its successor."""
        self._say(f"answers of {primary} arrive nowhere, then it is gone")
        self._fabric.clients[primary].cut(to_server=False, to_client=True)
        for _ in range(self._random.randint(1, 3)):
            yield from self._next_commit(entry, primary, 600)
        if not self._is_over():
            self._cut_power([primary], self._random.choice((10, 3_000, 6_000)))
            self._fabric.mend()
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)

    def _cut_off(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """A primary that was replaced and does not know it reaches the others again, and they it."""
        self._say(f"{primary} is cut off until somebody else leads partition {entry.partition}")
        others = [name for name in self._machines if name != primary]
        self._part(primary, *others)
        self._metadata.unreachable_from.update([primary, *self._fabric.strays()])
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)
        yield Pause(self._random.randint(100, 600))
        yield from self._come_back(entry, primary)

    def _stand_still(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """The same, and it was paused meanwhile: earlier requests wait there."""
        self._say(f"{primary} stands still until somebody else leads partition {entry.partition}")
        machine = self._machines[primary]
        machine.pause()
        self._operators.counts["pause"] += 1
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)
        yield Pause(self._random.randint(0, 600))
        if self._is_over():
            return
        self._metadata.unreachable_from.add(primary)
        machine.resume()
        yield from self._come_back(entry, primary)

    def _come_back(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """The old primary has the network again, not the store; then the new one may be gone."""
        if self._is_over():
            return
        self._fabric.mend_network()
        now = self._now(entry)
        if now.primary is not None and now.primary != primary and self._random.random() < 0.7:
            self._part(primary, now.primary)  # else it learns at once that it no longer leads
        yield Pause(self._random.randint(300, 1_000))
        now = self._now(entry)
        if self._is_over():
            return
        if now.primary is not None and now.primary != primary and self._random.random() < 0.8:
            self._say(f"{now.primary}, which leads now, loses its power")
            self._cut_power([now.primary], self._random.choice((10, 6_000, 6_000)))
            yield Pause(self._random.randint(300, 1_500))
        if not self._is_over():
            self._fabric.mend()
        yield from self._until(lambda: self._is_replaced(now), _ELECTED_MS)

    def _lose_dead_letter(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """One replica in sync receives nothing of what arrives in an `async` queue, and is the only one left when the source
        knows of the arrival.
        """
        left = self._random.choice([name for name in entry.in_sync if name != primary])
        before = self._sent(entry, primary)
        self._part(left, primary)
        arrived = yield from self._until(lambda: self._sent(entry, primary) > before, 700)
        if not arrived or self._is_over():
            self._fabric.mend()
            return
        self._say(
            f"{left} has not heard of what arrived in partition {entry.partition}, and is the only one left"
        )
        yield Pause(self._random.choice((10, 30, 80, 200)))
        self._cut_power([name for name in entry.replicas if name != left], self._random.randint(6_000, 8_000))
        self._fabric.mend()
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)

    def _be_late(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """A request to take messages in stays in a connection until the next primary of their queue has sent them again."""
        yield from self._until(lambda: self._under_way() is not None, 5_000)
        found = self._under_way()
        if found is None or self._is_over():
            return
        source, primary, target = found
        self._say(f"what {primary} sends to {target} waits, and partition {source.partition} is handed over")
        self._fabric.hold_way(primary, target)
        self._operators.drain(primary)
        yield from self._until(lambda: self._is_replaced(source), 3_000)
        yield Pause(self._random.choice((1_000, 2_000, 3_000)))  # the messages arrive, and are received
        if not self._is_over():
            self._fabric.mend()
            self._operators.undrain(primary)

    def _under_way(self) -> tuple[PartitionEntry, str, str] | None:
        """A partition that sends messages to another node, who leads it, and that node."""
        entries = self._entries()
        for name, machine in self._machines.items():
            node = machine.replicated
            for journey in node.replication.moves._journeys.values() if node is not None else ():
                source, target = entries.get(journey.source), entries.get(journey.target)
                if journey.phase != "under way" or source is None or source.primary != name:
                    continue
                if target is not None and target.primary is not None and target.primary != name:
                    return source, name, target.primary
        return None

    def _hand_over(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """A planned move, disturbed in the middle or not."""
        self._operators.drain(primary)
        yield from self._until(lambda: self._now(entry).hand_over_to is not None, 3_000)
        successor = self._now(entry).hand_over_to
        yield Pause(self._random.choice((0, 0, 1, 3, 10)))
        if successor is not None and not self._is_over():
            self._say(f"{primary} hands partition {entry.partition} over to {successor}")
            match self._random.randrange(7):
                case 0:
                    self._cut_power([primary], 6_000)
                case 1:
                    self._cut_power([successor], 3_000)
                case 2:
                    self._part(primary, successor)
                case 3:
                    self._metadata.unreachable_from.add(primary)
                case _:
                    pass
        yield from self._until(lambda: self._is_replaced(entry), 2_500)
        if not self._is_over():
            self._fabric.mend()
            self._operators.undrain(primary)

    def _rejoin(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """One is away and comes back; as soon as it counts as in sync again, it is the only one left."""
        away = self._random.choice([name for name in entry.in_sync if name != primary])
        self._say(f"{away} is away, comes back to partition {entry.partition}, and is the only one left")
        self._cut_power([away], self._random.randint(2_000, 3_500))
        self._machines[away].pace = DiskPace((100, 500), (0, 8))
        yield from self._until(lambda: away not in self._now(entry).in_sync, 4_000)
        yield from self._until(lambda: away in self._now(entry).in_sync, 6_000)
        yield Pause(self._random.choice((0, 0, 2, 20)))
        self._machines[away].pace = DiskPace()
        if self._is_over() or away not in self._now(entry).in_sync:
            return
        others = [name for name in self._now(entry).replicas if name != away]
        self._cut_power(others, self._random.randint(6_000, 8_000))
        if self._random.random() < 0.7:
            self._cut_power([away], 10)  # it has what its disk has
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)

    def _take_whole(self, entry: PartitionEntry, primary: str) -> Steps[None]:
        """One is away until what it lacks is in no journal, takes a state over whole while it makes checkpoints, and
        restarts as soon as it counts as in sync; then it is the only one left."""
        away = self._random.choice([name for name in entry.in_sync if name != primary])
        self._say(
            f"{away} is away until it needs all of partition {entry.partition}, and is the only one left"
        )
        self._cut_power([away], 8_000)
        last = self._last(entry, primary)
        yield from self._until(lambda: self._is_vacated(entry, primary, last), 8_000)
        machine = self._machines[away]
        machine.pace = DiskPace((0, 8), (20, self._random.choice((100, 500))))
        self._operators.bring_up(away)
        yield from self._until(lambda: away in self._now(entry).in_sync and machine.is_up, 8_000)
        yield Pause(self._random.choice((0, 0, 5, 100)))
        if self._is_over() or away not in self._now(entry).in_sync or not machine.is_up:
            return
        machine.pace = DiskPace()
        self._operators.keep_down(away, 10)
        self._operators.counts["kill"] += 1
        machine.crash(power=False)
        if self._random.random() < 0.5:
            return
        others = [name for name in self._now(entry).replicas if name != away]
        self._cut_power(others, self._random.randint(6_000, 8_000))
        yield from self._until(lambda: self._is_replaced(entry), _ELECTED_MS)

    def _last(self, entry: PartitionEntry, name: str) -> int:
        node = self._machines[name].replicated
        partition = node._parts.catalogue.partitions.get(entry.partition) if node is not None else None
        return partition.index if partition is not None else 0

    def _is_vacated(self, entry: PartitionEntry, primary: str, last: int) -> bool:
        """Whether the journal of the primary has records after this one only."""
        node = self._machines[primary].replicated
        log = node._parts.store.replica_log if node is not None else None
        oldest = log.oldest(entry.partition) if log is not None else None
        return oldest is None or oldest > last + 1
