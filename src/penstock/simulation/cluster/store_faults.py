"""Faults between the metadata store and its clients: slow, lost and late answers, watches that break or fall silent.

The store itself stays correct. Every client, node or front end, must handle unknown outcomes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from penstock.cluster.layout.entries import PARTITIONS, DrainEntry, decode_partition, drain_key, encode
from penstock.cluster.manager.candidate import MANAGER_ELECTION
from penstock.cluster.membership.campaign import ELECTIONS
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.metadata import SimulatedMetadata, StoreFault
from penstock.simulation.schedule import Schedule, recur
from penstock.simulation.trace import Trace


@dataclass(slots=True)
class StoreFaultPlan:
    """The frequency of each fault, as milliseconds between two; 0: never."""

    slow_ms: int = 0
    """Requests and answers take up to seconds; some take effect after their requester has given up."""
    lost_answers_ms: int = 0
    """Writes, grants and renewals land, and their answers do not come."""
    breaks_ms: int = 0
    """Watches break; half of the time what was missed is no longer kept."""
    deaf_ms: int = 0
    """Watches fall silent, and break after a while."""
    stand_still_ms: int = 0
    """A machine pauses between a decision and the request that follows from it."""
    siege_ms: int = 0
    """A node that acknowledges alone, if there is one, loses its lease without notice to itself and some front ends."""
    coup_ms: int = 0
    """The same happens to the manager, which has something to decide."""


def draw_store_faults(random: Random) -> StoreFaultPlan:
    """The store's part of a scenario; in half of the runs nothing."""

    def sometimes(share: float, low_ms: int, high_ms: int) -> int:
        return random.randint(low_ms, high_ms) if random.random() < share else 0

    chance = random.random()
    if chance < 0.45:
        return StoreFaultPlan()
    if chance < 0.52:
        return StoreFaultPlan(siege_ms=random.randint(1_500, 4_000))
    if chance < 0.56:
        return StoreFaultPlan(coup_ms=random.randint(1_500, 4_000))
    return StoreFaultPlan(
        slow_ms=sometimes(0.5, 800, 4_000),
        lost_answers_ms=sometimes(0.5, 800, 4_000),
        breaks_ms=sometimes(0.5, 400, 3_000),
        deaf_ms=sometimes(0.4, 1_500, 6_000),
        stand_still_ms=sometimes(0.4, 1_000, 5_000),
        siege_ms=sometimes(0.3, 2_000, 5_000),
        coup_ms=sometimes(0.2, 2_000, 5_000),
    )


