"""What the seed of a cluster's run decides at the beginning: queues with replicas, and the faults."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from random import Random
from typing import Literal

import msgspec

from penstock.model.limits import KIBIBYTE
from penstock.model.settings import QueueSettings
from penstock.simulation.cluster.fault_plan import ClusterFaultPlan, draw_faults
from penstock.simulation.cluster.store_faults import StoreFaultPlan, draw_store_faults
from penstock.simulation.queue_plan import QueuePlan, visibility
from penstock.simulation.scenario import KINDS, FaultPlan, Scenario, crowded, draw_scenario

CLUSTER_KINDS = (
    *("plain", "fifo", "fair", "priorities", "delays", "deduplication", "dead-letters"),
    *("log", "both", "clock", "stamped-clock", "causal"),
)
LOOSE_KINDS = ("plain", "fair", "priorities", "delays", "deduplication")
"""Kinds of which some queues are `async` in any run; `_loosen_all_kinds` makes some of all kinds `async`."""
LOSING_HUNTS = ("left-behind", "old-primary", "standstill", "lost-answer")
"""Targeted faults that remove a primary which may have acknowledged something alone."""
LIMITED_KINDS = ("ttl", "retention", "reject", "drop-oldest", "overflow", "everything")
"""Kinds whose messages end by time or a limit, or are refused for lack of room."""
MANY_PARTITIONS = "hundreds of partitions"
PUSHED = "pushed"
"""The queue with a permanent subscription of the client library."""
SINGLE = "single"
"""The queue with one replica."""
TargetHunt = Literal["made again", "unsettled", "hidden"]
_ONE_IN = 200
METERED_SHARE = 0.08
WHOLE_STATE_SIZES = ("storage.replica_log.IMAGE_PART_BYTES",)
FLOOD_SIZES = (
    "replication.primary_secondary.node.peer_stream.WINDOW_BYTES",
    "replication.primary_secondary.node.leader.sender.APPEND_BYTES",
    "storage.replica_log.READ_BYTES",
    "storage.replica_log.IMAGE_PART_BYTES",
)
"""Small in most runs in which clients send more than a slow disk takes."""
_SMALL_KINDS = ("plain", "fifo", "fair", "priorities", "deduplication")


@dataclass(slots=True)
class ClusterScenario:
    """A run."""

    base: Scenario
    nodes: int
    replicas: int
    extra_queues: list[tuple[str, QueueSettings]]
    """The targets of dead letters."""
    faults: ClusterFaultPlan
    late_nodes: int = 0
    """Nodes that join later."""
    wants_small: tuple[str, ...] = ()
    """Sizes that the run needs to be small."""
    destructive: bool = False
    """Whether operators purge and delete."""
    loose_dead_letters: tuple[str, ...] = ()
    """Dead-letter queues that are `async`."""
    altered_replicas: tuple[int, ...] = ()
    """The numbers of replicas that operators may set; none: they never change it."""
    store: StoreFaultPlan = field(default_factory=StoreFaultPlan)
    """The faults on the way to the metadata store."""
    hunted: str | None = None
    """The queue with targeted faults of its primaries (`targeted_numbers.py`): while they acknowledge alone, if it is `async`."""
    library_consumers: int = 0
    """The number of consumers with the client library's code."""
    has_rivals: bool = False
    """Whether several operators change the same queues at once (`rivals.py`)."""
    target_hunt: TargetHunt | None = None
    """What happens to queues while messages move to them (`targeted_moves.py`)."""
    unclean: bool = False
    """Whether an operator permits unclean elections of that queue."""

    @property
    def keeps_numbers(self) -> bool:
        """Whether there is an `async` queue whose clients keep numbers and receipts over failovers (`number_keepers.py`).

        In a fifth of the runs, without a random number. If a disk is damaged no other replica is removed.
        """
        return self.base.duration_ms % 5 == 0 and not self.faults.flips_ms

    @property
    def hunts_turns(self) -> bool:
        """Whether primaries that acknowledge alone are paused in turns (`targeted_stops.py`). Separate random numbers."""
        dice = Random(f"turns: {self.base.duration_ms}")
        is_free = self.faults.hunt is None and self.hunted is None
        return self.faults.turn_pauses_ms > 0 and is_free and dice.random() < 0.6

    @property
    def has_visitor(self) -> bool:
        """As on one node; clocks step all together."""
        disturbed = self.faults.skew_ms or self.faults.flips_ms
        return self.base.duration_ms % 4 == 1 and not disturbed and not self.base.kind

    @property
    def is_metered(self) -> bool:
        """Whether there are front ends that record usage (`metered_calls.py`). Separate random numbers, as below.

        If a disk is damaged the usage log may lose something like any other queue.
        """
        drawn = Random(f"metered: {self.base.duration_ms}").random() < METERED_SHARE
        return drawn and not self.faults.flips_ms and not self.base.kind


