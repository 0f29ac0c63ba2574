"""The window sorter against a plain sort, and its rules one by one."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ordering import pending_runs
from penstock.ordering.clock_interval import ClockInterval, around
from penstock.ordering.pending_runs import _MESSAGES_LIKE_A_RUN
from penstock.ordering.stamped_run import run_of, run_of_range
from penstock.ordering.timestamp_id import BEFORE_ALL, TimestampId, last_of
from penstock.ordering.window_sorter import Accepted, Late, Refused, SorterImage, WindowSorter
from tests.ordering.producers import SentBatch, batches, expand

FAR = 10**9


def exact(time_us: int) -> ClockInterval:
    return ClockInterval(time_us, time_us)


def reloaded(sorter: WindowSorter) -> WindowSorter:
    """The sorter after a crash: from the bytes of its snapshot."""
    data = msgspec.msgpack.encode(sorter.dump())
    copy = WindowSorter(sorter.window_us, sorter.allowed_ahead_us)
    copy.load(msgspec.msgpack.decode(data, type=SorterImage))
    assert copy.pending == sorter.pending
    assert msgspec.msgpack.encode(copy.dump()) == data
    return copy


# --- against a plain sort -----------------------------------------------------------------------------------


@given(batches(longest_delay_us=30), st.integers(0, 5), st.data())
def test_what_arrives_within_the_window_leaves_as_a_plain_sort_would_have_it(
    sent: list[SentBatch], error_us: int, data: st.DataObject
) -> None:
    # A batch waits for its last stamp, so its first may be 60 older on top of the delay of 30: less than the window.
    sorter = WindowSorter(window_us=91, allowed_ahead_us=0)
    ids: dict[int, TimestampId] = {}
    left: list[int] = []
    base = 1
    for batch in sent:
        now = around(batch.arrival_us(), error_us)
        assert sorter.add(batch.run(base), now) == Accepted(len(batch.times))
        ids |= batch.ids(base)
        base += len(batch.times)
        if data.draw(st.booleans()):
            emitted = sorter.emit(now)
            left += expand(emitted.runs) if emitted is not None else []
        if data.draw(st.booleans()):
            sorter = reloaded(sorter)
    emitted = sorter.emit(exact(FAR))
    assert emitted is not None
    left += expand(emitted.runs)
    assert left == sorted(ids, key=ids.__getitem__)
    assert sorter.pending == 0


@given(
    batches(longest_delay_us=40, tidy=True),
    st.integers(0, 20),
    st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 10)), min_size=1, max_size=8),
    st.data(),
)
def test_whatever_clocks_and_producers_do_the_order_only_rises_and_nothing_is_lost(
    sent: list[SentBatch], window_us: int, clock: list[tuple[int, int]], data: st.DataObject
) -> None:
    """The server's clock jumps about, far beyond any bounds: lateness changes, order does not."""
    sorter = WindowSorter(window_us, allowed_ahead_us=15)
    ids: dict[int, TimestampId] = {}
    left: list[int] = []
    apart: set[int] = set()
    base = 1
    for number, batch in enumerate(sent):
        wrong_us, error_us = clock[number % len(clock)]
        now = around(batch.arrival_us() + wrong_us, error_us)
        run, these = batch.run(base), batch.ids(base)
        floor = sorter.floor
        verdict = sorter.add(run, now)
        in_order = sorted(these, key=these.__getitem__)
        match verdict:
            case Accepted(messages):
                assert messages == len(these)
                assert min(these.values()) > floor
            case Late(messages, lateness_us, window_needed_us, precedes):
                late, rest = in_order[:messages], in_order[messages:]
                assert all(these[s] <= floor for s in late)
                assert all(these[s] > floor for s in rest)
                assert lateness_us == floor.time_us - min(these.values()).time_us
                assert window_needed_us is not None
                # What is named did leave, and should not have left before it.
                after = [ids[s] for s in left if ids[s] > these[late[0]]]
                assert precedes in after
                apart |= set(late)
            case Refused(stamp_us, limit_us):
                assert stamp_us == max(batch.times) > limit_us == now.latest_us + 15
                apart |= set(these)
        ids |= these
        base += len(these)
        if data.draw(st.booleans()):
            emitted = sorter.emit(now)
            if emitted is not None:
                part = expand(emitted.runs)
                assert emitted.messages == len(part)
                assert emitted.last == ids[part[-1]] == sorter.floor
                assert emitted.last.time_us + window_us <= now.earliest_us
                left += part
        assert sorter.floor >= floor
        if data.draw(st.booleans()):
            sorter = reloaded(sorter)
    emitted = sorter.emit(exact(FAR))
    left += expand(emitted.runs) if emitted is not None else []
    times = [ids[sequence] for sequence in left]
    assert times == sorted(times)
    assert len(set(left)) == len(left)
    assert set(left) | apart == set(ids)
    assert not set(left) & apart


