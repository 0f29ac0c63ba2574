"""What a seed decides at the beginning: queues and their settings, their clients, the sizes of storage.

Each run has only some of the features and some of the faults, because all of them together would hide the effects of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import msgspec

from penstock.model.limits import KIBIBYTE
from penstock.model.settings import Overflow, QueueSettings
from penstock.simulation.clocks import ClockPlan
from penstock.simulation.ordered_kinds import LOG_KINDS, ORDERED_KINDS
from penstock.simulation.queue_plan import QueuePlan, visibility
from penstock.storage.options import StorageOptions


@dataclass(slots=True)
class FaultPlan:
    """The frequency of each fault, as milliseconds between two; 0: never."""

    crashes_ms: int = 0
    disconnects_ms: int = 0
    slow_disk_ms: int = 0
    stalls_ms: int = 0
    full_disk_ms: int = 0
    clock_steps_ms: int = 0
    bit_flips_ms: int = 0
    failing_syncs_ms: int = 0
    """Syncs, and other operations that change something on the disk."""
    garbage_ms: int = 0
    refusals_ms: int = 0
    """Single appends find no room in the journal."""
    misplaced_ms: int = 0
    """Sectors cannot be read, hold what they held before, or what was written elsewhere."""
    turn_pauses_ms: int = 0
    """A process pauses in the middle of a turn."""


@dataclass(slots=True)
class Scenario:
    """Everything about a run that is decided at the beginning."""

    duration_ms: int
    options: StorageOptions
    cold_reads: float
    max_unflushed_bytes: int
    queues: list[QueuePlan] = field(default_factory=list)
    producers: int = 3
    consumers: int = 3
    subscribers: int = 1
    operators: int = 1
    flood: bool = False
    """Whether a client sends without waiting for answers."""
    faults: FaultPlan = field(default_factory=FaultPlan)
    clocks: ClockPlan = field(default_factory=ClockPlan)
    log_readers: int = 0
    group_members: int = 0
    kind: str = ""
    """The unusual property of the run (`unusual_runs.py`); empty in most."""
    nights: tuple[tuple[int, int], ...] = ()
    """When clients and faults rest, in elapsed milliseconds."""

    @property
    def ordered_producers(self) -> int:
        """How many producers run the client's own code (`workload/ordered_producer.py`): some in a third of the runs.

        No dice are thrown for it, so that in the other runs everything stays as it is.
        """
        return 1 + self.duration_ms // 3 % 2 if self.duration_ms % 3 == 0 else 0

    @property
    def has_visitor(self) -> bool:
        """Whether there is a queue that goes when it is idle (`workload/idle_visitor.py`): in a sixth of the runs, without dice.

        Nothing may be lost by damage.
        """
        is_damaged = self.faults.bit_flips_ms or self.faults.misplaced_ms
        return self.duration_ms % 6 == 1 and not is_damaged and not self.kind

    @property
    def deletes_targets(self) -> bool:
        """Whether queues are deleted in the middle of a move into them (`targeted_dead_letters.py`). With its own random
        generator.
        """
        faults = self.faults
        harmed = faults.refusals_ms or faults.bit_flips_ms or faults.misplaced_ms or faults.full_disk_ms
        is_quiet = not (harmed or self.flood or self.kind)
        fed = any(plan.settings.max_receives is not None for plan in self.queues)
        return fed and is_quiet and Random(f"deleted targets: {self.duration_ms}").random() < 0.4

    @property
    def is_impatient(self) -> bool:
        """Whether clients give up stalled connections: in some of the runs with broken ones. With its own random generator."""
        return self.faults.disconnects_ms > 0 and Random(f"impatience: {self.duration_ms}").random() < 0.15


def draw_scenario(random: Random) -> Scenario:
    """The scenario of a run."""
    journal_kibibytes = random.choice((48, 64, 96, 192))
    scenario = Scenario(
        duration_ms=random.choice((random.randint(2_000, 8_000), random.randint(6_000, 20_000))),
        options=StorageOptions(
            journal_file_bytes=journal_kibibytes * KIBIBYTE,
            entry_bytes_max=40 * KIBIBYTE,
            journal_files_ahead=random.choice((2, 2, 3)),
            spare_files_max=random.choice((0, 1, 4)),
            free_bytes_min=8 * KIBIBYTE,
            segment_bytes=random.choice((4, 16, 64)) * KIBIBYTE,
            checkpoint_journal_bytes=random.choice((8, 24, 64, 300)) * KIBIBYTE,
            cache_bytes=random.choice((0, 16, 256)) * KIBIBYTE,
            read_ahead_bytes=random.choice((512, 4096, 65536)),
            retry_ms=random.choice((100, 500)),
            open_files_max=random.choice((2, 8, 64)),
        ),
        cold_reads=random.choice((0.0, 0.0, 0.2, 0.9)),
        max_unflushed_bytes=random.choice((8, 32)) * KIBIBYTE,
        producers=random.randint(2, 5),
        consumers=random.randint(2, 5),
        subscribers=random.randint(0, 2),
        operators=random.choice((1, 1, 2)),
        flood=random.random() < 0.12,
    )
    names = list(KINDS)
    for name in sorted(random.sample(names, random.randint(2, 5))):
        scenario.queues.append(KINDS[name](random))
    scenario.faults = _faults(random)
    scenario.clocks = _clocks(random)
    if any(queue.settings.has_log for queue in scenario.queues):
        scenario.log_readers = random.randint(1, 3)
        scenario.group_members = random.randint(1, 4)
    _give_crowded(scenario)
    _follow_some(scenario)
    if scenario.flood:
        scenario.duration_ms = scenario.duration_ms // 3 + 4_000
        scenario.faults.stalls_ms = random.choice((0, 2_500))
    return scenario


def _follow_some(scenario: Scenario) -> None:
    """The lifecycle logs of some queues, in some runs. With its own random generator."""
    dice = Random(scenario.duration_ms)
    if dice.random() < 0.5:
        return
    for queue in scenario.queues:
        if dice.random() < 0.6:
            queue.settings = msgspec.structs.replace(queue.settings, lifecycle=True)


def _give_crowded(scenario: Scenario) -> None:
    """A quarter of the runs have a queue more, with more groups than it may have at a time. With dice of their own, as below."""
    dice = Random(f"crowded: {scenario.duration_ms}")
    if dice.random() < 0.25:
        scenario.queues.append(crowded(dice))


def _faults(random: Random) -> FaultPlan:
    def sometimes(share: float, low_ms: int, high_ms: int) -> int:
        return random.randint(low_ms, high_ms) if random.random() < share else 0

    return FaultPlan(
        crashes_ms=sometimes(0.85, 1_000, 6_000),
        disconnects_ms=sometimes(0.6, 400, 4_000),
        slow_disk_ms=sometimes(0.35, 2_000, 9_000),
        stalls_ms=sometimes(0.25, 4_000, 12_000),
        full_disk_ms=sometimes(0.2, 4_000, 10_000),
        clock_steps_ms=sometimes(0.15, 5_000, 15_000),
        bit_flips_ms=sometimes(0.15, 2_000, 8_000),
        failing_syncs_ms=sometimes(0.1, 5_000, 15_000),
        garbage_ms=sometimes(0.2, 1_000, 5_000),
        refusals_ms=sometimes(0.2, 100, 2_000),
        turn_pauses_ms=sometimes(0.12, 1_000, 5_000),
        misplaced_ms=sometimes(0.12, 1_000, 6_000),
    )


def _clocks(random: Random) -> ClockPlan:
    return ClockPlan(
        node=random.choice(("own", "bounded", "bounded", "broken")),
        producers_break=random.random() < 0.4,
        faults_ms=random.choice((0, 1_500, 5_000)),
    )


# -- kinds of queues -----------------------------------------------------------------------------------------


def _plain(random: Random) -> QueuePlan:
    return QueuePlan("plain", QueueSettings(visibility_timeout_ms=visibility(random)))


def _fifo(random: Random) -> QueuePlan:
    dead = random.random() < 0.5
    settings = QueueSettings(
        ordering="fifo",
        visibility_timeout_ms=visibility(random),
        max_receives=random.randint(2, 4) if dead else None,
        dead_letter_queue="fifo-dead" if dead else None,
    )
    return QueuePlan("fifo", settings, groups=random.randint(1, 6), delays_ms=random.choice((0, 0, 1_500)))


def _fair(random: Random) -> QueuePlan:
    settings = QueueSettings(visibility_timeout_ms=visibility(random))
    return QueuePlan("fair", settings, groups=random.randint(2, 8))


def _priorities(random: Random) -> QueuePlan:
    settings = QueueSettings(visibility_timeout_ms=visibility(random))
    return QueuePlan("priorities", settings, priorities=True, groups=random.choice((0, 3)))


def _delays(random: Random) -> QueuePlan:
    settings = QueueSettings(
        visibility_timeout_ms=visibility(random), delay_ms=random.choice((0, 0, 400, 2_000))
    )
    plan = QueuePlan("delays", settings, delays_ms=random.choice((500, 4_000, 12_000)))
    if plan.delays_ms > 500:  # long enough for the queue to be deleted meanwhile
        plan.settings = msgspec.structs.replace(settings, dead_letter_queue="delays-dead")
    return plan


def _ttl(random: Random) -> QueuePlan:
    dead = random.random() < 0.5
    settings = QueueSettings(
        visibility_timeout_ms=visibility(random),
        default_ttl_ms=random.choice((None, 800, 5_000)),
        dead_letter_queue="ttl-dead" if dead else None,
    )
    return QueuePlan("ttl", settings, ttls_ms=random.choice((0, 2_000, 10_000)))


def _retention(random: Random) -> QueuePlan:
    settings = QueueSettings(
        visibility_timeout_ms=visibility(random), retention_ms=random.choice((1_500, 4_000, 10_000))
    )
    return QueuePlan("retention", settings)


def _deduplication(random: Random) -> QueuePlan:
    settings = QueueSettings(
        visibility_timeout_ms=visibility(random),
        deduplication_window_ms=random.choice((1_000, 10_000, 300_000)),
    )
    return QueuePlan("deduplication", settings, deduplication=random.choice((5, 30)))


def _dead_letters(random: Random) -> QueuePlan:
    settings = QueueSettings(
        visibility_timeout_ms=random.choice((200, 600)),
        max_receives=random.randint(1, 3),
        dead_letter_queue="dead",
    )
    return QueuePlan("dead-letters", settings, groups=random.choice((0, 0, 3)))


def _reject(random: Random) -> QueuePlan:
    limit = random.random() < 0.5
    settings = QueueSettings(
        visibility_timeout_ms=visibility(random),
        max_messages=random.randint(5, 60) if limit else None,
        max_bytes=None if limit else random.randint(1_000, 9_000),
    )
    return QueuePlan("reject", settings)


def _drop_oldest(random: Random) -> QueuePlan:
    settings = QueueSettings(
        visibility_timeout_ms=visibility(random), max_messages=random.randint(5, 60), overflow="drop-oldest"
    )
    return QueuePlan("drop-oldest", settings, groups=random.choice((0, 3)))


def _overflow(random: Random) -> QueuePlan:
    settings = QueueSettings(
        visibility_timeout_ms=visibility(random),
        max_messages=random.randint(5, 60),
        overflow="dead-letter",
        dead_letter_queue="overflow-dead",
    )
    return QueuePlan("overflow", settings)


def crowded(random: Random) -> QueuePlan:
    """A queue with a limit of groups. It is none of `KINDS`: it comes beside those that were drawn."""
    overflow: Overflow = random.choice(("reject", "drop-oldest", "dead-letter"))
    settings = QueueSettings(
        ordering=random.choice(("best-effort", "fifo")),
        visibility_timeout_ms=visibility(random),
        max_groups=random.randint(1, 4),
        max_messages=random.choice((None, None, 30)),
        overflow=overflow,
        dead_letter_queue="crowded-dead" if overflow == "dead-letter" else None,
    )
    return QueuePlan("crowded", settings, groups=random.randint(3, 8), delays_ms=random.choice((0, 0, 1_500)))


def _everything(random: Random) -> QueuePlan:
    settings = QueueSettings(
        visibility_timeout_ms=visibility(random),
        max_messages=random.choice((None, 40, 200)),
        overflow=random.choice(("reject", "drop-oldest", "dead-letter")),
        retention_ms=random.choice((20_000, 345_600_000)),
        delay_ms=random.choice((0, 0, 300)),
        default_ttl_ms=random.choice((None, None, 6_000)),
        deduplication_window_ms=random.choice((2_000, 300_000)),
        max_receives=random.randint(1, 5),
        dead_letter_queue="everything-dead",
    )
    return QueuePlan(
        "everything",
        settings,
        groups=random.choice((0, 4)),
        priorities=random.random() < 0.5,
        delays_ms=random.choice((0, 3_000)),
        ttls_ms=random.choice((0, 5_000)),
        deduplication=random.choice((0, 20)),
    )


KINDS: dict[str, Callable[[Random], QueuePlan]] = {
    "plain": _plain,
    "fifo": _fifo,
    "fair": _fair,
    "priorities": _priorities,
    "delays": _delays,
    "ttl": _ttl,
    "retention": _retention,
    "deduplication": _deduplication,
    "dead-letters": _dead_letters,
    "reject": _reject,
    "drop-oldest": _drop_oldest,
    "overflow": _overflow,
    "everything": _everything,
    **ORDERED_KINDS,
    **LOG_KINDS,
}