def draw_cluster_scenario(random: Random, nodes: int) -> ClusterScenario:
    """The scenario of a run."""
    base = draw_scenario(random)
    base.faults = FaultPlan()
    base.flood = False
    base.subscribers = base.operators = base.log_readers = base.group_members = 0
    # A part of a whole state must fit into a journal file.
    base.options = dataclasses.replace(
        base.options,
        journal_file_bytes=random.choice((96, 128, 192)) * KIBIBYTE,
        entry_bytes_max=72 * KIBIBYTE,
    )
    base.duration_ms = random.choice((2_500, 5_000, 5_000)) + random.randint(0, random.choice((2_000, 9_000)))
    base.producers, base.consumers = random.randint(1, 3), random.randint(1, 3)
    replicas = 3 if nodes == 3 or random.random() < 0.5 else nodes
    names = sorted(random.sample(CLUSTER_KINDS, random.randint(1, 3)))
    base.queues = [_replicated(KINDS[name](random), replicas, random) for name in names]
    faults = draw_faults(random)
    if faults.hunt is not None:
        base.duration_ms += 6_000
        base.producers += 1
    wants_small: tuple[str, ...] = ()
    if faults.hunt == "whole-state":
        base.duration_ms += 8_000
        base.options = dataclasses.replace(
            base.options, checkpoint_journal_bytes=random.choice((8, 24, 48)) * KIBIBYTE
        )
        wants_small = WHOLE_STATE_SIZES
    _loosen(base.queues, random)
    if faults.hunt in ("old-primary", "standstill") and Random(base.duration_ms).random() < 0.5:
        # The lease protects what such a primary acknowledges alone. Separate random numbers, as below.
        _loosen(base.queues, Random(base.duration_ms), share=1.0)
    if any(plan.settings.has_log for plan in base.queues):
        base.log_readers, base.group_members = random.randint(1, 2), random.randint(0, 2)
    late_nodes = 1 if replicas < nodes and random.random() < 0.3 else 0
    if random.random() < 0.3:
        faults.skew_ms = random.choice((40, 500, 2_500))
        faults.clock_ms = faults.clock_ms or 3_000
    if random.random() < 0.2:
        faults.lossy_network = random.choice((0.01, 0.05, 0.2))
    base.operators = 1 if random.random() < 0.55 else 0
    # With one damaged disk the last good replica must not be removed.
    may_alter = bool(base.operators) and not faults.flips_ms and random.random() < 0.7
    destructive = bool(base.operators) and random.random() < 0.6
    store = draw_store_faults(random)
    if faults.flips_ms:
        # Only the others survive a disk that lies about syncs: nothing may end their leases or drain them.
        store = StoreFaultPlan(breaks_ms=store.breaks_ms, deaf_ms=store.deaf_ms)
    # It takes a while until a lease has ended and all processes know it.
    if store.siege_ms or store.coup_ms:
        base.duration_ms += 5_000
    scenario = ClusterScenario(
        base,
        nodes,
        replicas,
        _dead_letter_queues(base.queues, replicas),
        faults,
        late_nodes,
        wants_small,
        destructive=destructive,
        altered_replicas=tuple(range(2, nodes - late_nodes + 1)) if may_alter else (),
        store=store,
    )
    _loosen_dead_letters(scenario)
    _delay_dead_letters(scenario)
    _give_limits(scenario)
    _give_claimed_ids(scenario)
    _give_many_partitions(scenario)
    _shorten_logs(scenario)
    _loosen_all_kinds(scenario)
    _allow_unclean(scenario)
    if faults.hunt == "left-behind" and Random(f"unsaid: {base.duration_ms}").random() < 0.5:
        faults.hunt = "unsaid"
    _give_library_consumers(scenario)
    _give_single_replica(scenario)
    _give_rivals(scenario)
    _remake_targets(scenario)
    dice = Random(f"flood: {base.duration_ms}")
    base.flood = bool(faults.slow_disk_ms) and dice.random() < 0.5
    if base.flood:
        scenario.wants_small = (*scenario.wants_small, *FLOOD_SIZES)
    return scenario


