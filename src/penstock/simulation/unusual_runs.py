"""Runs of unusual size, a few in a hundred: hundreds of queues, or days of virtual time.

They use no random numbers of the run: all other runs do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from penstock.simulation.queue_plan import QueuePlan
from penstock.simulation.scenario import KINDS, Scenario

MANY_QUEUES = "hundreds of queues"
DAYS = "days of virtual time"

_ONE_IN = 50
_SMALL_KINDS = ("plain", "fair", "priorities", "retention", "deduplication", "log")
_HOUR_MS = 3_600_000
_LONG_MS = (_HOUR_MS, 5 * _HOUR_MS, 26 * _HOUR_MS)
_FOREVER_MS = 345_600_000

Nights = Sequence[tuple[int, int]]
"""When they begin and end, in elapsed milliseconds. Clients and faults rest in them; the node does not."""


def make_unusual(scenario: Scenario) -> Scenario:
    """The scenario, as it is in most runs; in some it becomes an unusual one."""
    share, dice = scenario.duration_ms % _ONE_IN, Random(scenario.duration_ms)
    if scenario.flood:
        return scenario
    if share == 1:
        _give_many_queues(scenario, dice)
    elif share == 2:
        _let_days_pass(scenario, dice)
    return scenario


def _give_many_queues(scenario: Scenario, dice: Random) -> None:
    scenario.kind = MANY_QUEUES
    for number in range(dice.choice((100, 200, 300))):
        plan = KINDS[dice.choice(_SMALL_KINDS)](dice)
        plan.name = f"{plan.name}-{number}"
        scenario.queues.append(plan)
    scenario.log_readers = max(scenario.log_readers, 1)
    scenario.producers += 3
    scenario.consumers += 3
    # A checkpoint of so many queues takes a while: how long a node may say that its disk is full is known for few queues.
    scenario.faults.full_disk_ms = 0


def _let_days_pass(scenario: Scenario, dice: Random) -> None:
    """Some seconds of work, then a night of hours, and so on."""
    scenario.kind = DAYS
    nights: list[tuple[int, int]] = []
    at_ms = 0
    for _ in range(dice.randint(3, 8)):
        begins_ms = at_ms + dice.randint(1_000, 4_000)
        at_ms = begins_ms + dice.choice((1, 6, 13, 30)) * _HOUR_MS + dice.randint(0, _HOUR_MS)
        nights.append((begins_ms, at_ms))
    scenario.nights = tuple(nights)
    scenario.duration_ms = at_ms + 3_000
    if scenario.ordered_producers:  # they keep leases by beats, every night long
        scenario.duration_ms += 1
    # A queue with order by time reads its clock all night while that is uncertain.
    for name in ("plain", "retention", "deduplication"):
        if all(plan.name != name for plan in scenario.queues):
            scenario.queues.append(KINDS[name](dice))
    scenario.queues = [_lasting(plan, dice) for plan in scenario.queues if not _goes_by_clocks(plan)]


def _goes_by_clocks(plan: QueuePlan) -> bool:
    return plan.settings.sorted or plan.settings.ordering in ("clock", "causal")


def _lasting(plan: QueuePlan, dice: Random) -> QueuePlan:
    """The plan with times that end in some night instead of within seconds."""
    settings = plan.settings
    changes: dict[str, int] = {"deduplication_window_ms": dice.choice((300_000, _HOUR_MS))}
    if settings.retention_ms < _FOREVER_MS or dice.random() < 0.3:
        changes["retention_ms"] = dice.choice(_LONG_MS)
    if settings.default_ttl_ms is not None:
        changes["default_ttl_ms"] = dice.choice(_LONG_MS)
    plan.settings = msgspec.structs.replace(settings, **changes)
    if plan.ttls_ms:
        plan.ttls_ms = dice.choice(_LONG_MS)
    return plan
