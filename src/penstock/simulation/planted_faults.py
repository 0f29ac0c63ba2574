"""Bugs that only faults inside of a machine bring to light: single appends refused, failed syncs."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.simulation.disk import SimulatedFile
from penstock.simulation.planted_patches import Patch
from penstock.simulation.scenario import Scenario
from penstock.storage.disk import DiskFailedError
from penstock.storage.journal_file import FOLDER


def refuses(scenario: Scenario) -> bool:
    """Whether single appends find no room."""
    return scenario.faults.refusals_ms > 0


def fails_syncs(scenario: Scenario) -> bool:
    """Whether operations of the disk fail, and machines lose their power."""
    return scenario.faults.failing_syncs_ms > 0 and scenario.faults.crashes_ms > 0


def failed_syncs_are_done() -> Sequence[Patch]:
    """What could not be synced is acknowledged."""

    def sync(self: SimulatedFile) -> None:
        try:
            real(self)
        except DiskFailedError:
            if not self.name.startswith(FOLDER):
                raise

    real = SimulatedFile.sync
    return [(SimulatedFile, "sync", sync)]
