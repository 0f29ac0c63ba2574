"""What each planted bug breaks: functions that give the patches to put on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from penstock.backend.node import opening
from penstock.backend.node.logbook import Logbook
from penstock.backend.node.node import Node
from penstock.backend.node.outbox import Outbox
from penstock.backend.node.parts import NodeParts
from penstock.backend.receive.waiting import WaitingRoom
from penstock.backend.send import moves, sends
from penstock.model.batch import Batch, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.move_target import MoveTarget
from penstock.model.origin import Origin
from penstock.model.records import Deleted, MoveFinished, decode_record
from penstock.model.runs import Runs, count_of
from penstock.ordering.clock_interval import ClockInterval
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import Outcome, PendingRecord
from penstock.queue.decisions.receipts import ReceiptSeal
from penstock.queue.partition import Partition
from penstock.queue.ready.groups import FifoGroups
from penstock.queue.state import states
from penstock.queue.state.leases import LeaseTable
from penstock.queue.state.producers import ProducerTable
from penstock.queue.state.timers import SlotTimers
from penstock.storage.copy import SegmentWriter
from penstock.storage.flush import Flush
from penstock.storage.recovery import Entry
from penstock.wire.messages import Send, SendResult

Patch = tuple[Any, str, Any]
"""(owner, attribute, what to put there)."""


# -- the disk ------------------------------------------------------------------------------------------------


def acknowledge_before_flush() -> Sequence[Patch]:
    def committed(self: Outbox, position: int, connections: Any) -> None:
        real(self, 2**64, connections)

    def take_output(self: Node) -> Any:
        self._parts.outbox.committed(0, self._connections)
        return take(self)

    real, take = Outbox.committed, Node.take_output
    return [(Outbox, "committed", committed), (Node, "take_output", take_output)]


def skip_sync() -> Sequence[Patch]:
    def initialise(self: Flush, *arguments: Any, sync: bool) -> None:
        real(self, *arguments, sync=False)

    real = Flush.__init__
    return [(Flush, "__init__", initialise)]


def copies_not_synced() -> Sequence[Patch]:
    def finish(self: SegmentWriter) -> None:
        self.write()

    return [(SegmentWriter, "finish", finish)]


def refused_sends_are_acknowledged(code: ErrorCode) -> Sequence[Patch]:
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
            if error.code != code:
                raise
        admitted = sending.admit(
            partition, Batch(bytes(body)), request.producer, request.number, now_ms, now=now
        ).reply
        return SendResult(admitted.runs, admitted.duplicates, admitted.sent_ms)

    real = sends._take_in
    return [(sends, "_take_in", take_in)]


def full_disk_refuses_deletes() -> Sequence[Patch]:
    def write(self: Logbook, partition: Partition, decided: Sequence[PendingRecord]) -> None:
        self.check_room_for_send()
        real(self, partition, decided)

    real = Logbook.write
    return [(Logbook, "write", write)]


def never_congested() -> Sequence[Patch]:
    def congested(self: Node) -> bool:
        return False

    return [(Node, "congested", congested)]


# -- recovery ------------------------------------------------------------------------------------------------


def after_recovery(change: Callable[[Partition], None]) -> Sequence[Patch]:
    def forget_finished_origins(parts: NodeParts, now_ms: int) -> None:
        for partition in parts.catalogue.partitions.values():
            change(partition)
        real(parts, now_ms)

    real = moves.forget_finished_origins
    return [(opening, "forget_finished_origins", forget_finished_origins)]


def forget_leases(partition: Partition) -> None:
    runs = [run for _, lease in partition.leases for run in lease.runs()]
    partition.leases.clear()
    partition._ready(runs)


def forget_ids(partition: Partition) -> None:
    """A partition that knows no deduplication ids any more."""
    partition.window.clear(0)


def forget_producers(partition: Partition) -> None:
    partition.producers = ProducerTable()


def reset_receive_counts(partition: Partition) -> None:
    for chunk in partition.table.chunks.values():
        chunk.attempts = None


def skip_on_replay(kind: type[Deleted | MoveFinished]) -> Sequence[Patch]:
    def replay(parts: NodeParts, entry: Entry, made: dict[int, int]) -> None:
        partition = parts.catalogue.partitions.get(entry.partition)
        if partition is not None and isinstance(decode_record(entry.head), kind):
            partition.index += 1
            return
        real(parts, entry, made)

    real = opening._replay
    return [(opening, "_replay", replay)]


# -- the engine ----------------------------------------------------------------------------------------------


def delays_end_early() -> Sequence[Patch]:
    def add(self: SlotTimers, due_ms: int, run: tuple[int, int]) -> None:
        real(self, due_ms - 400, run)

    real = SlotTimers.add
    return [(SlotTimers, "add", add)]


def stale_receipts_work() -> Sequence[Patch]:
    def held(partition: Partition, number: int, runs: Runs) -> tuple[Runs, Outcome]:
        found = [
            run
            for first, count in runs
            for run in partition.table.runs_in(states.RUNS_IN[states.LEASED], first, first + count, count)
        ]
        if found:
            partition.leases.remove_from(partition.table.leases_of(found))
            return found, Outcome(count_of(found), 0, [])
        return real(partition, number, runs)

    real = settling._held
    return [(settling, "_held", held)]


def late_deletes_ignore_the_count() -> Sequence[Patch]:
    def not_received_since(partition: Partition, runs: Runs, received: int) -> Runs:
        return partition.table.among(states.RUNS_WAITING, runs)

    return [(settling, "_not_received_since", not_received_since)]


def fifo_passes_leased() -> Sequence[Patch]:
    def check(self: FifoGroups, numbers: Any) -> None:
        for number in numbers:
            group = self._groups.get(number)
            if group is not None and not group.queued:
                group.queued = True
                self._turns.append(number)

    def take_prefix(self: FifoGroups, group: Any, budget: Any, runs: Runs) -> bool:
        taken = False
        for sequence in group.sequences:
            state = self._table.state(sequence) & states.STATE_BITS
            if state == states.READY and not budget.spent() and budget.take_one(1):
                runs.append((sequence, 1))
                taken = True
        return taken

    return [(FifoGroups, "_check", check), (FifoGroups, "_take_prefix", take_prefix)]


def nobody_is_woken() -> Sequence[Patch]:
    def wake(self: WaitingRoom, partition_id: int) -> None:
        pass

    return [(WaitingRoom, "wake", wake)]


def departs_before_arrival() -> Sequence[Patch]:
    """A move is finished at the source at once; the arrival follows some turns later, if there are any."""
    arriving: list[Callable[[], None]] = []
    turns = count(1)

    def move(
        parts: NodeParts, source: Partition, aim: MoveTarget, reason: Any, runs: Runs, now_ms: int
    ) -> None:
        partition = parts.catalogue.named(aim.name)
        if partition is None or partition is source or partition.partition_id in parts.catalogue.damage:
            real(parts, source, aim, reason, runs, now_ms)
            return
        pieces = list(parts.bodies.each(source, runs))
        origins = [moves.origin_of(source, source.name, reason, piece, now_ms) for piece in pieces]
        parts.write(source, moving.finish_move(source, runs, now_ms))

        def arrive() -> None:
            for piece, origin in zip(pieces, origins, strict=True):
                parts.write(partition, moving.arrive(partition, piece.batch_alone(), origin, now_ms))

        arriving.append(arrive)

    def move_some(self: Node) -> None:
        while arriving and next(turns) % 50 == 0:
            arriving.pop(0)()
        real_step(self)

    def initialise(self: Node, *arguments: Any) -> None:
        arriving.clear()
        real_start(self, *arguments)

    real, real_step, real_start = moves._move, Node._move, Node.__init__
    return [(moves, "_move", move), (Node, "_move", move_some), (Node, "__init__", initialise)]


def moves_do_not_arrive() -> Sequence[Patch]:
    def arrive(*arguments: object) -> list[PendingRecord]:
        return []

    return [(moving, "arrive", arrive)]


def moves_forget_the_first_home() -> Sequence[Patch]:
    def first_homes(self: Origin) -> list[tuple[int, int]]:
        return [(self.source_id, s) for first, count in self.runs for s in range(first, first + count)]

    return [(Origin, "first_homes", first_homes)]


def receives_without_limit() -> Sequence[Patch]:
    def received_at_least(*arguments: object) -> Runs:
        return []

    return [(settling, "_received_at_least", received_at_least)]


def leases_never_end() -> Sequence[Patch]:
    def next_ms(self: LeaseTable) -> None:
        return None

    return [(LeaseTable, "next_ms", next_ms)]


def forged_receipts_work() -> Sequence[Patch]:
    def open_token(self: ReceiptSeal, token: bytes) -> tuple[int, int]:
        return int.from_bytes(token[:8], "little"), int.from_bytes(token[8:16], "little")

    return [(ReceiptSeal, "open", open_token)]


def release_delay_ignored() -> Sequence[Patch]:
    def release(
        partition: Partition,
        lease: int,
        runs: Runs,
        delay_ms: int,
        now_ms: int,
        received: int | None,
        *,
        may_move: bool,
        unreceived: bool,
        error: str,
    ) -> Any:
        return real(
            partition, lease, runs, 0, now_ms, received, may_move=may_move, unreceived=unreceived, error=error
        )

    real = settling.release
    return [(settling, "release", release)]