class StoreFaults:
    """Injects faults until stopped."""

    def __init__(
        self,
        plan: StoreFaultPlan,
        machines: list[ClusterMachine],
        metadata: SimulatedMetadata,
        schedule: Schedule,
        random: Random,
        trace: Trace,
        counts: Counter[str],
    ) -> None:
        self._plan_of_run = plan
        self._machines = machines
        self._metadata = metadata
        self._schedule = schedule
        self._random = random
        self._trace = trace
        self._counts = counts
        self._over = False
        self._besieged: set[str] = set()

    def start(self) -> None:
        """Plans the first of each kind."""
        plan = self._plan_of_run
        for every_ms, fault in (
            (plan.slow_ms, self._slow),
            (plan.lost_answers_ms, self._lose_answers),
            (plan.breaks_ms, self._break),
            (plan.deaf_ms, self._deafen),
            (plan.stand_still_ms, self._stand_still),
            (plan.siege_ms, self._besiege_primary),
            (plan.coup_ms, self._besiege_manager),
        ):
            if every_ms:
                recur(self._schedule.after, self._random, every_ms, fault, lambda: self._over)
        if plan.lost_answers_ms:
            for machine in self._machines:
                machine.node_started.append(self._started)

    def heal(self) -> None:
        """No more faults."""
        self._over = True
        self._metadata.faults.clear()
        for machine in self._machines:
            machine.pauses_before_asking_ms.clear()
            machine.pauses_before_writing_ms.clear()

    def _whom(self) -> list[str]:
        """The target: one client, all front ends, or all; nodes more often than front ends."""
        nodes = [machine.name for machine in self._machines]
        everybody = list(dict.fromkeys(mirror.who for mirror in self._metadata.mirrors if not mirror.ended))
        chance = self._random.random()
        if chance < 0.2:
            return everybody
        if chance < 0.4:
            return [who for who in everybody if who not in nodes]
        return [self._random.choice(nodes if chance < 0.8 else everybody or nodes)]

    def _fault(self, what: str, fault: StoreFault, longest_ms: int) -> None:
        whom = [who for who in self._whom() if who not in self._besieged]
        if not whom:
            return
        self._counts[f"store: {what}"] += 1
        self._trace.add("store", f"{what}, for {', '.join(whom)}")
        self._hold(fault, whom, longest_ms)

    def _hold(self, fault: StoreFault, whom: list[str], longest_ms: int) -> None:
        for who in whom:
            self._metadata.faults[who] = fault

        def end() -> None:
            for who in whom:
                if self._metadata.faults.get(who) is fault:
                    del self._metadata.faults[who]
            if fault.deaf:
                self._break_streams(whom)

        self._schedule.after(self._random.randint(300, longest_ms), end)

    def _slow(self) -> None:
        self._fault("slow", StoreFault(slow_ms=self._random.choice((150, 800, 2_500))), 5_000)

    def _lose_answers(self) -> None:
        self._fault("answers are lost", StoreFault(loses_answers=self._random.choice((0.3, 0.6, 1.0))), 3_000)

    def _started(self, name: str, node: object) -> None:
        """A node registers, and sometimes does not get the outcome."""
        if not self._over and name not in self._besieged and self._random.random() < 0.7:
            self._counts["store: answers to a new process are lost"] += 1
            self._hold(StoreFault(loses_answers=0.5), [name], 3_000)

    def _deafen(self) -> None:
        self._fault("watches fall silent", StoreFault(deaf=True), 5_000)

    def _break(self) -> None:
        whom = self._whom()
        is_compacted = self._random.random() < 0.5
        if is_compacted:
            self._metadata.compact()
        self._counts[
            "store: watch broken, changes no longer kept" if is_compacted else "store: watch broken"
        ] += 1
        self._break_streams(whom)

    def _break_streams(self, whom: list[str]) -> None:
        for stream in list(self._metadata.streams):
            if stream.who in whom and not self._over:
                stream.end("unavailable")

    def _stand_still(self) -> None:
        """Just before the next question of a process leaves its machine."""
        machine = self._random.choice(self._machines)
        if self._random.random() < 0.6:
            found = self._metadata.entries.get(ELECTIONS + MANAGER_ELECTION)
            manager = found.value.decode() if found is not None else ""
            machine = next((one for one in self._machines if one.name == manager), machine)
        pauses_ms = self._random.choice((machine.pauses_before_asking_ms, machine.pauses_before_writing_ms))
        if machine.is_up and not pauses_ms:
            self._counts["pause before a request to the store"] += 1
            pauses_ms.append(self._random.choice((300, 1_500, 2_500, 4_000)))

    # -- sieges ----------------------------------------------------------------------------------------------

    def _besiege_primary(self) -> None:
        """A node that acknowledges alone, where there is one."""
        entries = [
            decode_partition(stored.value)
            for key, stored in sorted(self._metadata.entries.items())
            if key.startswith(PARTITIONS)
        ]
        alone = [entry.primary for entry in entries if entry.settings.replication == "async"]
        found = [name for name in alone if name is not None]
        victim = self._random.choice(found or [machine.name for machine in self._machines])
        self._besiege(victim, "siege")

    def _besiege_manager(self) -> None:
        """The manager, which is given something to decide."""
        found = self._metadata.entries.get(ELECTIONS + MANAGER_ELECTION)
        manager = found.value.decode() if found is not None else ""
        drained = self._random.choice([one.name for one in self._machines if one.name != manager])
        self._metadata.put(drain_key(drained), encode(DrainEntry(node=drained)))
        self._schedule.after(
            self._random.choice((0, 0, 10, 300, 600)), lambda: self._besiege(manager, "coup")
        )
        self._schedule.after(self._random.randint(2_000, 7_000), lambda: self._undrain(drained))

    def _undrain(self, name: str) -> None:
        self._metadata.delete(drain_key(name))

    def _besiege(self, victim: str, kind: str) -> None:
        """Renewals land and are answered late; then nothing gets through; then questions do, and news does not.

        Some of what a manager wrote before lands late, when others have gone on.
        """
        if self._over or self._besieged:
            return
        if not any(one.name == victim and one.is_up for one in self._machines):
            return
        nodes = [machine.name for machine in self._machines]
        everybody = dict.fromkeys(mirror.who for mirror in self._metadata.mirrors if not mirror.ended)
        strays = [who for who in everybody if who not in nodes and self._random.random() < 0.6]
        whom = [victim, *strays]
        self._besieged = set(whom)
        self._counts[f"store: {kind}"] += 1
        self._trace.add(
            "store", f"{kind} against {victim}; {', '.join(strays) or 'nobody'} hears nothing with it"
        )
        late_ms, lost_ms = self._random.randint(200, 700), self._random.randint(2_000, 4_500)
        first = StoreFault(back_ms=self._random.choice((0, 1_000, 1_900, 1_900)))
        if kind == "coup" and self._random.random() < 0.6:
            first, late_ms = StoreFault(slow_ms=5_000), late_ms + 800
        over_ms = late_ms + lost_ms + self._random.randint(300, 2_000)
        self._set(whom, first)
        self._schedule.after(late_ms, lambda: self._set(whom, StoreFault(loses_requests=1.0, deaf=True)))
        self._schedule.after(late_ms + lost_ms, lambda: self._set(whom, StoreFault(deaf=True)))
        self._schedule.after(over_ms, lambda: self._set(whom, None))

    def _set(self, whom: list[str], fault: StoreFault | None) -> None:
        if self._over:
            return
        for who in whom:
            if fault is not None:
                self._metadata.faults[who] = fault
            else:
                self._metadata.faults.pop(who, None)
        if fault is None:
            self._besieged = set()
            self._break_streams(whom)