def _dead_letter_queues(plans: list[QueuePlan], replicas: int) -> list[tuple[str, QueueSettings]]:
    found = {
        plan.settings.dead_letter_queue: QueueSettings(
            replicas=replicas,
            ordering="fifo" if plan.settings.strict else "best-effort",
            visibility_timeout_ms=2_000,
        )
        for plan in plans
        if plan.settings.dead_letter_queue is not None
    }
    return sorted(found.items(), key=lambda item: item[0])


def _give_limits(scenario: ClusterScenario) -> None:
    """A third of the runs have a queue more whose messages go by themselves: their time ends, or there is no room. With dice of
    their own, as above; some of these queues have a limit of groups, with further dice."""
    dice = Random(f"limits: {scenario.base.duration_ms}")
    if dice.random() < 0.67:
        return
    drawn, own_dice = KINDS[dice.choice(LIMITED_KINDS)](dice), Random(f"crowded: {scenario.base.duration_ms}")
    plan = _replicated(crowded(own_dice) if own_dice.random() < 0.4 else drawn, scenario.replicas, dice)
    scenario.base.queues.append(plan)
    scenario.extra_queues += _dead_letter_queues([plan], scenario.replicas)


def _give_claimed_ids(scenario: ClusterScenario) -> None:
    """A quarter of the runs have another queue with an order, several partitions, and ids for all. Separate random numbers, as above."""
    dice = Random(f"claimed ids: {scenario.base.duration_ms}")
    if dice.random() < 0.75:
        return
    settings = QueueSettings(
        ordering="fifo",
        replicas=scenario.replicas,
        partitions=dice.choice((2, 3, 5)),
        visibility_timeout_ms=visibility(dice),
        deduplication_window_ms=dice.choice((1_000, 5_000, 300_000)),
    )
    plan = QueuePlan("fifo-ids", settings, groups=dice.randint(2, 8), deduplication=dice.choice((3, 10, 30)))
    scenario.base.queues.append(plan)


def _give_library_consumers(scenario: ClusterScenario) -> None:
    """A fifth of the runs have consumers with the client library's code, and another queue with a permanent subscription.
    Separate random numbers, as above.
    """
    base, dice = scenario.base, Random(f"library: {scenario.base.duration_ms}")
    if dice.random() < 0.8 or base.kind or scenario.faults.flips_ms:
        return
    settings = QueueSettings(
        replicas=scenario.replicas,
        partitions=dice.choice((1, 2, 3)),
        visibility_timeout_ms=visibility(dice),
        replication="async" if dice.random() < 0.2 else "sync",
    )
    base.queues.append(QueuePlan(PUSHED, settings))
    scenario.library_consumers = dice.randint(1, 3)


