"""Measures the longest turn of cases that once took long, in processor time of the thread, and all turns of a case together.

    python -m tests.queue.turn_times [rows] [case ...]

A turn is what a node does at once: one request, one record of upkeep, one step of a capture or of freeing. Python's collector is off
meanwhile. ADR 32 has the figures; the tests beside this file count steps instead, so that they say the same on every machine.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time

from penstock.model.batch import encode
from penstock.model.origin import Origin
from penstock.model.records import Deleted, Leased, MoveStarted, Purged, Released
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import move, settle, upkeep
from penstock.queue.decisions import send as sending
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.snapshot.capture import Capture
from penstock.queue.snapshot.taking_apart import taken_apart
from tests.queue import large_states
from tests.queue.large_states import BATCH, HOUR_MS, START_MS, Maker

ROWS = 1_000_000


class Turns:
    """The turns of one case."""

    def __init__(self) -> None:
        self.longest = self.total = 0.0
        self.count = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """What is done within is one turn."""
        began = thread_time()
        yield
        took = thread_time() - began
        self.longest, self.total, self.count = max(self.longest, took), self.total + took, self.count + 1


def write(partition: Partition, decided: list[PendingRecord] | tuple[PendingRecord, ...]) -> int:
    """Applies what was decided; says how many records that is."""
    for record, batch in decided:
        partition.apply(record, batch, 1 << 40)
    return len(decided)


def free(turns: Turns, roots: list[object]) -> None:
    """Takes tables apart."""
    steps = taken_apart(roots)
    ended = False
    while not ended:
        with turns.turn():
            ended = next(steps, turns) is turns


def capturing(make: large_states.Make) -> Callable[[Turns, int], None]:
    """Captures a state."""

    def measure(turns: Turns, rows: int) -> None:
        partition = make(rows)
        with turns.turn():
            capture = Capture(partition)
        while not capture.is_done:
            with turns.turn():
                capture.step(1)

    return measure


def freeing(make: large_states.Make) -> Callable[[Turns, int], None]:
    """Takes a state apart."""

    def measure(turns: Turns, rows: int) -> None:
        roots: list[object] = [make(rows)]
        free(turns, roots)

    return measure


def purging(make: large_states.Make) -> Callable[[Turns, int], None]:
    """Purges all messages, and frees what was there."""

    def measure(turns: Turns, rows: int) -> None:
        partition = make(rows)
        with turns.turn():
            write(partition, list(settle.purge(partition, START_MS).records))
        given_up, partition.discarded = partition.discarded, []
        free(turns, given_up)

    return measure


def purging_moves_with_groups(turns: Turns, rows: int) -> None:
    """A purge while a few messages of a queue with groups are on their way."""
    partition = large_states.strict_groups(rows)
    partition.apply(MoveStarted([(1, 5)], "elsewhere", "redrive", START_MS))
    with turns.turn():
        write(partition, [PendingRecord(Purged(partition.table.next, START_MS))])


def sweeping(turns: Turns, rows: int) -> None:
    """Sends with a time to live each, of messages that are deleted soon."""
    maker = Maker()
    for start in range(0, rows, BATCH):
        ttls = [HOUR_MS + (start + place) * 7_919_000 % (rows * 1_000) for place in range(BATCH)]
        batch = encode([b"x"] * BATCH, ttls_ms=ttls)
        with turns.turn():
            first = maker.send(batch)
        if start % (2 * BATCH):
            lease = maker.partition.leases.next
            maker.apply(Leased(lease, [(first, BATCH)], START_MS, START_MS + HOUR_MS))
            maker.apply(Deleted(lease, [(first, BATCH)], START_MS))


def leases_that_end_together(turns: Turns, rows: int) -> None:
    """Single leases with one end."""
    maker = Maker()
    for start in range(0, rows, BATCH):
        first = maker.send(encode([b"x"] * BATCH))
        for place in range(BATCH):
            number = maker.partition.leases.next
            maker.apply(Leased(number, [(first + place, 1)], START_MS, START_MS + HOUR_MS + start))
    end_leases(turns, maker.partition)


def scattered_leases_that_end_together(turns: Turns, rows: int) -> None:
    """Leases of five thousand runs each."""
    maker = Maker()
    for _ in range(rows // 5_000):
        first = maker.send(encode([b"x"] * 10_000))
        runs = [(first + place, 1) for place in range(0, 10_000, 2)]
        maker.apply(Leased(maker.partition.leases.next, runs, START_MS, START_MS + HOUR_MS))
    end_leases(turns, maker.partition)


def end_leases(turns: Turns, partition: Partition) -> None:
    """What upkeep does, record by record."""
    written = 1
    while written:
        with turns.turn():
            written = write(partition, upkeep.end_leases(partition, START_MS + 2 * HOUR_MS))
            partition.leases.next_ms()


def sending_after_a_window(turns: Turns, rows: int) -> None:
    """The first sends after the ids of a deduplication window are over."""
    partition = large_states.ids(rows)
    for number in range(100):
        with turns.turn():
            batch = encode([b"y"], deduplication_ids=[b"new %d" % number], groups=[b"g"])
            write(partition, list(sending.admit(partition, batch, 0, 0, START_MS + 2 * HOUR_MS).records))


def claiming_after_a_window(turns: Turns, rows: int) -> None:
    """The same for claims of ids."""
    from penstock.model.records import IdsClaimed

    partition = large_states.claims(rows)
    for number in range(100):
        with turns.turn():
            late_ms = START_MS + 2 * HOUR_MS
            partition.apply(IdsClaimed([b"new %d" % number], [1], 7, late_ms + 1, late_ms))


def receiving_after_attempts(turns: Turns, rows: int) -> None:
    """The first receive after attempts are over."""
    partition = large_states.attempts(rows)
    batch = encode([b"x"])
    for _ in range(10):
        first = partition.table.next
        write(partition, list(sending.admit(partition, batch, 0, 0, START_MS + 2 * HOUR_MS).records))
        with turns.turn():
            lease = partition.leases.next
            partition.apply(Leased(lease, [(first, 1)], START_MS + 2 * HOUR_MS, START_MS + 3 * HOUR_MS))


def leaving_leases(turns: Turns, rows: int) -> None:
    """Messages that are leased one by one expire."""
    partition = large_states.leases(rows)
    for start in range(1, 10_000, 1_000):
        with turns.turn():
            partition.apply(MoveStarted([(start, 500)], "elsewhere", "expired", START_MS))


def moving(turns: Turns, rows: int) -> None:
    """Every second message goes to another queue, a thousand in a turn, each as an arrival of its own."""
    source, target = large_states.moves(rows), Partition(2, "elsewhere", QueueSettings(), START_MS)
    batch = encode([b"x"])

    for _ in range(min(200, rows // 1_000)):
        with turns.turn():
            runs = next(iter(source.moves.values())).first(1_000)
            for run in runs:
                origin = Origin(1, "orders", "redrive", [run], START_MS, [1], START_MS)
                write(target, move.arrive(target, batch, origin, START_MS))
            write(source, move.finish_move(source, runs, START_MS))
            write(target, move.forget_origins(target, 1, runs, START_MS))


def arriving(turns: Turns, rows: int) -> None:
    """Scattered messages arrive while many are remembered."""
    target = large_states.origins(rows)
    batch = encode([b"x"])
    for place in range(1_000):
        run = (2 * (place * 7_919 % rows) + 2, 1)
        with turns.turn():
            origin = Origin(9, "elsewhere", "redrive", [run], START_MS, [1], START_MS)
            write(target, move.arrive(target, batch, origin, START_MS))
            write(target, move.forget_origins(target, 9, [run], START_MS))


def _fragmented() -> tuple[Partition, list[tuple[int, int]]]:
    maker = Maker()
    first = maker.send(encode([b"x"] * 10_000))
    maker.apply(Leased(1, [(first, 10_000)], START_MS, START_MS + HOUR_MS))
    runs = [(first + place, 1) for place in range(0, 10_000, 2)]
    maker.apply(Deleted(1, [(first + place, 1) for place in range(1, 10_000, 2)], START_MS))
    return maker.partition, runs


def settling(kind: str) -> Callable[[Turns, int], None]:
    """One request with five thousand receipts of one fragmented lease."""

    def measure(turns: Turns, rows: int) -> None:
        partition, runs = _fragmented()
        with turns.turn():
            for place, run in enumerate(runs):
                if kind == "delete":
                    written = settle.delete(partition, 1, [run], START_MS).records
                elif kind == "release":
                    written = settle.release(partition, 1, [run], 0, START_MS).records
                else:
                    more = place if kind == "extend each" else 0
                    written = settle.extend(partition, 1, [run], 2 * HOUR_MS + more, START_MS).records
                write(partition, list(written))

    return measure


def going_of_late_batches(turns: Turns, rows: int) -> None:
    """Late messages that go one after the other, the newest first."""
    partition = large_states.late_batches(rows)
    for number in range(100):
        with turns.turn():
            lateness = partition.sorting.lateness_of(1) if partition.sorting is not None else None
            runs = [(partition.table.next - 1 - number, 1)]
            partition.apply(MoveStarted(runs, "orders.late", "late", START_MS, lateness))
            write(partition, move.finish_move(partition, runs, START_MS))


def expiring(turns: Turns, rows: int) -> None:
    """Scattered messages whose time to live ends in one slot."""
    partition = large_states.one_slot(rows)
    run_upkeep(turns, partition, upkeep.expire)


def maturing(turns: Turns, rows: int) -> None:
    """Scattered messages whose delay ends in one slot."""
    maker = Maker()
    for _ in range(2 * rows // BATCH):
        delays = [HOUR_MS if place % 2 else 0 for place in range(BATCH)]
        maker.send(encode([b"x"] * BATCH, delays_ms=delays))
    run_upkeep(turns, maker.partition, upkeep.end_delays)


def retaining(turns: Turns, rows: int) -> None:
    """Scattered messages that are as old as they may become."""
    partition = large_states.scattered(2 * rows)
    partition.apply(Released(10**9, [], "released", START_MS, START_MS))
    run_upkeep(turns, partition, upkeep.retain, START_MS + partition.settings.retention_ms + HOUR_MS)


def run_upkeep(
    turns: Turns,
    partition: Partition,
    decide: Callable[[Partition, int], list[PendingRecord]],
    now_ms: int = START_MS + 2 * HOUR_MS,
) -> None:
    """One kind of upkeep until nothing is left."""
    written = 1
    while written:
        with turns.turn():
            written = write(partition, decide(partition, now_ms))


CASES: dict[str, Callable[[Turns, int], None]] = {
    "free a clock window": freeing(large_states.clock_window),
    "free a session": freeing(large_states.one_session),
    "purge a clock window": purging(large_states.clock_window),
    "purge a session": purging(large_states.one_session),
    "purge scattered moves": purging(large_states.moves),
    "purge groups with moves": purging_moves_with_groups,
    "purge leases": purging(large_states.leases),
    "purge late batches": purging(large_states.late_batches),
    "capture a session": capturing(large_states.one_session),
    "capture a clock window": capturing(large_states.clock_window),
    "capture moves": capturing(large_states.moves),
    "capture timers": capturing(large_states.timers),
    "sweep timers": sweeping,
    "end leases together": leases_that_end_together,
    "end scattered leases together": scattered_leases_that_end_together,
    "send after a window of ids": sending_after_a_window,
    "claim after a window of claims": claiming_after_a_window,
    "receive after attempts": receiving_after_attempts,
    "take messages out of leases": leaving_leases,
    "move scattered messages": moving,
    "take scattered messages in": arriving,
    "delete 5,000 receipts": settling("delete"),
    "release 5,000 receipts": settling("release"),
    "extend 5,000 receipts": settling("extend"),
    "extend 5,000 receipts apart": settling("extend each"),
    "move late batches": going_of_late_batches,
    "expire a slot": expiring,
    "mature a slot": maturing,
    "retain scattered": retaining,
}


def main(arguments: list[str]) -> None:
    """Prints a row for each case."""
    rows = int(arguments[0]) if arguments and arguments[0].isdigit() else ROWS
    wanted = [argument for argument in arguments if not argument.isdigit()]
    for name, measure in CASES.items():
        if wanted and not any(part in name for part in wanted):
            continue
        turns = Turns()
        gc.collect()
        gc.disable()
        measure(turns, rows)
        gc.enable()
        print(
            f"{name:34} longest {turns.longest * 1000:9.1f} ms   all {turns.total:8.2f} s   {turns.count:7} turns",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
