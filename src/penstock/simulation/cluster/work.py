"""The clients and the operator of a run: the load of a cluster while faults are injected."""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.simulation.cluster.operator import ClusterOperator
from penstock.simulation.cluster.rivals import Rivals
from penstock.simulation.cluster.router import ClusterStage
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.own_dice import own_dice
from penstock.simulation.workload.ahead_reader import AHEAD_SHARE, AheadReader
from penstock.simulation.workload.consumer import Consumer
from penstock.simulation.workload.failing_consumer import FailingConsumer
from penstock.simulation.workload.flooder import Flooder
from penstock.simulation.workload.log_reader import GroupMember, LogReader
from penstock.simulation.workload.ordered_producer import OrderedProducer
from penstock.simulation.workload.producer import Producer

_FLOOD = 500
"""So many batches, most of them when a disk is slow, are enough to see what gives."""


def start(stage: ClusterStage, scenario: ClusterScenario, seed: int, counts: Counter[str]) -> None:
    """All of them begin."""
    base, tasks = scenario.base, stage.tasks
    for number in range(base.producers):
        tasks.start(Producer(stage, f"producer-{number}").run())
    for number in range(base.ordered_producers):
        tasks.start(OrderedProducer(stage, f"ordered-{number}").run())
    if base.flood:
        tasks.start(Flooder(stage, _FLOOD).run())
    for number in range(base.consumers):
        tasks.start(Consumer(stage, f"consumer-{number}").run())
    fails = seed % 4 or scenario.faults.hunt == "late-move" or scenario.target_hunt == "made again"
    if any(plan.settings.max_receives is not None for plan in base.queues) and fails:
        tasks.start(FailingConsumer(stage, "failing").run())
    for number in range(base.log_readers):
        tasks.start(LogReader(stage, f"reader-{number}").run())
    if base.log_readers and own_dice(stage.random, "reads ahead").random() < AHEAD_SHARE:
        tasks.start(AheadReader(stage, "ahead").run())
    for number in range(base.group_members):
        tasks.start(GroupMember(stage, f"member-{number}").run())
    if scenario.has_rivals:
        dice = Random(f"{seed} rivals")
        rivals = Rivals(stage, dice, scenario.replicas, counts, destructive=scenario.destructive)
        tasks.start(rivals.run())
    if base.operators:
        operator = ClusterOperator(
            stage, "operator-0", scenario.altered_replicas, counts, destructive=scenario.destructive
        )
        tasks.start(operator.run())
