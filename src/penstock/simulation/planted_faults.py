"""Bugs that only faults inside of a machine bring to light: single appends refused, failed syncs."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.backend import sends
from penstock.backend.parts import NodeParts
from penstock.model.batch import Batch, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.ordering.clock_interval import ClockInterval
from penstock.queue import sending
from penstock.queue.partition import Partition
from penstock.simulation.disk import SimulatedFile
from penstock.simulation.planted_patches import Patch
from penstock.simulation.scenario import Scenario
from penstock.storage.disk import DiskFailedError
from penstock.storage.journal_file import FOLDER
from penstock.wire.messages import Send, SendResult


def refuses(scenario: Scenario) -> bool:
    """Whether single appends find no room."""
    return scenario.faults.refusals_ms > 0


def fails_syncs(scenario: Scenario) -> bool:
    """Whether operations of the disk fail, and machines lose their power."""
    return scenario.faults.failing_syncs_ms > 0 and scenario.faults.crashes_ms > 0


def busy_forgets() -> Sequence[Patch]:
    """A send is acknowledged though the journal had no room for it."""

    def take_in(
        parts: NodeParts,
        partition: Partition,
        request: Send,
        body: Buffer,
        now_ms: int,
        now: ClockInterval | None,
    ) -> SendResult:
        try:
            return real(parts, partition, request, body, now_ms, now)
        except PenstockError as error:
            if error.code != ErrorCode.OVERLOADED:
                raise
        admitted = sending.admit(
            partition, Batch(bytes(body)), request.producer, request.number, now_ms, now=now
        ).reply
        return SendResult(admitted.runs, admitted.duplicates, admitted.sent_ms)

    real = sends._take_in
    return [(sends, "_take_in", take_in)]


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