@given(batches(longest_delay_us=40), st.lists(st.integers(0, 120), max_size=6))
def test_the_records_give_the_same_order_on_a_replica(sent: list[SentBatch], through: list[int]) -> None:
    """A replica has no clock: what was taken in and up to where it was let out is all that it is told."""
    primary, replica = WindowSorter(10, 0), WindowSorter(10, 0)
    base = 1
    for number, batch in enumerate(sent):
        run = batch.run(base)
        verdict = primary.judge(run, exact(batch.arrival_us()))
        late = verdict.messages if isinstance(verdict, Late) else 0
        primary.insert(run, late)
        replica.insert(batch.run(base), late)
        base += len(batch.times)
        if number < len(through):
            assert primary.emit_through(through[number]) == replica.emit_through(through[number])
            replica = reloaded(replica)
    assert primary.emit_through(FAR) == replica.emit_through(FAR)
    assert primary.dump() == replica.dump()


# --- rule by rule -------------------------------------------------------------------------------------------


def test_a_message_leaves_when_its_window_is_certainly_over() -> None:
    sorter = WindowSorter(100, 0)
    sorter.add(run_of([1_000], 1, 0, 1), exact(1_000))
    assert sorter.due_us() == 1_100
    assert sorter.due_through(ClockInterval(1_099, 1_300)) is None
    assert sorter.emit(ClockInterval(1_099, 1_300)) is None
    assert sorter.due_through(ClockInterval(1_105, 1_300)) == 1_005
    assert sorter.emit(ClockInterval(1_100, 1_300)) is not None
    assert sorter.due_us() is None


def test_a_batch_is_cut_where_the_window_ends() -> None:
    sorter = WindowSorter(0, 100)
    sorter.add(run_of([10, 20, 30, 40], 1, 0, 1), exact(10))
    emitted = sorter.emit(exact(25))
    assert emitted is not None
    assert emitted.runs == [(1, 2)]
    assert sorter.pending == 2
    assert sorter.emit(exact(25)) is None
    emitted = sorter.emit(exact(40))
    assert emitted is not None
    assert emitted.runs == [(3, 2)]


def steps(sorter: WindowSorter, most: int) -> list[int]:
    """How many messages leave with each record."""
    left: list[int] = []
    while (through_us := sorter.due_through(exact(FAR), most)) is not None:
        emitted = sorter.emit_through(through_us)
        assert emitted is not None
        left.append(emitted.messages)
    return left


def test_a_long_batch_that_is_overdue_leaves_with_a_few_records() -> None:
    sorter = WindowSorter(0, 0)
    sorter.add(run_of(range(1, 10_001), 1, 0, 1), exact(FAR))
    assert steps(sorter, 500) == [500 * _MESSAGES_LIKE_A_RUN - 1, 10_000 - 500 * _MESSAGES_LIKE_A_RUN + 1]


def test_long_batches_that_overlap_leave_with_a_few_records() -> None:
    sorter = WindowSorter(0, 0)
    for process in range(1, 101):
        sorter.add(run_of(range(process, 100_000, 100), process, 0, process * 1_000), exact(FAR))
    left = steps(sorter, 500)
    assert sum(left) == 100 * 1_000 - 1  # the last one would be stamped 100,000
    assert len(left) < 20


