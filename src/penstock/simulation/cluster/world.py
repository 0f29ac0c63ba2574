"""One run of a cluster from beginning to end: build it from a seed, run it, end the faults, drain, check."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from types import MappingProxyType

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.entries import NodeEntry
from penstock.simulation.aimed_damage import draw_aimed
from penstock.simulation.checkers import CHECKERS
from penstock.simulation.clocks import NodeClock
from penstock.simulation.cluster import layout_history, loose_queues, lost_answers, machine_checks, work
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.cluster.faults import ClusterFaults
from penstock.simulation.cluster.in_sync_checked import InSyncCheck
from penstock.simulation.cluster.local_time import FREEZE_MS, LocalTime
from penstock.simulation.cluster.lost_records import lost_records
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.membership_observer import MembershipObserver
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.number_keepers import QUEUE
from penstock.simulation.cluster.observer import Observer
from penstock.simulation.cluster.partition_entries import PartitionEntries
from penstock.simulation.cluster.partition_logs import partition_logs
from penstock.simulation.cluster.queue_answers import ObservedStage, QueueAnswers
from penstock.simulation.cluster.replica_equality import left_over, unlike
from penstock.simulation.cluster.scenario import draw_cluster_scenario
from penstock.simulation.cluster.special_clients import SpecialClients
from penstock.simulation.cluster.store_faults import StoreFaults
from penstock.simulation.cluster.targeted_copies import LONGER_MS, CopyHunter, fails_copies, make_quiet
from penstock.simulation.cluster.targeted_faults import Hunter
from penstock.simulation.cluster.targeted_moves import MoveHunter
from penstock.simulation.cluster.targeted_numbers import NumberHunter
from penstock.simulation.cluster.targeted_stops import AimedHunter
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.history import History
from penstock.simulation.message_history import Span
from penstock.simulation.recorder import Recorder
from penstock.simulation.schedule import Schedule
from penstock.simulation.sizes import small_sizes
from penstock.simulation.sizes.node_sizes import IN_CLUSTERS
from penstock.simulation.sizes.small_sizes import SmallSizes, draw_sizes, put_on, told, with_small_options
from penstock.simulation.sizes.usage_sizes import with_usage_sizes
from penstock.simulation.tasks import Ask, Pause, Steps, Tasks
from penstock.simulation.trace import Trace
from penstock.simulation.violation import Violation
from penstock.simulation.whereabouts import Whereabouts
from penstock.simulation.workload.auditor import Auditor
from penstock.simulation.world import START_MS, Outcome
from penstock.wire.messages import CreateQueue, QueueDescription

CHECKED = (
    *("I1", "I2", "I3", "I4", "I5", "I6", "I7", "I10", "I13"),
    *("fifo", "order", "log", "log-cut", "groups", "time", "late"),
)
"""The promises to clients of a single node also apply to those of a cluster."""
_CROWDING = ("model.limits.WAITING_PER_CONNECTION", "model.limits.WAITING_RECEIVERS_PER_QUEUE")
_BEGUN_MS = 30_000
_HEALED_MS = 60_000
_SETTLED_MS = 60_000
_FOLLOWED_MS = 20_000
_AUDITED_MS = 1_000_000
_HUNTED_MS = 1_500
_ALIKE_MS = (0, 100, 400, 2_000, 10_000)


class ClusterWorld:
    """Everything of one run."""

    def __init__(self, seed: int, nodes: int, sizes: SmallSizes = MappingProxyType({})) -> None:
        self.seed = seed
        self.sizes = sizes
        """The small sizes of this run; the creator of the world has applied them."""
        random = Random(f"cluster of {nodes}: {seed}")
        self.scenario = scenario = draw_cluster_scenario(random, nodes)
        base = scenario.base
        base.options = with_small_options(base.options, sizes, cluster=True)
        self.fails_copies = fails_copies(scenario)
        if self.fails_copies:
            make_quiet(scenario)
        self.schedule = schedule = Schedule(START_MS)
        self.trace = trace = Trace(schedule)
        self.history = History(cold_reads=base.cold_reads > 0, clocks_are_true=base.clocks.true)
        if scenario.faults.skew_ms:
            self.history.skew_ms = scenario.faults.skew_ms + FREEZE_MS[1] // 10 + 50
        self.history.is_crowded = any(name in self.sizes for name in _CROWDING)
        self.metadata = SimulatedMetadata(schedule, random)
        self.observer = Observer(schedule)
        self.members = MembershipObserver(self.metadata, schedule)
        self.machines: dict[str, ClusterMachine] = {}
        for number in range(1, nodes + 1):
            name = f"node-{number}"
            disk = SimulatedDisk(Random(f"{seed} {name}"), cold_reads=base.cold_reads)
            disk.remembers = scenario.faults.flips_ms > 0
            clock = NodeClock(base.clocks, schedule, Random(f"{seed} clock of {name}"))
            time = LocalTime(schedule, scenario.faults.skew_ms, Random(f"{seed} time of {name}"))
            machine = ClusterMachine(
                name,
                self.metadata,
                time,
                random,
                trace,
                disk,
                base.options,
                clock,
                self.observer,
                self.members,
            )
            machine.max_unflushed_bytes = base.max_unflushed_bytes
            machine_checks.watch(
                machine, self.observer, self.history, partial(self._is_harmed, machine), self._violated
            )
            self.machines[name] = machine
        self.in_sync = InSyncCheck(self.metadata, self.observer, self.machines, schedule)
        machines = list(self.machines.values())
        self.fabric = Fabric(machines, self.metadata, schedule, random)
        self.tasks = Tasks(schedule)
        recorder = Recorder(self.history, schedule)
        network = self.fabric.clients[machines[0].name]
        self.stage = ObservedStage(base, schedule, random, trace, network, self.tasks, recorder)
        self.stage.fabric, self.stage.metadata = self.fabric, self.metadata
        self.stage.answers = QueueAnswers(self.metadata, self.members.history, schedule)
        self.faults = ClusterFaults(
            scenario.faults, machines, self.fabric, self.metadata, self.history, schedule, random, trace
        )
        if scenario.faults.flips_ms:
            self.observer.confirmations.damaged = self.faults.damaged.name
            self.faults.aimed = draw_aimed(seed, self.history, schedule, trace, self.faults.counts)
        self.store_faults = StoreFaults(
            scenario.store,
            machines,
            self.metadata,
            schedule,
            Random(f"{seed} store faults"),
            trace,
            self.faults.counts,
        )
        self.layout = PartitionEntries(self.metadata)
        self.entries = self.layout.now
        world = (machines, self.fabric, self.metadata, self.faults, self.entries, schedule)
        self.hunter = Hunter(*world, random, trace)
        self.suffixes = NumberHunter(*world, Random(f"{seed} suffixes"), trace)
        self.aimed = AimedHunter(*world, Random(f"{seed} turns"), trace)
        hunter = NumberHunter(*world, random, trace)
        moves = MoveHunter(*world, Random(f"{seed} targets"), trace)
        members = CopyHunter(*world, Random(f"{seed} members"), trace)
        self.special = SpecialClients(
            scenario,
            self.stage,
            hunter,
            moves,
            members,
            seed,
            self.faults.counts,
            fails_copies=self.fails_copies,
        )
        self.violations: list[Violation] = []

    def run(self) -> Outcome:
        """Lives through it."""
        trace, scenario = self.trace, self.scenario
        names = [queue.name for queue in scenario.base.queues]
        trace.add(
            "world",
            f"seed {self.seed}: {scenario.nodes} nodes, {scenario.replicas} replicas, {names}, {scenario.faults}, "
            f"{scenario.store}",
        )
        trace.add("world", f"small sizes: {told(self.sizes) or 'none'}")
        first = list(self.machines.values())[: scenario.nodes - scenario.late_nodes]
        for machine in first:
            machine.boot()
        self._wait_for("every node lives", lambda: len(self._living()) == len(first), _BEGUN_MS)
        self.tasks.start(self._create_queues())
        self._wait_for("every queue is made and served", lambda: not self.tasks.active, _BEGUN_MS)
        well = Span(self.schedule.now_ms)
        self.history.downtimes.append(well)
        self.history.slow_disks.append(well)
        work.start(self.stage, scenario, self.seed, self.faults.counts)
        self.special.start()
        self.faults.start()
        self.store_faults.start()
        if scenario.faults.hunt == "unsaid":
            self.aimed.hunt_unsaid(scenario.faults.hunts_ms)
        elif scenario.faults.hunt is not None:
            hunted = list(scenario.loose_dead_letters) or names
            self.hunter.start(scenario.faults.hunt, scenario.faults.hunts_ms, hunted)
        if scenario.hunted is not None:
            self.suffixes.hunt(scenario.hunted, _HUNTED_MS, unclean=scenario.unclean)
        if scenario.hunts_turns:
            self.aimed.hunt_turns(_HUNTED_MS)
        self.schedule.run_for(scenario.base.duration_ms + (LONGER_MS if self.fails_copies else 0))
        trace.add("world", "everybody stops, everything is well again")
        self.stage.stopping = self.hunter.over = self.suffixes.over = self.aimed.over = True
        self.special.end()
        self.store_faults.heal()
        self.faults.heal()
        self._wait_for("every node runs and stays", self._all_stay, _BEGUN_MS)
        self._wait_for("every replica is in sync again", self.layout.is_settled, _HEALED_MS)
        self._check_library()
        self._wait_for("clients stop", lambda: not self.tasks.active, _SETTLED_MS)
        self._wait_for("every replica is in sync", self.layout.is_settled, _HEALED_MS)
        self._check_visits()
        self._check_alike()
        self._check_numbers()
        well.answered_ms = self.schedule.now_ms
        self.tasks.start(Auditor(self.stage).run())
        self._wait_for("the auditor ends", lambda: not self.tasks.active, _AUDITED_MS)
        self._check_alike()
        self._wait_for(
            "everybody knows what the store has", lambda: not self.members.differing_followers(), _FOLLOWED_MS
        )
        self._finish()
        return Outcome(
            self.seed,
            sorted(self.violations, key=lambda violation: violation.at_ms),
            trace.lines,
            len(self.history.messages),
            len(self.history.deliveries),
            sum(machine.starts - 1 for machine in self.machines.values()) + 1,
            self.schedule.elapsed_ms,
            dict(self.faults.counts),
            scenario.base.kind,
        )

    # -- the cluster -----------------------------------------------------------------------------------------

    def _living(self) -> list[NodeEntry]:
        return [
            layout.decode_node(stored.value)
            for key, stored in sorted(self.metadata.entries.items())
            if key.startswith(layout.NODES)
        ]

    def _create_queues(self) -> Steps[None]:
        """Created through a front end, as by any client; then all observers find them."""
        client = self.stage.client("world")
        queues = [(plan.name, plan.settings) for plan in self.scenario.base.queues]
        for name, settings in [*self.scenario.extra_queues, *queues]:
            while not self.stage.stopping:
                reply = yield Ask(client, CreateQueue(name, settings))
                if reply is not None and isinstance(reply.answer, QueueDescription):
                    self.stage.note(reply.answer)
                    break
                yield Pause(100)
        yield from self.special.create()

    def _is_harmed(self, machine: ClusterMachine) -> bool:
        return bool(self.scenario.faults.flips_ms) and machine is self.faults.damaged

    # -- checks ----------------------------------------------------------------------------------------------

    def _all_stay(self) -> bool:
        """No node is being removed, or down for that reason."""
        return all(machine.is_up and not machine.is_leaving for machine in self.machines.values())

    def _wait_for(self, what: str, condition: Callable[[], bool], most_ms: int) -> None:
        if self.schedule.run(condition, most_ms):
            return
        for entry in self.entries().values():
            self.trace.add("world", f"not within {most_ms} ms: {what}; {entry}")
        self._violated("liveness", f"{what}: not within {most_ms} ms, although nothing is wrong any more")

    def _check_alike(self) -> None:
        """Soon after the last request all replicas have everything; a moment is enough to see it."""
        found: list[str] = []
        for pause_ms in _ALIKE_MS:
            self.schedule.run_for(pause_ms)
            found = list(unlike(self.machines, self.entries(), has_damage=bool(self.history.flips)))
            if not self.scenario.faults.flips_ms:  # a lying disk may restore dropped data
                found += left_over(self.machines, self.entries())
            if not found:
                return
        for sentence in found[:5]:
            self._violated("I9", sentence)

    def _check_numbers(self) -> None:
        """What clients kept over failovers has the same meaning in the surviving log."""
        if (keeping := self.special.keeping) is None:
            return
        self.tasks.start(keeping.keepers.take_stock())
        self._wait_for("the keepers' stock is taken", lambda: not self.tasks.active, _AUDITED_MS)
        for entry in self.entries().values():
            node = self.machines[entry.primary or ""].replicated if entry.queue == QUEUE else None
            if node is not None:
                log = self.observer.log_of(node._parts.catalogue.partitions[entry.partition])
                self.violations += keeping.check(log, entry.unclean, self.schedule.now_ms)
        self.tasks.start(keeping.keepers.delete())
        self._wait_for("the keepers' queue is deleted", lambda: not self.tasks.active, _SETTLED_MS)
        self._wait_for("nothing of it is left", self.layout.is_settled, _HEALED_MS)

    def _check_library(self) -> None:
        """A subscription that lasted through everything gets what is in its queue."""
        if (library := self.special.library) is not None:
            self._wait_for("others stop", lambda: self.tasks.active <= library.tasks, _SETTLED_MS)
            drained = partial(library.is_drained, self.entries, self.machines)
            self._wait_for("the queue of a steady consumer drains", drained, _SETTLED_MS)
            library.end()

    def _check_visits(self) -> None:
        """The queue of the visitor goes by itself."""
        if (visitor := self.special.visitor) is not None:
            self.tasks.start(visitor.leave())
            self._wait_for("the visitor's queue is gone", lambda: not self.tasks.active, _AUDITED_MS)
            self._wait_for("nothing of it is left", self.layout.is_settled, _HEALED_MS)
            self.violations += visitor.violations
            self.faults.counts["idle queue gone"] += visitor.expired

    def _gather_logs(self) -> None:
        """The records of queues of one partition, for checkers that read them."""
        for entry in self.entries().values():
            node = self.machines[entry.primary or ""].replicated if entry.primary is not None else None
            partition = node._parts.catalogue.partitions.get(entry.partition) if node is not None else None
            if partition is not None and entry.settings.partitions == 1:
                self.history.records[entry.queue_id] = self.observer.log_of(partition)
        for change in self.metadata.log:
            if change.key.startswith(layout.PARTITIONS) and change.key not in self.metadata.entries:
                gone = layout.decode_partition(change.value) if change.value is not None else None
                if gone is not None and gone.epoch == gone.serving and gone.settings.partitions == 1:
                    self.history.records[gone.queue_id] = self.observer.committed_log(gone.partition)

    def _finish(self) -> None:
        history = self.history
        if self.scenario.has_rivals or self.scenario.target_hunt is not None:
            self.stage.answers.mark_deletions(history)
        self.history.say_when_sent()
        self._gather_logs()
        logs = list(partition_logs(self.metadata, self.machines, self.observer, self.entries()))
        history.unclean = {log.queue_id for log in logs if log.unclean}
        history.whereabouts = Whereabouts(logs, history.lives.values(), self.observer.written())
        history.ended_ms = self.schedule.now_ms
        self.violations += self.observer.violations + self.members.violations + self.stage.answers.violations
        self.violations += [*self.members.check_lives(), *self.in_sync.violations]
        broken = list(layout_history.broken(self.members.history))
        broken += [f"{who} does not know what the store has" for who in self.members.differing_followers()]
        self.violations += [Violation("I11", self.schedule.now_ms, sentence) for sentence in broken]
        for machine in self.machines.values():
            for at_ms, sentence in machine.defects:
                self.violations.append(
                    Violation("engine", at_ms, f"{machine.name} failed by itself: {sentence}")
                )
        for at_ms, sentence in self.fabric.defects:
            self.violations.append(Violation("engine", at_ms, f"a front end failed by itself: {sentence}"))
        for at_ms, sentence in self.faults.refusals:
            self.violations.append(Violation("I10", at_ms, f"a node refused to start: {sentence}"))
        history.most_unflushed_bytes = max(machine.most_unflushed_bytes for machine in self.machines.values())
        history.max_unflushed_bytes = self.scenario.base.max_unflushed_bytes
        if self.special.metered is not None:
            self.violations += self.special.metered.check(self.metadata, history)
        loose = loose_queues.loose_queues(history)
        observer = self.observer
        lost = lost_records(logs, observer.seen(), loose, observer.returned, observer.uncut)
        self.violations += loose_queues.check(history, logs, lost, loose)
        lost_messages = loose_queues.lost_messages(history, lost)
        lost_answers.forget(history, lost)
        for name in CHECKED:
            self.violations += CHECKERS[name](history)
        for kind, count in (
            ("acknowledged message lost by async", len(lost_messages)),
            ("failover", observer.epochs - observer.partitions),
            ("number given to two messages", len(lost.doubled)),
        ):
            if count > 0:
                self.faults.counts[kind] += count

    def _violated(self, checker: str, sentence: str) -> None:
        self.trace.add("checker", f"{checker}: {sentence}")
        self.violations.append(Violation(checker, self.schedule.now_ms, sentence))


def draw_small_sizes(seed: int, nodes: int) -> SmallSizes:
    """The small sizes of a seed's run: random ones, and those that its scenario needs."""
    scenario = draw_cluster_scenario(Random(f"cluster of {nodes}: {seed}"), nodes)
    sizes = draw_sizes(Random(f"sizes of {nodes}: {seed}"), scenario.wants_small)
    sizes = {**IN_CLUSTERS, **small_sizes.for_queues(sizes, len(scenario.base.queues))}
    return with_usage_sizes(sizes, Random(f"usage sizes: {seed}")) if scenario.is_metered else sizes


def simulate_cluster(seed: int, nodes: int = 3) -> Outcome:
    """Runs one seed."""
    sizes = draw_small_sizes(seed, nodes)
    with put_on(sizes):
        return ClusterWorld(seed, nodes, sizes).run()
