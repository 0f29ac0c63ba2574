"""A turn does no more however large a partition is. What is counted is lines of Python that run, and functions that are called, not time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from penstock.model.batch import encode
from penstock.model.origin import Lateness, Origin
from penstock.model.records import Deleted, Dropped, IdsClaimed, Leased, MoveStarted, Purged, Released, Sent
from penstock.model.runs import Run, normalized
from penstock.ordering.clock_interval import ClockInterval
from penstock.queue.decisions import move, settle, upkeep
from penstock.queue.decisions.budget import Budget
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.state import states
from penstock.queue.state.sent_times import SentTimes
from penstock.queue.state.timers import SlotTimers, Swept
from tests.queue import large_states, recount
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
            if place % 50 == 0 or partition.leases._ends._before:
                with steps() as counted:
                    partition.leases.add(lease + 1, [(first + place, 1)], START_MS, START_MS + HOUR_MS)
                    partition.leases.remove(lease + 1, [(first + place, 1)])
                counts.append(counted[0])
        most.append(max(counts))
        assert len(partition.leases._ends) <= 3 * rows + 8_192
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


@pytest.mark.parametrize("late_ms", [0, 2 * HOUR_MS])
def test_timers_are_swept_page_by_page(late_ms: int) -> None:
    """Of messages that are gone before their time, and of such that live."""
    most = []
    for rows in (FEW, MANY):
        partition = large_states.distant_timers(rows)
        partition.expiries.swept = Swept()
        counts = []
        for _ in range(40):
            batch = encode([b"x"] * 200, ttls_ms=[HOUR_MS + 7_919 * place for place in range(200)])
            first = partition.table.next
            with steps() as counted:
                partition.apply(Sent(first, 200, START_MS, 0, 0, 0, 0), batch, 1 << 40)
            counts.append(counted[0])
            if late_ms:
                write(partition, [PendingRecord(Dropped([(first, 200)], START_MS))])
        most.append(max(counts))
    assert most[1] <= 2 * most[0]


def test_a_slot_with_many_timers_is_swept_in_parts() -> None:
    partition = large_states.one_slot(MANY)
    partition.apply(
        Dropped(partition.table.runs_in(states.RUNS_LIVING, 1, partition.table.next, 2 * MANY), START_MS)
    )
    for slot in range(512):  # so that there are enough slots to sweep at all
        partition.expiries.add(slot * 10, (slot, 1))
    before, turns = sum(len(runs) for _, runs in partition.expiries), 0
    while any(slot > START_MS for slot, _ in partition.expiries) and turns < 2_000:
        partition.expiries.swept = partition.expiries.swept._replace(left=0)
        for slot in range(512):
            partition.expiries.add(slot * 10, (slot, 1))
        with steps() as counted:
            partition.expiries.sweep(partition.table.is_alive)
        assert counted[0] <= 50 * BATCH
        turns += 1
    assert before > MANY
    assert turns < 2_000


@pytest.mark.parametrize("make", [large_states.ids, large_states.claims, large_states.attempts])
def test_a_window_that_is_over_is_forgotten_in_steps(make: large_states.Make) -> None:
    most = []
    for rows in (FEW, MANY):
        partition, late_ms = make(rows), START_MS + 2 * HOUR_MS
        window, claims, attempts = partition.window.rows, partition.window.claims.rows, partition.attempts
        counts, turns = [], 0
        while len(window) + len(claims) + len(attempts) > 10:
            batch = encode([b"x"])
            first = partition.table.next
            with steps() as counted:
                partition.apply(Sent(first, 1, late_ms, 0, 0, 0, 0), batch, 1 << 40)
                partition.apply(Leased(partition.leases.next, [(first, 1)], late_ms, late_ms + 1))
                partition.apply(IdsClaimed([b"id"], [1], 7, late_ms, late_ms))
            counts.append(counted[0])
            turns += 1
            assert turns <= rows // 100
        most.append(max(counts))
    assert most[1] <= 1.2 * most[0]


def test_late_messages_are_found_without_a_look_at_the_others() -> None:
    most = []
    for rows in (FEW, MANY):
        partition = large_states.late_batches(rows)
        counts = []
        for first in (1, rows // 2, rows):
            with steps() as counted:
                partition.apply(
                    MoveStarted([(first, 1)], "orders.late", "late", START_MS, Lateness(7, None, None))
                )
                known = partition.sorting.lateness_of(first) if partition.sorting is not None else None
                write(partition, move.finish_move(partition, [(first, 1)], START_MS))
            counts.append(counted[0])
            assert known == Lateness(7, None, None)
        most.append(max(counts))
        assert partition.sorting is not None
        assert len(partition.sorting.late) == rows - 3
    assert most[1] <= 1.5 * most[0]


@pytest.mark.parametrize("make", [large_states.clock_window, large_states.causal_sessions])
def test_what_waits_for_one_moment_leaves_in_steps(make: large_states.Make) -> None:
    partition = make(MANY)
    late_us = (START_MS + 3 * HOUR_MS) * 1_000
    turns, written = 0, 1
    while written:
        with steps() as counted:
            now_ms = START_MS + 2 * HOUR_MS
            written = write(
                partition, upkeep.let_out(partition, now_ms, lambda: ClockInterval(late_us, late_us))
            )
        assert counted[0] <= 200_000
        turns += 1
    assert partition.table.counts[states.READY] == MANY
    assert turns >= MANY // 600


@pytest.mark.parametrize("make", [large_states.strict_groups, large_states.fair_groups])
def test_a_purge_of_groups_keeps_those_of_messages_on_their_way(make: large_states.Make) -> None:
    partition = make(MANY)
    partition.apply(MoveStarted([(2, 3), (MANY, 1)], "elsewhere", "redrive", START_MS))
    with steps() as counted:
        partition.apply(Purged(partition.table.next, START_MS))
    assert counted[0] <= 3_000
    assert partition.table.messages == 4
    recount.check(partition)
    assert {name for name, _, _ in partition.groups.rows()} == {
        b"group 1",
        b"group 2",
        b"group 3",
        b"group %d" % (MANY - 1),
    }
    write(partition, move.abandon_move(partition, [(1, MANY)], START_MS))
    assert normalized(partition.order.choose(Budget(10, 1 << 20))) == [(2, 3), (MANY, 1)]


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


@pytest.mark.parametrize("kind", ["delays_ms", "ttls_ms"])
def test_timers_that_end_together_end_in_steps(kind: str) -> None:
    maker = Maker()
    for _ in range(10):
        times = [HOUR_MS if place % 2 else 0 for place in range(BATCH)]
        maker.send(encode([b"x"] * BATCH, **{kind: times}))  # type: ignore[arg-type]  # one of two columns
    decide = upkeep.end_delays if kind == "delays_ms" else upkeep.expire
    turns, written = 0, 1
    while written:
        with steps() as counted:
            written = write(maker.partition, decide(maker.partition, START_MS + HOUR_MS))
        assert counted[0] <= 350_000
        turns += 1
    assert turns == 4


def test_timers_of_what_is_gone_are_passed_over_in_steps() -> None:
    partition = large_states.one_slot(MANY)
    gone = partition.table.runs_in(states.RUNS_LIVING, 1, partition.table.next, 2 * MANY)
    partition.apply(Dropped(gone, START_MS))
    written = 1
    while written:
        with steps() as counted:
            written = write(partition, upkeep.expire(partition, START_MS + HOUR_MS))
        assert counted[0] <= 150_000
    assert sum(len(runs) for _, runs in partition.expiries) <= 2_000
    assert partition.expiries.next_ms() is None


def test_scattered_messages_leave_with_their_retention_in_steps() -> None:
    partition = large_states.scattered(MANY)
    partition.apply(Released(10**9, [], "released", START_MS, START_MS))
    turns, written = 0, 1
    while written:
        with steps() as counted:
            now_ms = START_MS + partition.settings.retention_ms + HOUR_MS
            written = write(partition, upkeep.retain(partition, now_ms))
        assert counted[0] <= 250_000
        turns += 1
    assert turns == MANY // 2 // 2_000 + 1


@pytest.mark.parametrize("living", [True, False])
def test_times_of_sending_are_swept_in_steps(living: bool) -> None:
    times = SentTimes()
    most = 0
    for number in range(MANY):
        times.add(100 * number, 1 + number)
        with steps() as counted:
            times.sweep(lambda run, number=number: living or run[0] == 1 or run[0] > number - 100)  # type: ignore[misc]  # a default binds the number
        most = max(most, counted[0])
    assert most <= 250
    assert living or len(times.columns()[0]) <= 1_000


@pytest.mark.parametrize("living", [True, False])
def test_stamps_of_batches_are_swept_in_steps(living: bool) -> None:
    maker = Maker()
    batch, most = encode([b"x"]), 0
    for number in range(4_000):
        with steps() as counted:
            first = maker.send(
                batch, stamp_us=START_MS * 1_000 + number, process=7, counter=number, late=number % 2
            )
        most = max(most, counted[0])
        if not living:
            maker.apply(Dropped([(first, 1)], START_MS))
    assert most <= 20_000
    assert maker.partition.late_heads is not None
    if not living:
        assert len(maker.partition.late_heads.columns()[0]) <= 1_500
        assert len(maker.partition.late_heads.ahead) <= 1_500


def test_a_timer_among_many_is_put_in_its_place() -> None:
    """Messages that are released in any order to come back at one moment."""
    timers = SlotTimers()
    for number in range(MANY):
        timers.add(10, (4 * number, 1))
    for number in range(0, MANY, 97):
        with steps() as counted:
            timers.add(10, (4 * number + 2, 1))
        assert counted[0] <= 100
    assert sum(len(runs) for _, runs in timers) == MANY + len(range(0, MANY, 97))