@given(
    st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=8), min_size=1, max_size=6),
    st.integers(1, 8),
    st.integers(1, 50),
)
def test_a_record_lets_out_as_much_as_it_may_and_no_more(
    batches: list[list[int]], most: int, until_us: int
) -> None:
    sorter = WindowSorter(0, 0)
    batches = [sorted(times) for times in batches]
    for number, times in enumerate(batches):
        sorter.add(run_of(times, number + 1, 0, number * 10 + 1), exact(FAR))

    def messages(through_us: int) -> int:
        return sum(time_us <= through_us for times in batches for time_us in times)

    def runs(through_us: int) -> int:
        return sum(times[0] <= through_us for times in batches)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pending_runs, "_MESSAGES_LIKE_A_RUN", 10**9)  # runs alone count
        through_us = sorter.due_through(exact(until_us), most)
        patched.setattr(pending_runs, "_MESSAGES_LIKE_A_RUN", 1)
        by_messages_us = sorter.due_through(exact(until_us), most)
    head_us = min(times[0] for times in batches)
    if head_us > until_us:
        assert through_us is by_messages_us is None
        return
    assert through_us is not None
    assert by_messages_us is not None
    assert head_us <= by_messages_us <= through_us <= until_us
    if through_us < until_us:
        assert runs(through_us) >= most
        assert runs(through_us - 1) < most
    work = runs(by_messages_us) + messages(by_messages_us)
    assert work <= most or by_messages_us == head_us or runs(by_messages_us) > most
    if by_messages_us < through_us:
        assert runs(by_messages_us + 1) + messages(by_messages_us + 1) > most


def test_batches_that_do_not_overlap_leave_as_ranges() -> None:
    sorter = WindowSorter(0, 0)
    sorter.add(run_of([30, 31], 2, 0, 1), exact(50))
    sorter.add(run_of([10, 11], 1, 0, 3), exact(50))
    sorter.add(run_of([12, 13], 3, 0, 5), exact(50))
    emitted = sorter.emit(exact(50))
    assert emitted is not None
    assert emitted.runs == [(3, 4), (1, 2)]


def test_equal_times_are_in_the_order_of_process_and_counter() -> None:
    sorter = WindowSorter(0, 0)
    sorter.add(run_of_range(TimestampId(10, 2, 7), 2, 1), exact(10))
    sorter.add(run_of_range(TimestampId(10, 1, 5), 2, 3), exact(10))
    sorter.add(run_of_range(TimestampId(10, 1, 2), 3, 5), exact(10))
    emitted = sorter.emit(exact(10))
    assert emitted is not None
    assert expand(emitted.runs) == [5, 6, 7, 3, 4, 1, 2]
    assert emitted.last == TimestampId(10, 2, 8)


def test_an_equal_time_after_the_floor_is_still_in_time() -> None:
    sorter = WindowSorter(0, 0)
    sorter.add(run_of_range(TimestampId(10, 5, 3), 2, 1), exact(10))
    sorter.emit(exact(10))
    assert sorter.judge(run_of_range(TimestampId(10, 5, 5), 2, 3), exact(10)) == Accepted(2)
    assert sorter.judge(run_of_range(TimestampId(10, 6, 0), 2, 3), exact(10)) == Accepted(2)
    verdict = sorter.judge(run_of_range(TimestampId(10, 5, 4), 3, 3), exact(10))
    assert isinstance(verdict, Late)
    assert (verdict.messages, verdict.lateness_us) == (1, 0)
    verdict = sorter.judge(run_of_range(TimestampId(10, 4, 9), 3, 3), exact(10))
    assert isinstance(verdict, Late)
    assert verdict.messages == 3


def test_a_late_message_is_told_how_late_and_what_it_should_have_preceded() -> None:
    sorter = WindowSorter(100, 0)
    for base, time_us in enumerate((1_000, 2_000, 3_000), start=1):
        sorter.add(run_of([time_us], 1, base, base), exact(3_000))
        sorter.emit(exact(time_us + 100))
    verdict = sorter.add(run_of([1_500, 2_500, 3_500], 2, 0, 4), exact(3_500))
    assert verdict == Late(2, 1_500, 2_000, TimestampId(2_000, 1, 2))
    assert sorter.pending == 1


