"""One run from beginning to end: build the world from a seed, run it, end the faults, drain, check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from penstock.backend.lifecycle.reports import rows_waiting
from penstock.backend.node.node import Node
from penstock.columnar.lifecycle import LIFECYCLE_QUEUE
from penstock.model.records import CATALOGUE, QueueCreated, decode_record
from penstock.simulation import opened_ledger
from penstock.simulation.aimed_damage import draw_aimed
from penstock.simulation.checkers import CHECKERS
from penstock.simulation.clocks import NodeClock
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.faults import Faults
from penstock.simulation.history import History
from penstock.simulation.machine import Machine
from penstock.simulation.network import Network
from penstock.simulation.observed_store import AppendedRecord, ObservedStore
from penstock.simulation.opened_ledger import OpenedLedger
from penstock.simulation.own_dice import own_dice
from penstock.simulation.partition_state import inconsistencies
from penstock.simulation.record_log import RecordLog
from penstock.simulation.recorder import Recorder
from penstock.simulation.replica import Replica
from penstock.simulation.scenario import draw_scenario
from penstock.simulation.schedule import Schedule
from penstock.simulation.sizes.small_sizes import SmallSizes, draw_sizes, put_on, told, with_small_options
from penstock.simulation.targeted_dead_letters import DeadLetterHunter
from penstock.simulation.tasks import Tasks
from penstock.simulation.trace import Trace
from penstock.simulation.unusual_runs import make_unusual
from penstock.simulation.violation import Violation
from penstock.simulation.whereabouts import PartitionLog, Whereabouts
from penstock.simulation.workload.ahead_reader import AHEAD_SHARE, AheadReader
from penstock.simulation.workload.auditor import Auditor
from penstock.simulation.workload.consumer import Consumer
from penstock.simulation.workload.flooder import Flooder
from penstock.simulation.workload.idle_visitor import IdleVisitor
from penstock.simulation.workload.keeping_consumer import KeepingConsumer
from penstock.simulation.workload.log_operator import LogOperator
from penstock.simulation.workload.log_reader import GroupMember, LogReader
from penstock.simulation.workload.operator import Operator
from penstock.simulation.workload.ordered_producer import OrderedProducer
from penstock.simulation.workload.producer import Producer
from penstock.simulation.workload.stage import Stage
from penstock.simulation.workload.subscriber import Subscriber
from penstock.simulation.workload.weighted_consumer import draw_weighted

START_MS = 1_700_000_000_000
_SETTLED_MS = 60_000
_AUDITED_MS = 1_000_000
_REPORTED_MS = 3_600_000


class Outcome(NamedTuple):
    """The result of a seed."""

    seed: int
    violations: list[Violation]
    trace: list[str]
    messages: int
    deliveries: int
    starts: int
    simulated_ms: int
    faults: Mapping[str, int] = MappingProxyType({})
    """The number of faults, by kind, if they are counted."""
    kind: str = ""
    """The unusual property of the run; empty in most."""


class World:
    """Everything of one run."""

    def __init__(self, seed: int, sizes: SmallSizes = MappingProxyType({})) -> None:
        self.seed = seed
        self.sizes = sizes
        """The small sizes of this run; the creator of the world has applied them."""
        random = Random(seed)
        self.scenario = scenario = make_unusual(draw_scenario(random))
        scenario.options = with_small_options(scenario.options, sizes, cluster=False)
        self.schedule = schedule = Schedule(START_MS)
        schedule.nights = scenario.nights
        self.trace = trace = Trace(schedule)
        self.history = History(cold_reads=scenario.cold_reads > 0, clocks_are_true=scenario.clocks.true)
        disk = SimulatedDisk(random, cold_reads=scenario.cold_reads)
        disk.remembers = scenario.faults.misplaced_ms > 0
        self.machine = machine = Machine(
            schedule,
            random,
            trace,
            disk,
            scenario.options,
            NodeClock(scenario.clocks, schedule, Random(seed)),
        )
        machine.max_unflushed_bytes = scenario.max_unflushed_bytes
        network = Network(schedule, random, machine)
        self.tasks = Tasks(schedule)
        recorder = Recorder(self.history, schedule)
        self.stage = Stage(scenario, schedule, random, trace, network, self.tasks, recorder)
        self.faults = Faults(self.stage, machine)
        if scenario.faults.bit_flips_ms:
            self.faults.aimed = draw_aimed(seed, self.history, schedule, trace, self.faults.counts)
        self.replica = Replica()
        self.record_log = RecordLog(self.history.records)
        self.opened_ledger = OpenedLedger(machine.identity.seed)
        self.violations: list[Violation] = []
        self.visitor: IdleVisitor | None = None
        if scenario.has_visitor:
            corrects = scenario.faults.clock_steps_ms > 0
            self.visitor = IdleVisitor(self.stage, Random(f"{seed} visits"), corrects_clocks=corrects)
        machine.on_append = self._record_written
        machine.opening.append(self.opened_ledger.opening)
        machine.booted.append(self._check_recovery)
        machine.going_down += [self._note_committed, self.faults.watch]

    def run(self) -> Outcome:
        """Lives through it."""
        trace, scenario = self.trace, self.scenario
        trace.add(
            "world",
            f"seed {self.seed}: {[queue.name for queue in scenario.queues]}, {scenario.faults}{', ' + scenario.kind if scenario.kind else ''}",
        )
        trace.add("world", f"small sizes: {told(self.sizes) or 'none'}")
        self.machine.boot()
        operators = [Operator(self.stage, f"operator-{n}") for n in range(scenario.operators)]
        self.tasks.start(operators[0].set_up())
        self.schedule.run(lambda: not self.tasks.active, _SETTLED_MS)
        self._start_work(operators)
        self.faults.start()
        self.schedule.run_for(scenario.duration_ms)
        trace.add("world", "everybody stops, everything is well again")
        self.stage.stopping = True
        self.faults.heal()
        self._wait("clients stop", _SETTLED_MS)
        self._check_visits()
        if self.machine.is_up and self.stage.random.random() < 0.5:
            self.machine.stop()
        self.tasks.start(Auditor(self.stage).run())
        self._wait("the auditor ends", _AUDITED_MS)
        if not self.schedule.run(self._is_reported, _REPORTED_MS):
            self.history.stuck.append("rows about messages are not in their log, although nothing is wrong")
        self._finish()
        return Outcome(
            self.seed,
            sorted(self.violations, key=lambda violation: violation.at_ms),
            trace.lines,
            len(self.history.messages),
            len(self.history.deliveries),
            self.machine.starts,
            self.schedule.elapsed_ms,
            dict(self.faults.counts),
            scenario.kind,
        )

    def _start_work(self, operators: list[Operator]) -> None:
        stage, scenario = self.stage, self.scenario
        for number in range(scenario.producers):
            self.tasks.start(Producer(stage, f"producer-{number}").run())
        for number in range(scenario.ordered_producers):
            self.tasks.start(OrderedProducer(stage, f"ordered-{number}").run())
            self.tasks.start(KeepingConsumer(stage, f"keeping-{number}").run())
        if scenario.flood:
            self.tasks.start(Flooder(stage).run())
        for number in range(scenario.consumers):
            self.tasks.start(Consumer(stage, f"consumer-{number}").run())
        for number in range(scenario.subscribers):
            self.tasks.start(Subscriber(stage, f"subscrib-{number}").run())
        for number in range(scenario.log_readers):
            self.tasks.start(LogReader(stage, f"reader-{number}").run())
        if scenario.log_readers:
            self.tasks.start(LogOperator(stage, "log-operator").run())
            if own_dice(stage.random, "reads ahead").random() < AHEAD_SHARE:
                self.tasks.start(AheadReader(stage, "ahead").run())
        for number in range(scenario.group_members):
            self.tasks.start(GroupMember(stage, f"member-{number}").run())
        for operator in operators:
            self.tasks.start(operator.run())
        if self.visitor is not None:
            self.tasks.start(self.visitor.run())
        if scenario.deletes_targets:
            dice = Random(f"{self.seed} deleted targets")
            self.tasks.start(DeadLetterHunter(stage, self.machine, dice, self.faults.counts).run())
        if (weighted := draw_weighted(stage, self.seed)) is not None:
            self.tasks.start(weighted.run())

    def _check_visits(self) -> None:
        """The queue of the visitor goes by itself."""
        if self.visitor is not None:
            self.tasks.start(self.visitor.leave())
            self._wait("the visitor's queue is gone", _AUDITED_MS)
            self.violations += self.visitor.violations
            self.faults.counts["idle queue gone"] += self.visitor.expired

    def _wait(self, what: str, most_ms: int) -> None:
        if not self.schedule.run(lambda: not self.tasks.active, most_ms):
            self.history.stuck.append(f"{what} not within {most_ms} ms, although nothing is wrong any more")

    def _is_reported(self) -> bool:
        """Whether the lifecycle log has every row; damaged queues are not waited for."""
        node = self.machine.node
        if node is None:
            return True
        catalogue = node._parts.catalogue
        log = catalogue.named(LIFECYCLE_QUEUE)
        if log is not None and log.partition_id in catalogue.damage:
            return True
        return not any(
            rows_waiting(partition)
            for partition_id, partition in catalogue.partitions.items()
            if partition_id not in catalogue.damage
        )

    # -- checks on the way -----------------------------------------------------------------------------------

    def _record_written(self, record: AppendedRecord) -> None:
        self.replica.on_append(self.machine.starts, record)
        self.record_log.on_append(record)
        self.opened_ledger.appended(record)

    def _note_committed(self, store: ObservedStore) -> None:
        self.replica.stopping(store.committed_position)

    def _check_recovery(self, node: Node) -> None:
        for sentence in self.opened_ledger.opened(
            node, self.machine.disk, is_harmed=bool(self.history.flips)
        ):
            self._violated(opened_ledger.NAME, sentence)
        self.record_log.recovered(node)
        for sentence in self.replica.recovered(self.machine.starts, node):
            self._violated("recovery", sentence)
        self._check_engine(node)
        for partition_id, partition in node._parts.catalogue.partitions.items():
            if partition_id in node._parts.catalogue.damage:
                continue
            life = self.history.lives.get(partition_id)
            watermark_us = partition.watermark_us
            if life is not None and watermark_us < life.watermark_us:
                self._violated(
                    "late",
                    f"the watermark of queue {life.name!r} was {life.watermark_us} and is {watermark_us}",
                )

    def _check_engine(self, node: Node) -> None:
        for partition_id, partition in node._parts.catalogue.partitions.items():
            if partition_id not in node._parts.catalogue.damage:
                for sentence in inconsistencies(partition):
                    self._violated("engine", f"queue {partition.name!r}: {sentence}")

    def _finish(self) -> None:
        history = self.history
        history.ended_ms = self.schedule.now_ms
        there: set[int] = set()
        if self.machine.node is not None:
            catalogue = self.machine.node._parts.catalogue
            there = {*catalogue.partitions}
            history.fenced = catalogue.deleting & catalogue.damage.keys()
            for sentence in self.replica.live(self.machine.node):
                self._violated("recovery", sentence)
            self._check_engine(self.machine.node)
            self.machine.stop()
        for at_ms, sentence in self.machine.defects:
            self.violations.append(Violation("engine", at_ms, f"the node failed by itself: {sentence}"))
        for at_ms, sentence in self.faults.refusals:
            self.violations.append(Violation("I10", at_ms, f"the node refused to start: {sentence}"))
        history.whereabouts = Whereabouts(self._partition_logs(there), history.lives.values())
        history.most_unflushed_bytes = self.machine.most_unflushed_bytes
        history.max_unflushed_bytes = self.machine.max_unflushed_bytes
        for check in CHECKERS.values():
            self.violations += check(history)

    def _partition_logs(self, there: set[int]) -> Iterator[PartitionLog]:
        """The records of every queue, deleted ones too; without those that were damaged: nothing could leave them any more."""
        lives = self.history.lives.values()
        damaged = {life.queue_id for life in lives if life.damaged_ms is not None}
        for written in self.history.records.get(CATALOGUE, ()):
            record = decode_record(written.head)
            if isinstance(record, QueueCreated) and record.partition_id not in damaged:
                partition_id, log = record.partition_id, self.history.records.get(record.partition_id, [])
                yield PartitionLog(
                    partition_id, partition_id, 0, record.name, record.settings, log, partition_id in there
                )

    def _violated(self, checker: str, sentence: str) -> None:
        self.trace.add("checker", f"{checker}: {sentence}")
        self.violations.append(Violation(checker, self.schedule.now_ms, sentence))


def simulate(seed: int) -> Outcome:
    """Runs one seed."""
    sizes = draw_sizes(Random(f"sizes: {seed}"))
    with put_on(sizes):
        return World(seed, sizes).run()