def _give_single_replica(scenario: ClusterScenario) -> None:
    """A tenth of the runs have another queue with one replica. Separate random numbers, as above."""
    dice, faults = Random(f"single: {scenario.base.duration_ms}"), scenario.faults
    if dice.random() < 0.9 or scenario.base.kind or faults.flips_ms or faults.hunt is not None:
        return
    settings = QueueSettings(
        replicas=1, partitions=dice.choice((1, 2, 3)), visibility_timeout_ms=visibility(dice)
    )
    scenario.base.queues.append(QueuePlan(SINGLE, settings))


def _give_rivals(scenario: ClusterScenario) -> None:
    """In a tenth of the runs several operators change the same queues at once. Separate random numbers, as above."""
    dice, faults = Random(f"rivals: {scenario.base.duration_ms}"), scenario.faults
    is_quiet = scenario.base.kind or faults.flips_ms or faults.hunt is not None or scenario.hunted is not None
    scenario.has_rivals = not is_quiet and dice.random() < 0.4


def _remake_targets(scenario: ClusterScenario) -> None:
    """Some runs with dead letters have targeted faults for moving ones. Separate random numbers, as above."""
    base, faults, dice = scenario.base, scenario.faults, Random(f"remade: {scenario.base.duration_ms}")
    fed = any(plan.settings.max_receives is not None for plan in base.queues)
    is_quiet = base.kind or faults.flips_ms or faults.hunt is not None or scenario.hunted is not None
    if fed and not is_quiet and not scenario.loose_dead_letters and dice.random() < 0.5:
        scenario.target_hunt = "made again"
        faults.slow_network = True  # moves can be observed
    elif fed and not is_quiet and not scenario.loose_dead_letters and not scenario.keeps_numbers:
        is_hidden = Random(f"hidden: {base.duration_ms}").random() < 0.4
        scenario.target_hunt = "hidden" if is_hidden else "unsettled"
        base.duration_ms += 18_000 if is_hidden else 6_000
        scenario.faults = ClusterFaultPlan(slow_network=True, slow_disk_ms=faults.slow_disk_ms)
        scenario.store = StoreFaultPlan()


def _give_many_partitions(scenario: ClusterScenario) -> None:
    """One run in two hundred has hundreds of partitions. Separate random numbers, as above."""
    base = scenario.base
    if base.duration_ms % _ONE_IN != 1:
        return
    dice = Random(f"partitions: {base.duration_ms}")
    base.kind = MANY_PARTITIONS
    for number in range(dice.choice((40, 60))):
        plan = _replicated(KINDS[dice.choice(_SMALL_KINDS)](dice), scenario.replicas, dice)
        plan.name = f"{plan.name}-{number}"
        plan.settings = msgspec.structs.replace(plan.settings, partitions=dice.choice((1, 3, 5)))
        base.queues.append(plan)
    base.producers += 3
    base.consumers += 3


def _shorten_logs(scenario: ClusterScenario) -> None:
    """Some logs have a short retention, so that they are cut at their front all the time. With separate random numbers, as above."""
    dice = Random(f"short logs: {scenario.base.duration_ms}")
    for plan in scenario.base.queues:
        if plan.settings.has_log and dice.random() < 0.6:
            plan.settings = msgspec.structs.replace(
                plan.settings, retain_bytes=dice.choice((500, 2_000, 8_000))
            )


def _delay_dead_letters(scenario: ClusterScenario) -> None:
    """Without other targeted faults: late requests to accept dead letters. Separate random numbers, as above."""
    base, faults, dice = scenario.base, scenario.faults, Random(f"late moves: {scenario.base.duration_ms}")
    has_dead_letters = any(plan.settings.max_receives is not None for plan in base.queues)
    if has_dead_letters and faults.hunt is None and not faults.flips_ms and dice.random() < 0.4:
        base.duration_ms += 8_000
        scenario.faults = ClusterFaultPlan(
            hunt="late-move",
            hunts_ms=dice.randint(100, 400),
            slow_network=True,  # moves can be observed
            skew_ms=faults.skew_ms,
            clock_ms=faults.clock_ms,
            slow_disk_ms=faults.slow_disk_ms,
            stalls_ms=faults.stalls_ms,
            refusals_ms=faults.refusals_ms,
        )


