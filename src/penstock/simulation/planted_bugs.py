"""Bugs to plant: each breaks one promise on purpose, and the checker it names must notice. That proves the checker.

They are patches, put on for the length of a run and taken off again; the product knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from typing import Any, NamedTuple

from penstock.backend import moves, opening, traffic
from penstock.backend.logbook import Logbook
from penstock.backend.node import Node
from penstock.backend.outbox import Outbox
from penstock.backend.parts import NodeParts
from penstock.backend.waiting import WaitingRoom
from penstock.model.batch import Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import Deleted, MoveFinished, decode_record
from penstock.model.runs import Runs, count_of
from penstock.queue import moving, sending, settling, states
from penstock.queue.decision import Outcome, Written
from penstock.queue.deduplication import ProducerTable
from penstock.queue.groups import FifoGroups
from penstock.queue.leases import LeaseTable
from penstock.queue.partition import Partition
from penstock.queue.receipts import ReceiptSeal
from penstock.queue.timers import SlotTimers
from penstock.simulation.scenario import Scenario
from penstock.storage import reader, scan
from penstock.storage.copy import SegmentWriter
from penstock.storage.flush import Flush
from penstock.storage.recovery import Entry
from penstock.wire.messages import Send, SendResult

Patch = tuple[Any, str, Any]


class PlantedBug(NamedTuple):
    """A bug, the checker that must notice it, and the scenarios in which it can show."""

    checker: str
    sentence: str
    patches: Callable[[], Sequence[Patch]]
    shows: Callable[[Scenario], bool]


def planted(name: str | None) -> AbstractContextManager[None]:
    """With the bug of that name inside; None: without any."""
    if name is not None and name not in BUGS:
        raise ValueError(f"there is no planted bug {name!r}")
    return _patched(BUGS[name].patches() if name is not None else ())


@contextmanager
def _patched(patches: Sequence[Patch]) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, attribute, replacement in patches:
            stack.callback(setattr, owner, attribute, getattr(owner, attribute))
            setattr(owner, attribute, replacement)
        yield


# -- the disk ------------------------------------------------------------------------------------------------


def _acknowledge_before_flush() -> Sequence[Patch]:
    def committed(self: Outbox, position: int, connections: Any) -> None:
        real(self, 2**64, connections)

    def take_output(self: Node) -> Any:
        self._parts.outbox.committed(0, self._connections)
        return take(self)

    real, take = Outbox.committed, Node.take_output
    return [(Outbox, "committed", committed), (Node, "take_output", take_output)]


def _skip_sync() -> Sequence[Patch]:
    def initialise(self: Flush, *arguments: Any, sync: bool) -> None:
        real(self, *arguments, sync=False)

    real = Flush.__init__
    return [(Flush, "__init__", initialise)]


def _copies_not_synced() -> Sequence[Patch]:
    def finish(self: SegmentWriter) -> None:
        self.write()

    return [(SegmentWriter, "finish", finish)]


def _checksums_not_verified() -> Sequence[Patch]:
    def whole(*arguments: object) -> bool:
        return True

    return [(reader, "payload_is_whole", whole), (scan, "payload_is_whole", whole)]


def _full_disk_forgets() -> Sequence[Patch]:
    def send(parts: NodeParts, request: Send, body: memoryview, now_ms: int) -> SendResult:
        try:
            return real(parts, request, body, now_ms)
        except PenstockError as error:
            if error.code != ErrorCode.DISK_FULL:
                raise
        partition = parts.catalogue.usable(request.queue_id)
        admitted = sending.admit(
            partition, Batch(bytes(body)), request.producer, request.number, now_ms
        ).reply
        return SendResult(admitted.runs, admitted.duplicates, admitted.sent_ms)

    real = traffic.send
    return [(traffic, "send", send)]


def _full_disk_refuses_deletes() -> Sequence[Patch]:
    def write(self: Logbook, partition: Partition, decided: Sequence[Written]) -> None:
        self.check_room_for_send()
        real(self, partition, decided)

    real = Logbook.write
    return [(Logbook, "write", write)]


def _never_congested() -> Sequence[Patch]:
    def congested(self: Node) -> bool:
        return False

    return [(Node, "congested", congested)]


# -- recovery ------------------------------------------------------------------------------------------------


def _after_recovery(change: Callable[[Partition], None]) -> Sequence[Patch]:
    def forget_finished_origins(parts: NodeParts, now_ms: int) -> None:
        for partition in parts.catalogue.partitions.values():
            change(partition)
        real(parts, now_ms)

    real = moves.forget_finished_origins
    return [(opening, "forget_finished_origins", forget_finished_origins)]


def _forget_leases(partition: Partition) -> None:
    runs = [run for lease in partition.leases.leases.values() for run in lease.runs()]
    partition.leases.clear()
    partition._ready(runs)


def _forget_producers(partition: Partition) -> None:
    partition.producers = ProducerTable()


def _reset_receive_counts(partition: Partition) -> None:
    for chunk in partition.table.chunks.values():
        chunk.attempts = None


def _skip_on_replay(kind: type[Deleted | MoveFinished]) -> Sequence[Patch]:
    def replay(parts: NodeParts, entry: Entry) -> None:
        partition = parts.catalogue.partitions.get(entry.partition)
        if partition is not None and isinstance(decode_record(entry.head), kind):
            partition.index += 1
            return
        real(parts, entry)

    real = opening._replay
    return [(opening, "_replay", replay)]


# -- the engine ----------------------------------------------------------------------------------------------


def _delays_end_early() -> Sequence[Patch]:
    def add(self: SlotTimers, due_ms: int, run: tuple[int, int]) -> None:
        real(self, due_ms - 400, run)

    real = SlotTimers.add
    return [(SlotTimers, "add", add)]


def _stale_receipts_work() -> Sequence[Patch]:
    def held(partition: Partition, number: int, runs: Runs) -> tuple[Runs, Outcome]:
        found = [
            run
            for first, count in runs
            for run in partition.table.runs_in(states.RUNS_IN[states.LEASED], first, first + count, count)
        ]
        if found:
            partition.leases.remove_anywhere(found)
            return found, Outcome(count_of(found), 0, [])
        return real(partition, number, runs)

    real = settling._held
    return [(settling, "_held", held)]


def _fifo_passes_leased() -> Sequence[Patch]:
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


def _nobody_is_woken() -> Sequence[Patch]:
    def wake(self: WaitingRoom, queue_id: int) -> None:
        pass

    return [(WaitingRoom, "wake", wake)]


def _departs_before_arrival() -> Sequence[Patch]:
    """A move is finished at the source at once; the arrival follows some turns later, if there are any."""
    arriving: list[Callable[[], None]] = []
    turns = count(1)

    def move(parts: NodeParts, source: Partition, target: str, reason: Any, runs: Runs, now_ms: int) -> None:
        partition = parts.catalogue.named(target)
        if partition is None or partition is source or partition.queue_id in parts.catalogue.damage:
            real(parts, source, target, reason, runs, now_ms)
            return
        pieces = parts.bodies.slices(source, runs, block=True)
        origins = [moves._origin(source, source.name, reason, piece, now_ms) for piece in pieces]
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


def _moves_do_not_arrive() -> Sequence[Patch]:
    def arrive(*arguments: object) -> list[Written]:
        return []

    return [(moving, "arrive", arrive)]


def _receives_without_limit() -> Sequence[Patch]:
    def received_at_least(*arguments: object) -> Runs:
        return []

    return [(settling, "_received_at_least", received_at_least)]


def _leases_never_end() -> Sequence[Patch]:
    def next_ms(self: LeaseTable) -> None:
        return None

    return [(LeaseTable, "next_ms", next_ms)]


def _forged_receipts_work() -> Sequence[Patch]:
    def open_token(self: ReceiptSeal, token: bytes) -> tuple[int, int]:
        return int.from_bytes(token[:8], "little"), int.from_bytes(token[8:16], "little")

    return [(ReceiptSeal, "open", open_token)]


def _release_delay_ignored() -> Sequence[Patch]:
    def release(partition: Partition, lease: int, runs: Runs, delay_ms: int, now_ms: int) -> Any:
        return real(partition, lease, runs, 0, now_ms)

    real = settling.release
    return [(settling, "release", release)]


# -- all of them ---------------------------------------------------------------------------------------------


def _always(scenario: Scenario) -> bool:
    return True


def _dead_letters(scenario: Scenario) -> bool:
    return any(queue.settings.max_receives is not None for queue in scenario.queues)


def _crashes(scenario: Scenario) -> bool:
    return scenario.faults.crashes_ms > 0


def _with_queue(*names: str) -> Callable[[Scenario], bool]:
    return lambda scenario: _crashes(scenario) and any(queue.name in names for queue in scenario.queues)


BUGS: dict[str, PlantedBug] = {
    "acknowledge-before-flush": PlantedBug(
        "I1", "answers leave before what they promise is on disk", _acknowledge_before_flush, _crashes
    ),
    "skip-sync": PlantedBug("I1", "the journal is written and never synced", _skip_sync, _crashes),
    "full-disk-forgets": PlantedBug(
        "I1",
        "on a full disk a send is acknowledged and not stored",
        _full_disk_forgets,
        lambda scenario: scenario.faults.full_disk_ms > 0,
    ),
    "replay-skips-deletes": PlantedBug(
        "I2",
        "what was deleted since the last snapshot is back after a crash",
        lambda: _skip_on_replay(Deleted),
        _crashes,
    ),
    "restart-forgets-ids": PlantedBug(
        "I3",
        "a restart forgets deduplication ids",
        lambda: _after_recovery(lambda partition: partition.window.clear()),
        _with_queue("deduplication"),
    ),
    "restart-forgets-producers": PlantedBug(
        "I3",
        "a restart forgets which batches of which producer are stored",
        lambda: _after_recovery(_forget_producers),
        _crashes,
    ),
    "restart-forgets-leases": PlantedBug(
        "I4", "a restart makes leased messages ready", lambda: _after_recovery(_forget_leases), _crashes
    ),
    "stale-receipts-work": PlantedBug(
        "I4", "any receipt settles whatever is leased", _stale_receipts_work, _crashes
    ),
    "forged-receipts-work": PlantedBug(
        "I4", "a receipt is believed whoever made it", _forged_receipts_work, _always
    ),
    "restart-resets-counts": PlantedBug(
        "I5", "a restart resets receive counts", lambda: _after_recovery(_reset_receive_counts), _crashes
    ),
    "nobody-is-woken": PlantedBug(
        "I5",
        "waiting receivers are not told that something is ready",
        _nobody_is_woken,
        lambda scenario: not scenario.cold_reads,
    ),
    "leases-never-end": PlantedBug(
        "I5", "what a dead consumer held never comes back", _leases_never_end, _always
    ),
    "moves-do-not-arrive": PlantedBug(
        "I6",
        "a message leaves for its dead-letter queue and is not stored there",
        _moves_do_not_arrive,
        _dead_letters,
    ),
    "departure-before-arrival": PlantedBug(
        "I6",
        "a moved message leaves its queue some turns before it is in the other",
        _departs_before_arrival,
        lambda scenario: _crashes(scenario) and _dead_letters(scenario),
    ),
    "restart-repeats-moves": PlantedBug(
        "I6",
        "a restart forgets which moves were finished and makes them again",
        lambda: _skip_on_replay(MoveFinished),
        lambda scenario: _crashes(scenario) and _dead_letters(scenario),
    ),
    "receives-without-limit": PlantedBug(
        "I6", "a message is received more often than its queue allows", _receives_without_limit, _dead_letters
    ),
    "release-delay-ignored": PlantedBug(
        "I7", "what was released for later is ready at once", _release_delay_ignored, _always
    ),
    "delays-end-early": PlantedBug(
        "I7", "delays end 400 ms too early", _delays_end_early, _with_queue("delays", "everything")
    ),
    "restart-forgets-expiries": PlantedBug(
        "I7",
        "a restart forgets times to live",
        lambda: _after_recovery(lambda partition: partition.expiries.clear()),
        _with_queue("ttl"),
    ),
    "checksums-not-verified": PlantedBug(
        "I10",
        "damaged bytes are taken for good ones",
        _checksums_not_verified,
        lambda scenario: scenario.faults.bit_flips_ms > 0,
    ),
    "copies-not-synced": PlantedBug(
        "I10", "messages are copied to a segment that is not synced", _copies_not_synced, _crashes
    ),
    "full-disk-refuses-deletes": PlantedBug(
        "I13",
        "on a full disk deletes are refused like sends",
        _full_disk_refuses_deletes,
        lambda scenario: scenario.faults.full_disk_ms > 0,
    ),
    "never-congested": PlantedBug(
        "I13",
        "requests are taken in however much waits for the disk",
        _never_congested,
        lambda scenario: scenario.flood and scenario.faults.stalls_ms > 0,
    ),
    "fifo-overtakes": PlantedBug(
        "fifo", "a group goes on while its first message is out", _fifo_passes_leased, _with_queue("fifo")
    ),
}
