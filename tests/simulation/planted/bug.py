"""What a planted bug is: each breaks one promise on purpose, and the checkers that it names must notice. That proves the checkers.

A bug is a set of patches, put on for the length of a run and taken off again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.patching import Patches
from penstock.simulation.scenario import Scenario


class PlantedBug(NamedTuple):
    """A bug of a single node, the checker that must notice it, and the scenarios in which it can show."""

    checker: str
    sentence: str
    patches: Patches
    shows: Callable[[Scenario], bool]


class ClusterBug(NamedTuple):
    """A bug of a cluster, and the checkers of which at least one must notice it."""

    checkers: tuple[str, ...]
    sentence: str
    patches: Patches
    shows: Callable[[ClusterScenario], bool]
    """The scenarios in which it is likely to show."""