def _loosen_dead_letters(scenario: ClusterScenario) -> None:
    """If operators neither purge nor delete: queues that lose nothing may have an `async` dead-letter queue, which loses none.

    With separate random numbers: the rest of the run does not change.
    """
    base, faults, dice = scenario.base, scenario.faults, Random(scenario.base.duration_ms)
    fed = [plan.settings for plan in base.queues if plan.settings.max_receives is not None]
    loose = {settings.dead_letter_queue for settings in fed if not settings.strict}
    if not loose or scenario.destructive or faults.flips_ms or dice.random() < 0.5:
        return
    scenario.extra_queues = [
        (name, msgspec.structs.replace(settings, replication="async" if name in loose else "sync"))
        for name, settings in scenario.extra_queues
    ]
    scenario.loose_dead_letters = tuple(name for name, _ in scenario.extra_queues if name in loose)
    if dice.random() < 0.6:
        base.duration_ms += 0 if faults.hunt is not None else 6_000
        faults.hunt, faults.hunts_ms = "dead-letter", dice.randint(200, 600)


def _replicated(plan: QueuePlan, replicas: int, random: Random) -> QueuePlan:
    plan.settings = msgspec.structs.replace(
        plan.settings, replicas=replicas, partitions=random.choice((1, 1, 2, 3))
    )
    if plan.settings.sorted or plan.settings.ordering == "clock":
        # The check is about the order of one partition, record by record.
        plan.settings = msgspec.structs.replace(plan.settings, partitions=1, default_ttl_ms=None)
    if plan.settings.has_log:
        # Readers of the simulation know one partition; the clock that cuts a log is checked on one node.
        plan.settings = msgspec.structs.replace(
            plan.settings,
            ordering="best-effort" if plan.settings.ordering == "clock" else plan.settings.ordering,
            partitions=1,
            retention_ms=QueueSettings().retention_ms,
            retain_bytes=None,
        )
    return plan


def _loosen(plans: list[QueuePlan], random: Random, share: float = 0.12) -> None:
    """Makes some queues `async`."""
    for plan in plans:
        may_lose = plan.name in LOOSE_KINDS
        if may_lose and random.random() < share:
            plan.settings = msgspec.structs.replace(plan.settings, replication="async")


def _loosen_all_kinds(scenario: ClusterScenario) -> None:
    """Queues of every kind may be `async`, most often with targeted faults of primaries. With separate random numbers, as above."""
    dice = Random(f"loose: {scenario.base.duration_ms}")
    share = 0.5 if scenario.faults.hunt in LOSING_HUNTS else 0.15
    for plan in scenario.base.queues:
        if dice.random() < share and plan.name.partition("-")[0] not in LOOSE_KINDS:
            plan.settings = msgspec.structs.replace(plan.settings, replication="async")
    names = [plan.name for plan in scenario.base.queues]
    loose = [plan.name for plan in scenario.base.queues if plan.settings.replication == "async"]
    chance = 0.7 if loose else 0.1
    if scenario.faults.hunt is None and not scenario.faults.flips_ms and dice.random() < chance:
        scenario.hunted, scenario.unclean = dice.choice(loose or names), not loose or dice.random() < 0.5


def _allow_unclean(scenario: ClusterScenario) -> None:
    """In a quarter of the runs without other targeted faults: unclean elections of a `sync` queue. Separate random numbers, as above."""
    dice = Random(f"unclean: {scenario.base.duration_ms}")
    tight = [plan.name for plan in scenario.base.queues if plan.settings.replication == "sync"]
    is_free = scenario.faults.hunt is None and scenario.hunted is None and not scenario.faults.flips_ms
    if tight and is_free and not scenario.base.kind and dice.random() < 0.25:
        scenario.hunted, scenario.unclean = dice.choice(tight), True
        scenario.base.duration_ms += 4_020  # until all in sync have failed, and until another one leads
