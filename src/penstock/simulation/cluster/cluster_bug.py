"""What a bug is that can be planted in a cluster: one row of the families in the `planted_*` modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.planted_patches import Patch


class ClusterBug(NamedTuple):
    """A bug and the checkers of which at least one must notice it."""

    checkers: tuple[str, ...]
    sentence: str
    patches: Callable[[], Sequence[Patch]]
    shows: Callable[[ClusterScenario], bool]
    """The scenarios in which it is likely to show."""