def test_what_left_together_is_told_apart() -> None:
    sorter = WindowSorter(0, 0)
    for base, time_us in enumerate((1_000, 2_000, 3_000), start=1):
        sorter.add(run_of([time_us], 1, base, base), exact(3_000))
    sorter.emit(exact(3_000))
    verdict = sorter.judge(run_of([1_500], 2, 0, 4), exact(3_000))
    assert isinstance(verdict, Late)
    assert verdict.precedes == TimestampId(2_000, 1, 2)


def test_a_silent_producer_holds_up_nobody_and_what_left_nothing_stays_open() -> None:
    sorter = WindowSorter(10, 0)
    sorter.add(run_of([100], 1, 0, 1), exact(100))
    sorter.emit(exact(110))
    # Hours later, a message older than the window but younger than all that left is still in order.
    assert sorter.add(run_of([101], 2, 0, 2), exact(10_000_000)) == Accepted(1)
    emitted = sorter.emit(exact(10_000_000))
    assert emitted is not None
    assert emitted.runs == [(2, 1)]


def test_a_stamp_in_the_future_is_refused_and_moves_nothing() -> None:
    sorter = WindowSorter(0, 50)
    now = ClockInterval(1_000, 1_010)
    assert sorter.add(run_of([1_000, 1_061], 1, 0, 1), now) == Refused(1_061, 1_060)
    assert sorter.pending == 0
    assert sorter.floor == BEFORE_ALL
    assert "1 µs after" in Refused(1_061, 1_060).explain()
    assert sorter.add(run_of([1_060], 1, 0, 1), now) == Accepted(1)
    assert sorter.emit(now) is None


def test_a_batch_out_of_order_is_sorted_once() -> None:
    sorter = WindowSorter(0, 0)
    sorter.add(run_of([30, 10, 20, 10], 1, 0, 1), exact(50))
    emitted = sorter.emit(exact(20))
    assert emitted is not None
    assert expand(emitted.runs) == [2, 4, 3]
    assert reloaded(sorter).emit(exact(50)) == sorter.emit(exact(50))


def test_nothing_can_be_forced_in_at_or_below_the_floor() -> None:
    sorter = WindowSorter(0, 0)
    sorter.insert(run_of([10], 1, 1, 1))
    sorter.emit_through(10)
    for time_us in (9, 10):
        with pytest.raises(ValueError, match="at or below the floor"):
            sorter.insert(run_of([time_us], 1, 1, 2))
    sorter.insert(run_of([9, 10, 11], 1, 0, 2), late=2)
    assert sorter.pending == 1


def test_a_closed_time_makes_what_comes_below_it_late_and_lets_out_what_waits() -> None:
    sorter = WindowSorter(100, 0)
    sorter.insert(run_of([40, 60], 1, 0, 1))
    assert sorter.closable_us(ClockInterval(150, 170)) == 50
    emitted = sorter.close(50)
    assert emitted is not None
    assert emitted.runs == [(1, 1)]
    assert sorter.floor == last_of(50)
    assert sorter.judge(run_of([50], 2, 0, 3), exact(150)) == Late(1, 0, 100, None)
    assert sorter.judge(run_of([51], 2, 0, 3), exact(150)) == Accepted(1)
    assert sorter.close(20) is None
    assert sorter.floor == last_of(50)


def test_a_purge_leaves_the_floor() -> None:
    sorter = WindowSorter(0, 0)
    sorter.insert(run_of([10, 20], 1, 0, 1))
    sorter.emit_through(10)
    sorter.clear()
    assert sorter.pending == 0
    assert sorter.due_us() is None
    assert sorter.floor == TimestampId(10, 1, 0)


def test_a_long_backlog_of_sorted_batches_waits_in_few_bytes_and_leaves_as_one_range() -> None:
    sorter = WindowSorter(0, 0)
    for number in range(100):
        times = range(number * 1_000, number * 1_000 + 1_000)
        sorter.add(run_of(times, 1, number * 1_000, 1 + number * 1_000), exact(FAR))
    assert len(msgspec.msgpack.encode(sorter.dump())) < 9 * 100_000
    emitted = sorter.emit(exact(FAR))
    assert emitted is not None
    assert emitted.runs == [(1, 100_000)]
