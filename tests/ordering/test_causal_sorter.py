"""The causal sorter: a session's own order, sessions by arrival, and nothing of one clock compared with another."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ordering.causal_sorter import CausalImage, CausalSorter
from penstock.ordering.stamped_run import run_of
from penstock.ordering.timestamp_id import TimestampId
from penstock.ordering.window_sorter import Accepted, Late
from tests.ordering.producers import SentBatch, batches, expand

FAR = 10**9
IDLE_US = 10**6


def reloaded(sorter: CausalSorter) -> CausalSorter:
    data = msgspec.msgpack.encode(sorter.dump())
    copy = CausalSorter(sorter.window_us, sorter.idle_us)
    copy.load(msgspec.msgpack.decode(data, type=CausalImage))
    assert copy.pending == sorter.pending
    assert msgspec.msgpack.encode(copy.dump()) == data
    return copy


@given(batches(longest_delay_us=40), st.integers(0, 40), st.lists(st.integers(-FAR, FAR)), st.data())
def test_each_session_leaves_in_its_own_order_whatever_its_clock_shows(
    sent: list[SentBatch], window_us: int, skews: list[int], data: st.DataObject
) -> None:
    sorter = CausalSorter(window_us, IDLE_US)
    ids: dict[int, TimestampId] = {}
    left: list[int] = []
    late: set[int] = set()
    base = 1
    for batch in sent:
        # Clocks that have nothing to do with each other.
        skew_us = FAR + (skews[batch.process] if batch.process < len(skews) else 0)
        shown = batch._replace(times=[time_us + skew_us for time_us in batch.times])
        run, these = shown.run(base), shown.ids(base)
        verdict = sorter.judge(run)
        missed = verdict.messages if isinstance(verdict, Late) else 0
        late |= set(list(run.numbers(0, len(run)))[:missed])
        sorter.insert(run, batch.arrival_us(), missed)
        ids |= these
        base += len(these)
        if data.draw(st.booleans()):
            left += expand(sorter.emit(batch.arrival_us()))
        if data.draw(st.booleans()):
            sorter = reloaded(sorter)
    left += expand(sorter.emit(FAR))
    assert sorter.pending == 0
    assert sorter.due_us() is None
    assert sorted(left) == sorted(set(ids) - late)
    for process in {batch.process for batch in sent}:
        own = [ids[sequence] for sequence in left if ids[sequence].process == process]
        assert own == sorted(own)


@given(batches(longest_delay_us=30))
def test_a_window_as_long_as_the_longest_way_has_nothing_late(sent: list[SentBatch]) -> None:
    sorter = CausalSorter(90, IDLE_US)
    base = 1
    for batch in sent:
        sorter.emit(batch.arrival_us() - 1)
        run = batch.run(base)
        assert sorter.judge(run) == Accepted(len(run))
        sorter.insert(run, batch.arrival_us())
        base += len(run)


def test_sessions_leave_in_the_order_of_arrival() -> None:
    sorter = CausalSorter(10, IDLE_US)
    sorter.insert(run_of([900, 901], 1, 0, 1), 100)
    sorter.insert(run_of([5, 6], 2, 0, 3), 101)
    assert sorter.due_us() == 110
    assert sorter.emit(109) == []
    assert sorter.emit(110) == [(1, 2)]
    assert sorter.emit(111) == [(3, 2)]


def test_what_overtook_waits_for_what_it_overtook() -> None:
    sorter = CausalSorter(10, IDLE_US)
    sorter.insert(run_of([30, 31], 1, 2, 1), 100)
    sorter.insert(run_of([20, 21], 1, 0, 3), 105)
    assert sorter.emit(110) == [(3, 2), (1, 2)]
    assert sorter.emit(115) == []


def test_what_comes_after_its_window_is_late_for_its_own_session_only() -> None:
    sorter = CausalSorter(0, IDLE_US)
    sorter.insert(run_of([30], 1, 1, 1), 100)
    sorter.emit(100)
    late = run_of([20, 40], 1, 0, 2)
    assert sorter.judge(late) == Late(1, 10, None, TimestampId(30, 1, 1))
    with pytest.raises(ValueError, match="at or below the floor"):
        sorter.insert(late, 101)
    sorter.insert(late, 101, late=1)
    assert sorter.emit(101) == [(3, 1)]
    assert sorter.judge(run_of([20, 40], 2, 0, 4)) == Accepted(2)


def test_the_record_of_an_emission_gives_the_same_on_a_replica() -> None:
    primary, replica = CausalSorter(10, IDLE_US), CausalSorter(10, IDLE_US)
    for base, (times, process, arrived_us) in enumerate(
        [([30], 1, 100), ([9], 2, 104), ([20], 1, 108)], start=1
    ):
        for sorter in (primary, replica):
            sorter.insert(run_of(times, process, base, base), arrived_us)
    through = primary.due_through(114)
    assert through == 2
    assert primary.emit_through(through) == replica.emit_through(through)
    assert primary.dump() == replica.dump()


def test_silent_sessions_are_forgotten_once_nothing_of_them_waits() -> None:
    sorter = CausalSorter(10, idle_us=1_000)
    sorter.insert(run_of([1], 1, 0, 1), 100)
    sorter.insert(run_of([1], 2, 0, 2), 900)
    assert sorter.forget_idle(1_100) == 0  # its message waits still
    sorter.emit(910)
    assert sorter.forget_idle(1_099) == 0
    assert sorter.forget_idle(1_100) == 1
    assert len(sorter.sessions) == 1


def test_a_session_may_be_forgotten_before_a_batch_of_it_that_went_along_with_another() -> None:
    sorter = CausalSorter(1_000, idle_us=1_000)
    sorter.insert(run_of([20], 1, 0, 1), 0)
    sorter.insert(run_of([10], 1, 1, 2), 500)
    assert expand(sorter.emit(1_000)) == [2, 1]
    assert sorter.forget_idle(1_500) == 1
    assert reloaded(sorter).emit(1_500) == []
    assert sorter.emit(1_500) == []
    assert sorter.due_us() is None


def test_of_too_many_sessions_the_most_silent_are_forgotten() -> None:
    sorter = CausalSorter(0, IDLE_US, most_sessions=3)
    for session in range(1, 10):
        sorter.insert(run_of([session], session, 0, session), session)
        sorter.emit(session)
        sorter.forget_idle(session)
    assert len(sorter.sessions) == 3
    assert isinstance(sorter.judge(run_of([7], 7, 0, 10)), Late)
    assert isinstance(sorter.judge(run_of([6], 6, 0, 10)), Accepted)


def test_a_purge_leaves_the_floors() -> None:
    sorter = CausalSorter(0, IDLE_US)
    sorter.insert(run_of([10], 1, 0, 1), 100)
    sorter.emit(100)
    sorter.insert(run_of([20], 1, 1, 2), 101)
    sorter.clear()
    assert sorter.pending == 0
    assert sorter.emit(FAR) == []
    assert isinstance(sorter.judge(run_of([10], 1, 0, 3)), Late)
