"""Bugs that only faults inside of a machine bring to light: single appends refused, failed syncs, misplaced writes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.backend import bodies, sends
from penstock.backend.bodies import BodyReader, ColdReadError
from penstock.backend.logbook import Logbook
from penstock.backend.parts import NodeParts
from penstock.model.batch import Batch, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import Runs
from penstock.ordering.clock_interval import ClockInterval
from penstock.queue import sending
from penstock.queue.decision import Written
from penstock.queue.partition import Partition
from penstock.queue.receiving import stored_runs
from penstock.simulation.disk import SimulatedFile
from penstock.simulation.planted_patches import Patch
from penstock.simulation.scenario import Scenario
from penstock.storage.disk import DiskFailedError, WouldBlockError
from penstock.storage.journal_file import FOLDER
from penstock.storage.reader import RawEntry, Reader, Stored
from penstock.wire.messages import DeliveredBatch, Send, SendResult


def refuses(scenario: Scenario) -> bool:
    """Whether single appends find no room."""
    return scenario.faults.refusals_ms > 0


def fails_syncs(scenario: Scenario) -> bool:
    """Whether operations of the disk fail, and machines lose their power."""
    return scenario.faults.failing_syncs_ms > 0 and scenario.faults.crashes_ms > 0


def misplaces(scenario: Scenario) -> bool:
    """Whether something is written to the wrong place, and read from the disk again."""
    return scenario.faults.misplaced_ms > 0 and scenario.cold_reads > 0


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


def refused_in_part() -> Sequence[Patch]:
    """Nobody looks whether all records of a decision find room before the first is written."""

    def check_room(self: Logbook, partition: Partition, decided: Sequence[Written]) -> None:
        return None

    return [(Logbook, "check_room", check_room)]


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


def misplaced_are_believed() -> Sequence[Patch]:
    """Whatever whole batch is read is taken for the one that was asked for."""

    def decode(self: Reader, partition: int, position: int, entry: RawEntry) -> Stored:
        return real(self, entry.header.partition, position, entry)

    def hand_out(
        self: BodyReader, partition: Partition, runs: Runs, at_ms: int, *, block: bool = False
    ) -> tuple[list[DeliveredBatch], list[Buffer]]:
        heads: list[DeliveredBatch] = []
        body: list[Buffer] = []
        cold: list[int] = []
        for position, first, messages in stored_runs(partition, runs):
            try:
                sent, batch = self._store.hand_out(
                    partition.queue_id, position, first + messages, block=block
                )
            except WouldBlockError:
                cold.append(position)
                continue
            if first < sent.first or first + messages > sent.first + sent.count:
                if sent.count < messages:
                    raise bodies._another_batch(position)
                sent = msgspec.structs.replace(sent, first=first)
            heads.append(bodies._add(body, partition.table, first, messages, sent, batch, at_ms))
        if cold:
            raise ColdReadError(cold)
        return heads, body

    real = Reader._decode
    return [(Reader, "_decode", decode), (BodyReader, "hand_out", hand_out)]
