"""A turn does no more however large a partition is. What is counted is lines of Python that run, and functions that are called, not time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from penstock.model.batch import encode
from penstock.model.origin import Origin
from penstock.model.records import Deleted, Leased, MoveStarted, Purged, Released
from penstock.model.runs import Run
from penstock.queue.decisions import move, settle, upkeep
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from tests.queue import large_states
from tests.queue.large_states import BATCH, HOUR_MS, START_MS, Maker

FEW, MANY = 2_000, 16_000
"""Rows of a small and of a large partition: what a turn does in both may not differ by much."""


@contextmanager
def steps() -> Iterator[list[int]]:
    """Counts the lines that run within, each turn of a loop anew, and the functions that are called."""
    counted = [0]

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        counted[0] += 1
        return trace

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call":
            counted[0] += 1

    before = sys.gettrace()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        yield counted
    finally:
        sys.setprofile(None)
        sys.settrace(before)


def write(partition: Partition, decided: Sequence[PendingRecord]) -> int:
    """Applies what was decided; says how many records that is."""
    for record, batch in decided:
        partition.apply(record, batch, 1 << 40)
    return len(decided)


def fragmented(rows: int) -> tuple[Partition, list[Run]]:
    """A lease of which every second message is gone."""
    maker = Maker()
    first = maker.send(encode([b"x"] * 2 * rows))
    maker.apply(Leased(1, [(first, 2 * rows)], START_MS, START_MS + HOUR_MS))
    maker.apply(Deleted(1, [(first + place, 1) for place in range(1, 2 * rows, 2)], START_MS))
    return maker.partition, [(first + place, 1) for place in range(0, 2 * rows, 2)]


def _delete(partition: Partition, run: Run, place: int) -> Sequence[PendingRecord]:
    return settle.delete(partition, 1, [run], START_MS).records


def _release(partition: Partition, run: Run, place: int) -> Sequence[PendingRecord]:
    return settle.release(partition, 1, [run], 0, START_MS).records


def _extend(partition: Partition, run: Run, place: int) -> Sequence[PendingRecord]:
    return settle.extend(partition, 1, [run], 2 * HOUR_MS, START_MS).records


def _extend_apart(partition: Partition, run: Run, place: int) -> Sequence[PendingRecord]:
    return settle.extend(partition, 1, [run], 2 * HOUR_MS + place, START_MS).records


@pytest.mark.parametrize("decide", [_delete, _release, _extend, _extend_apart])
def test_a_receipt_of_a_fragmented_lease_costs_the_same_whatever_the_lease_holds(
    decide: Callable[[Partition, Run, int], Sequence[PendingRecord]],
) -> None:
    most = []
    for rows in (FEW // 4, MANY // 4):
        partition, runs = fragmented(rows)
        write(partition, decide(partition, runs[0], 0))
        counts = []
        for place, run in enumerate(runs[rows // 2 : rows // 2 + 50], 1):
            with steps() as counted:
                write(partition, decide(partition, run, place))
            counts.append(counted[0])
        most.append(max(counts))
    assert most[1] <= most[0] + 50


def test_messages_leave_their_leases_without_a_look_at_the_others() -> None:
    most = []
    for rows in (FEW, MANY):
        partition = large_states.leases(rows)
        with steps() as counted:
            partition.apply(MoveStarted([(rows // 2, 10)], "elsewhere", "expired", START_MS))
        most.append(counted[0])
        assert sum(len(lease) for _, lease in partition.leases) == rows - 10
    assert most[1] <= most[0] + 50


def test_ends_of_leases_that_are_over_are_swept_out_in_steps() -> None:
    most = []
    for rows in (FEW, MANY):
        partition = large_states.leases(rows)
        first, counts = partition.table.next, []
        for place in range(2 * rows):
            lease = partition.leases.next
            write(partition, [])
            partition.leases.add(lease, [(first + place, 1)], START_MS, START_MS + HOUR_MS)
            partition.leases.remove(lease, [(first + place, 1)])
            if place % 50 == 0 or partition.leases._before:
                with steps() as counted:
                    partition.leases.add(lease + 1, [(first + place, 1)], START_MS, START_MS + HOUR_MS)
                    partition.leases.remove(lease + 1, [(first + place, 1)])
                counts.append(counted[0])
        most.append(max(counts))
        assert len(partition.leases._heap) + len(partition.leases._before) <= 3 * rows + 8_192
    assert most[1] <= most[0] + 100


def test_a_message_that_moves_costs_the_same_however_many_are_on_their_way() -> None:
    most = []
    batch = encode([b"x"])
    for rows in (FEW, MANY):
        source, target = large_states.moves(rows), large_states.origins(rows)
        counts = []
        for place in range(0, rows, rows // 20):
            run = (2 * place + 1, 1)
            arriving = (2 * place + 2, 1)
            with steps() as counted:
                origin = Origin(9, "elsewhere", "redrive", [arriving], START_MS, [1], START_MS)
                write(target, move.arrive(target, batch, origin, START_MS))
                write(source, move.finish_move(source, [run], START_MS))
                write(target, move.forget_origins(target, 9, [arriving], START_MS))
            counts.append(counted[0])
        most.append(max(counts))
        assert sum(count for runs in source.moves.values() for _, count in runs) == rows - 20
    assert most[1] <= most[0] + 100


def test_a_purge_beside_messages_on_their_way_goes_through_columns() -> None:
    partition = large_states.moves(MANY)
    with steps() as counted:
        partition.apply(Purged(partition.table.next, START_MS))
    assert partition.table.messages == MANY
    assert counted[0] <= 3_000


def test_leases_that_end_together_come_back_in_steps() -> None:
    maker = Maker()
    for _ in range(20):
        first = maker.send(encode([b"x"] * BATCH))
        runs = [(first + place, 1) for place in range(0, BATCH, 2)]
        maker.apply(Leased(maker.partition.leases.next, runs, START_MS, START_MS + HOUR_MS))
    partition, turns, written = maker.partition, 0, 1
    while written:
        with steps() as counted:
            decided = upkeep.end_leases(partition, START_MS + HOUR_MS)
            written = write(partition, decided)
        assert counted[0] <= 250_000
        records = [record for record, _ in decided]
        assert sum(len(record.runs) for record in records if isinstance(record, Released)) <= 2_000
        turns += 1
    assert turns == 6
    assert not list(partition.leases)
