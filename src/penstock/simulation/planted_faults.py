"""Bugs that only faults inside of a machine, and stalled connections, bring to light; `planted_bugs` names them too."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.errors import ErrorCode
from penstock.simulation import planted_sectors, planted_stalls
from penstock.simulation.disk import SimulatedFile
from penstock.simulation.planted_bug import PlantedBug
from penstock.simulation.planted_patches import Patch, refused_sends_are_acknowledged
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


FAULT_BUGS: dict[str, PlantedBug] = {
    "busy-forgets": PlantedBug(
        "I1",
        "a send that the journal has no room for now is acknowledged and not stored",
        lambda: refused_sends_are_acknowledged(ErrorCode.OVERLOADED),
        refuses,
    ),
    "failed-syncs-are-done": PlantedBug(
        "I10",
        "what could not be synced is acknowledged",
        failed_syncs_are_done,
        fails_syncs,
    ),
    "another-batch-will-do": PlantedBug(
        "I10",
        "consumers get the batch that lies where theirs should be, whichever it is",
        planted_sectors.another_batch_will_do,
        planted_sectors.hunts_sectors("misdirected"),
    ),
    "former-lives-end-the-journal": PlantedBug(
        "ledger",
        "a journal file that begins with an entry of its former life is not replayed",
        planted_sectors.former_lives_end_the_journal,
        planted_sectors.hunts_sectors("stale"),
    ),
    "unreadable-sectors-end-a-file": PlantedBug(
        "ledger",
        "a start takes the first sector that cannot be read for the end of the journal",
        planted_sectors.unreadable_sectors_end_a_file,
        planted_sectors.hunts_sectors("unreadable"),
    ),
    "older-connections-know-less": PlantedBug(
        "I3",
        "a batch that was sent again over a later connection is stored once more when it arrives over the first one",
        planted_stalls.older_connections_know_less,
        planted_stalls.stalls,
    ),
}
