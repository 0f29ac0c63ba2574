"""Clients that only some runs have, each with a queue that others do not use, and with separate checks."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec

from penstock.model.settings import QueueSettings
from penstock.simulation.cluster.library_consumers import LibraryConsumers
from penstock.simulation.cluster.metered_calls import MeteredCalls
from penstock.simulation.cluster.number_keeping import NumberKeeping
from penstock.simulation.cluster.operator import ClusterOperator
from penstock.simulation.cluster.router import ClusterStage
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.cluster.targeted_copies import KEPT, CopyHunter
from penstock.simulation.cluster.targeted_members import adds_again
from penstock.simulation.cluster.targeted_moves import MoveHunter
from penstock.simulation.cluster.targeted_numbers import NumberHunter
from penstock.simulation.tasks import Steps
from penstock.simulation.workload.idle_visitor import IdleVisitor
from penstock.simulation.workload.weighted_consumer import draw_weighted

_REMADE_EVERY_MS = 900


class SpecialClients:
    """The special clients of a seed's run."""

    def __init__(
        self,
        scenario: ClusterScenario,
        stage: ClusterStage,
        hunter: NumberHunter,
        moves: MoveHunter,
        members: CopyHunter,
        seed: int,
        counts: Counter[str],
        *,
        fails_copies: bool,
    ) -> None:
        self._stage = stage
        self._seed = seed
        self._counts = counts
        self._moves = moves
        self._members = members
        self._fails_copies = fails_copies
        self._adds_again = adds_again(scenario) and not fails_copies
        self._target_hunt = scenario.target_hunt
        self._replicas = replicas = scenario.replicas
        self.keeping: NumberKeeping | None = None
        if scenario.keeps_numbers:
            self.keeping = NumberKeeping(stage, hunter, Random(f"{seed} numbers"), replicas, counts)
        self.visitor: IdleVisitor | None = None
        if scenario.has_visitor:
            corrects = scenario.faults.clock_ms > 0
            self.visitor = IdleVisitor(stage, Random(f"{seed} visits"), replicas, corrects_clocks=corrects)
        self.metered: MeteredCalls | None = None
        if scenario.is_metered:
            self.metered = MeteredCalls(stage, Random(f"{seed} metered"), replicas, counts)
        self.library: LibraryConsumers | None = None
        if scenario.library_consumers:
            dice = Random(f"{seed} library")
            self.library = LibraryConsumers(stage, scenario.library_consumers, dice, counts)

    def create(self) -> Steps[None]:
        """Makes the queues of the keepers and of the metered calls; the visitor makes its queue itself."""
        if self.keeping is not None:
            yield from self.keeping.keepers.create()
        if self.metered is not None:
            yield from self.metered.create()
        if self._adds_again:
            yield from self._members.create(self._stage, QueueSettings(replicas=self._replicas, partitions=3))
        if self._fails_copies:
            kept = msgspec.structs.replace(KEPT, replicas=self._replicas)
            yield from self._members.create(self._stage, kept)

    def start(self) -> None:
        """They begin."""
        if self.keeping is not None:
            self.keeping.start()
        if self.visitor is not None:
            self._stage.tasks.start(self.visitor.run())
        if self.metered is not None:
            self.metered.start()
        if self.library is not None:
            self.library.start()
        if (weighted := draw_weighted(self._stage, self._seed)) is not None:
            self._stage.tasks.start(weighted.run())
        operator = ClusterOperator(self._stage, "remaker", (), self._counts, destructive=True)
        match self._target_hunt:
            case "made again":
                self._moves.hunt_targets(_REMADE_EVERY_MS, self._stage, operator)
            case "unsettled":
                self._moves.hunt_unsettled(_REMADE_EVERY_MS, self._stage, operator)
            case "hidden":
                self._moves.hunt_hidden(_REMADE_EVERY_MS, self._stage, operator)
            case None:
                pass
        if self._adds_again:
            self._members.hunt_members()
        if self._fails_copies:
            self._members.hunt_copies(self._stage)

    def end(self) -> None:
        """Nothing is done on purpose any more."""
        self._moves.over = self._members.over = True
        if self.keeping is not None:
            self.keeping.hunter.over = True
