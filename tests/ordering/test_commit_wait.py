"""Commit wait: what was acknowledged before another send began has the smaller stamp, whatever clocks and servers do."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.ordering.clock_interval import ClockInterval, around
from penstock.ordering.commit_wait import CommitWait, answerable_us, may_answer, wait_us

ERROR = st.tuples(st.integers(0, 50), st.integers(0, 50))
"""How far a server's bounds are from true time, below and above; other numbers at every look."""
SERVERS = 3


def knows(true_us: Fraction, error: tuple[int, int]) -> ClockInterval:
    return ClockInterval(floor(true_us) - error[0], ceil(true_us) + error[1])


@settings(max_examples=200)
@given(st.data())
def test_a_send_that_begins_after_an_acknowledgement_has_the_greater_stamp(data: st.DataObject) -> None:
    """Servers take sends, wait and answer, in any order, while partitions change hands and states are lost.

    Between servers that share nothing it is the wait that keeps the promise; so it must hold even where a server
    begins again from nothing.
    """
    true_us = Fraction(1_000_000)
    states = [CommitWait() for _ in range(SERVERS)]
    waiting: list[tuple[int, int]] = []  # (stamp, number of the send)
    began: dict[int, int] = {}  # send -> how many had been acknowledged when it began
    stamps: dict[int, int] = {}
    acknowledged: list[int] = []
    for number in range(data.draw(st.integers(2, 25))):
        true_us += Fraction(data.draw(st.integers(0, 120)), 3)
        action = data.draw(st.sampled_from(["send", "send", "answer", "answer", "fail over", "forget"]))
        server = data.draw(st.integers(0, SERVERS - 1))
        now = knows(true_us, data.draw(ERROR))
        if action == "send":
            began[number] = len(acknowledged)
            true_us += Fraction(data.draw(st.integers(0, 20)), 3)  # on its way
            stamp_us = states[server].next_stamp(knows(true_us, data.draw(ERROR)))
            assert stamp_us > states[server].last_us
            states[server].observe(stamp_us)
            stamps[number] = stamp_us
            waiting.append((stamp_us, number))
        elif action == "answer":
            ready = [pair for pair in waiting if may_answer(pair[0], now)]
            waiting = [pair for pair in waiting if pair not in ready]
            assert all(stamp_us <= answerable_us(now) for stamp_us, _ in ready)
            acknowledged += [sent for _, sent in ready]
        elif action == "fail over":
            states[server] = CommitWait(states[(server + 1) % SERVERS].last_us)
        else:
            states[server] = CommitWait()
    for sent, before in began.items():
        assert all(stamps[earlier] < stamps[sent] for earlier in acknowledged[:before])


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 30), st.booleans()), min_size=1, max_size=30))
def test_the_stamps_of_a_partition_rise_through_restarts_with_any_clock(
    looks: list[tuple[int, int, bool]],
) -> None:
    """The clock is wrong beyond its bounds; what is on record is enough for the order of the partition itself."""
    state = CommitWait()
    last_us = 0
    for time_us, error_us, restarts in looks:
        now = around(time_us, error_us)
        stamp_us = state.next_stamp(now)
        assert stamp_us == state.next_stamp(now)  # deciding changes nothing
        assert stamp_us > last_us
        assert stamp_us >= now.latest_us
        state.observe(stamp_us)
        last_us = stamp_us
        if restarts:
            state = CommitWait(state.last_us)


def test_an_old_record_applied_again_changes_nothing() -> None:
    state = CommitWait(100)
    state.observe(50)
    assert state.last_us == 100


def test_the_answer_waits_until_the_stamp_is_certainly_past() -> None:
    now = around(1_000, 40)
    stamp_us = CommitWait().next_stamp(now)
    assert stamp_us == 1_040
    assert not may_answer(stamp_us, now)
    assert wait_us(stamp_us, now) == 81
    assert not may_answer(stamp_us, around(1_080, 40))
    assert may_answer(stamp_us, around(1_081, 40))
    assert wait_us(stamp_us, around(1_081, 40)) == 0
    assert answerable_us(around(1_081, 40)) == 1_040


def test_a_clock_that_went_back_is_seen() -> None:
    state = CommitWait(9_000)
    assert state.next_stamp(around(1_000, 40)) == 9_001
    assert state.ahead_us(around(1_000, 40)) == 7_960
    assert state.ahead_us(around(9_000, 40)) == 0


@given(st.lists(st.tuples(st.integers(0, 60), ERROR, st.booleans()), min_size=1, max_size=30))
def test_no_stamp_falls_below_what_was_closed(steps: list[tuple[int, tuple[int, int], bool]]) -> None:
    state = CommitWait()
    true_us = Fraction(1_000_000)
    closed_us = 0
    for pause_us, error, closes in steps:
        true_us += Fraction(pause_us, 3)
        now = knows(true_us, error)
        unhindered_us = max(now.latest_us, state.last_us + 1)
        if closes:
            last_us = state.last_us
            closed_us = max(closed_us, state.closable_us(now))
            state.observe(closed_us)
            assert state.last_us == max(last_us, closed_us)
        stamp_us = state.next_stamp(now)
        assert stamp_us > closed_us
        assert stamp_us == unhindered_us  # the promise costs nothing
        state.observe(stamp_us)
