"""What goes wrong between the metadata store and those who ask it: slow, lost and late answers, watches that break or fall silent.

The store itself stays right. Everybody who asks it, node or front end, must live with not knowing what became of a request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.metadata import SimulatedMetadata, Trouble
from penstock.simulation.schedule import Schedule
from penstock.simulation.trace import Trace


@dataclass(slots=True)
class StoreFaultPlan:
    """How often what goes wrong, as milliseconds between two; 0: never."""

    slow_ms: int = 0
    """Requests and answers take up to seconds; some take effect after their asker has given up."""
    lost_answers_ms: int = 0
    """Writes, grants and renewals land, and their answers do not come."""
    breaks_ms: int = 0
    """Watches break; half of the time what was missed is no longer kept."""
    deaf_ms: int = 0
    """Watches fall silent, and break after a while."""
    stand_still_ms: int = 0
    """A machine stands still between a decision and the request that follows from it."""


def draw_store_faults(random: Random) -> StoreFaultPlan:
    """The store's part of a scenario; in half of the runs nothing."""

    def sometimes(share: float, low_ms: int, high_ms: int) -> int:
        return random.randint(low_ms, high_ms) if random.random() < share else 0

    if random.random() < 0.5:
        return StoreFaultPlan()
    return StoreFaultPlan(
        slow_ms=sometimes(0.5, 800, 4_000),
        lost_answers_ms=sometimes(0.5, 800, 4_000),
        breaks_ms=sometimes(0.5, 400, 3_000),
        deaf_ms=sometimes(0.4, 1_500, 6_000),
        stand_still_ms=sometimes(0.4, 1_000, 5_000),
    )


class StoreFaults:
    """Does harm until told to stop."""

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

    def start(self) -> None:
        """Plans the first of each kind."""
        plan = self._plan_of_run
        for every_ms, fault in (
            (plan.slow_ms, self._slow),
            (plan.lost_answers_ms, self._lose_answers),
            (plan.breaks_ms, self._break),
            (plan.deaf_ms, self._deafen),
            (plan.stand_still_ms, self._stand_still),
        ):
            if every_ms:
                self._plan(every_ms, fault)

    def heal(self) -> None:
        """No more faults."""
        self._over = True
        self._metadata.troubles.clear()
        for machine in self._machines:
            machine.pauses_before_asking_ms.clear()

    def _plan(self, every_ms: int, fault: Callable[[], None]) -> None:
        def strike() -> None:
            if not self._over:
                fault()
                self._plan(every_ms, fault)

        self._schedule.after(self._random.randint(every_ms // 3, every_ms * 2), strike)

    def _whom(self) -> list[str]:
        """One who asks the store, or all of them; nodes more often than front ends."""
        nodes = [machine.name for machine in self._machines]
        everybody = list(dict.fromkeys(mirror.who for mirror in self._metadata.mirrors if not mirror.ended))
        chance = self._random.random()
        if chance < 0.25:
            return everybody
        return [self._random.choice(nodes if chance < 0.75 else everybody or nodes)]

    def _trouble(self, what: str, trouble: Trouble, longest_ms: int) -> None:
        whom = self._whom()
        self._counts[f"store: {what}"] += 1
        self._trace.add("store", f"{what}, for {', '.join(whom)}")
        for who in whom:
            self._metadata.troubles[who] = trouble

        def end() -> None:
            for who in whom:
                if self._metadata.troubles.get(who) is trouble:
                    del self._metadata.troubles[who]
            if trouble.deaf:
                self._break_streams(whom)

        self._schedule.after(self._random.randint(300, longest_ms), end)

    def _slow(self) -> None:
        self._trouble("slow", Trouble(slow_ms=self._random.choice((150, 800, 2_500))), 5_000)

    def _lose_answers(self) -> None:
        self._trouble("answers are lost", Trouble(loses_answers=self._random.choice((0.3, 0.6, 1.0))), 3_000)

    def _deafen(self) -> None:
        self._trouble("watches fall silent", Trouble(deaf=True), 5_000)

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
        if machine.is_up and not machine.pauses_before_asking_ms:
            self._counts["pause before a request to the store"] += 1
            machine.pauses_before_asking_ms.append(self._random.choice((300, 1_500, 2_500, 4_000)))
