"""Bugs to plant in the counting of calls; `planted_bugs` names them too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.planted_patches import Patch
from penstock.usage import collector
from penstock.usage.batch import UsageBatch
from penstock.usage.spool import Spool


class UsageBug(NamedTuple):
    """See `planted_bugs.ClusterBug`."""

    checkers: tuple[str, ...]
    sentence: str
    patches: Callable[[], Sequence[Patch]]
    shows: Callable[[ClusterScenario], bool]


def _renumbers() -> Sequence[Patch]:
    """A batch that is sent again is sent under another number."""

    def batch_of(spool: Spool, front_end: str, blocks: list[Any]) -> UsageBatch:
        spool.through = 0
        return real(spool, front_end, blocks)

    real = collector._batch_of
    return [(collector, "_batch_of", batch_of)]


def _forgets_the_dead() -> Sequence[Patch]:
    """What a process that was killed has left is thrown away."""

    def next_of(spool: Spool) -> None:
        return None

    return [(collector, "_next_of", next_of)]


def _is_metered(scenario: ClusterScenario) -> bool:
    return scenario.is_metered


USAGE_BUGS: dict[str, UsageBug] = {
    "usage-batches-are-renumbered": UsageBug(
        ("I12",),
        "usage that is handed on again has another number, and is counted twice",
        _renumbers,
        _is_metered,
    ),
    "usage-of-the-dead-is-forgotten": UsageBug(
        ("I12",),
        "usage that a killed process has left is thrown away",
        _forgets_the_dead,
        _is_metered,
    ),
}
