"""What a bug is that can be planted on a single node: one row of `planted_bugs` and of the families that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.simulation.planted_patches import Patch
from penstock.simulation.scenario import Scenario


class PlantedBug(NamedTuple):
    """A bug, the checker that must notice it, and the scenarios in which it can show."""

    checker: str
    sentence: str
    patches: Callable[[], Sequence[Patch]]
    shows: Callable[[Scenario], bool]
