"""Timers: never early, at most a slot late, and no memory for what is over."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model.limits import RETENTION_SLOT_MS, TIMER_SLOT_MS
from penstock.model.runs import Run, normalized
from penstock.queue.state import timers as timers_module
from penstock.queue.state.sent_times import SentTimes
from penstock.queue.state.timers import SlotTimers


@given(some.lists(some.integers(1, 500), min_size=1, max_size=20))
def test_nothing_is_early_and_nothing_more_than_a_slot_late(due: list[int]) -> None:
    timers = SlotTimers()
    for sequence, due_ms in enumerate(due):
        timers.add(due_ms, (2 * sequence, 1))
    for now_ms in range(520):
        fired = {first for first, _ in timers.due(now_ms).runs}
        for sequence, due_ms in enumerate(due):
            if 2 * sequence in fired:
                assert due_ms <= now_ms
            elif now_ms >= due_ms + TIMER_SLOT_MS:
                raise AssertionError(f"due at {due_ms}, not fired at {now_ms}")
        next_ms = timers.next_ms()
        assert next_ms is not None
        assert bool(fired) == (next_ms <= now_ms)


def test_asking_takes_nothing_and_taking_takes_everything() -> None:
    timers = SlotTimers()
    timers.add(10, (1, 2))
    timers.add(20, (3, 2))
    timers.add(30, (9, 1))
    assert timers.due(20).runs == timers.due(20).runs == [(1, 4)]
    assert timers.take_due(20) == [(1, 4)]
    assert timers.due(20).runs == []
    assert timers.next_ms() == 30


def test_taking_does_not_depend_on_having_asked() -> None:
    """A replica only ever takes; the primary asks first, and passes over what is stale."""
    primary, replica = SlotTimers(), SlotTimers()
    for timers in (primary, replica):
        for due_ms in (10, 20, 30, 40):
            timers.add(due_ms, (due_ms, 1))
    primary.due(15)
    primary.pass_over()
    primary.due(25)
    assert list(primary) == list(replica)
    assert primary.take_due(30) == replica.take_due(30) == [(10, 1), (20, 1), (30, 1)]
    assert list(primary) == list(replica)
    assert primary.next_ms() == replica.next_ms() == 40


def test_what_was_passed_over_is_not_due_again_until_something_is_added() -> None:
    timers = SlotTimers()
    timers.add(10, (1, 1))
    assert timers.due(10).runs == [(1, 1)]
    timers.pass_over()
    assert timers.due(10).runs == []
    assert timers.next_ms() is None
    timers.add(10, (5, 1))
    assert timers.due(10).runs == [(1, 1), (5, 1)]


def test_neighbours_in_a_slot_are_one_entry() -> None:
    timers = SlotTimers()
    for sequence in range(100):
        timers.add(5, (sequence, 1))
    assert list(timers) == [(10, [(0, 100)])]


def lives(oldest: int, run: Run) -> bool:
    """Message 1 and those from the oldest on live."""
    return run[0] == 1 or run[0] >= oldest


def test_timers_of_what_is_gone_are_swept_out() -> None:
    """A time to live of a day must not cost a day of memory when messages live for seconds."""
    timers = SlotTimers()
    for number in range(20_000):
        timers.add(10**9 + 10 * number, (1 + 2 * number, 1))
        timers.sweep(partial(lives, 2 * (number - 50)))
    slots = list(timers)
    assert len(slots) <= 1_024
    assert len(timers._next) <= 8_192
    left = [first for _, runs in slots for first, _ in runs]
    assert left[0] == 1
    assert left[-50:] == list(range(2 * 19_950 + 1, 2 * 20_000, 2))


def test_timers_survive_a_snapshot() -> None:
    timers = SlotTimers()
    for due_ms in (50, 10, 30):
        timers.add(due_ms, (due_ms, 3))
    timers.due(10)
    timers.pass_over()
    copy = SlotTimers()
    copy.load(list(timers))
    assert list(copy) == list(timers)
    assert copy.take_due(100) == timers.take_due(100)


def marks(times: SentTimes) -> list[tuple[int, int]]:
    """(time, first message) of all that counts."""
    column, firsts, start = times.columns()
    return list(zip(column[start:], firsts[start:], strict=True))


@given(some.lists(some.tuples(some.integers(0, 250), some.integers(1, 5)), min_size=1, max_size=20))
def test_retention_is_never_early_and_at_most_a_slot_late(steps: list[tuple[int, int]]) -> None:
    times = SentTimes()
    sent_at: dict[int, int] = {}
    sequence, now_ms = 1, 1_000
    for wait_ms, count in steps:
        now_ms += wait_ms
        times.add(now_ms, sequence)
        for _ in range(count):
            sent_at[sequence] = now_ms
            sequence += 1
    for cutoff_ms in range(900, now_ms + 300, 37):
        end = times.expired_before(cutoff_ms, sequence)
        for number, sent_ms in sent_at.items():
            if number < end:
                assert sent_ms <= cutoff_ms
            else:
                assert sent_ms + RETENTION_SLOT_MS > cutoff_ms
    for number, sent_ms in sent_at.items():
        found = times.sent_ms(number)
        assert found is not None
        assert sent_ms <= found < sent_ms + RETENTION_SLOT_MS


def test_marks_of_what_is_gone_are_forgotten() -> None:
    times = SentTimes()
    for second in range(5_000):
        times.add(second * 1_000, second * 10 + 1)
        times.forget_before(second * 10 - 50)
    assert times.sent_ms(1) is None
    assert times.sent_ms(49_991) == 4_999_000
    assert len(marks(times)) < 10


def test_one_old_message_does_not_keep_the_marks_of_all_after_it() -> None:
    times = SentTimes()
    for slot in range(20_000):
        times.add(slot * 100, slot + 1)
        times.forget_before(1)
        times.sweep(partial(lives, slot - 10))
    assert len(marks(times)) <= 512
    assert times.sent_ms(1) == 0
    assert times.sent_ms(19_995) == 1_999_400
    assert times.expired_before(0, 20_001) > 1


def test_passing_over_only_changes_what_is_next() -> None:
    times = SentTimes()
    for slot in range(1, 5):
        times.add(slot * 100, slot)
    before = marks(times)
    times.pass_over(250)
    assert times.next_ms() == 300
    assert marks(times) == before
    assert times.expired_before(250, 5) == 3
    times.look_again()
    assert times.next_ms() == 100
    copy = SentTimes()
    copy.load(*(column.tobytes() for column in times.columns()[:2]))
    assert marks(copy) == before


# -- in parts ------------------------------------------------------------------------------------------------


def take_all(timers: SlotTimers, now_ms: int, most: int) -> list[Run]:
    """All that is due, part after part, as records would name the parts."""
    found: list[Run] = []
    for _ in range(10_000):
        next_ms = timers.next_ms()
        if next_ms is None or next_ms > now_ms:
            return found
        due = timers.due(now_ms, most)
        assert len(due.runs) <= most + 1
        taken = timers.take_before(due.slot, due.end)
        assert taken == due.runs
        found += taken
    raise AssertionError("it does not end")


some_timers = some.lists(
    some.tuples(some.integers(1, 60), some.integers(0, 40), some.integers(1, 9)), min_size=1, max_size=60
)


@given(some_timers, some.integers(1, 9), some.integers(0, 70), some.integers(1, 4))
def test_parts_are_exact(added: list[tuple[int, int, int]], most: int, now_ms: int, block_runs: int) -> None:
    """Every timer that is due is in one part, none that is not, whatever overlaps and in whatever order it was added."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timers_module, "_BLOCK_RUNS", block_runs)
        timers, replica = SlotTimers(), SlotTimers()
        for due_ms, first, count in added:
            timers.add(due_ms, (first, count))
        replica.load([(slot, runs) for slot, whole in timers for runs in ([run] for run in whole)])
        assert list(replica) == list(timers)
        wanted = {
            sequence
            for slot, runs in timers
            if slot <= now_ms
            for first, count in runs
            for sequence in range(first, first + count)
        }
        left = [(slot, runs) for slot, runs in timers if slot > now_ms]
        while (next_ms := timers.next_ms()) is not None and next_ms <= now_ms:
            due = timers.due(now_ms, most)
            taken = timers.take_before(due.slot, due.end)
            assert taken == due.runs
            assert taken == replica.take_before(due.slot, due.end)
            assert list(replica) == list(timers)
            wanted -= {number for first, count in taken for number in range(first, first + count)}
        assert not wanted
        assert list(timers) == left


def test_an_older_slot_that_comes_late_is_not_passed_by() -> None:
    """More slots are due than are looked at together, behind one that is older than those looked at before."""
    timers = SlotTimers()
    for slot in range(10):
        timers.add(1_000 + 10 * slot, (100 + 2 * slot, 1))
    timers.due(2_000, 5)
    for slot in range(10):
        timers.add(10 * slot, (2 * slot, 1))
    assert [run for run in take_all(timers, 2_000, 4) if run[0] < 100] == [
        (2 * slot, 1) for slot in range(10)
    ]
    assert not list(timers)


def test_what_was_passed_over_goes_with_a_part_once_it_is_much() -> None:
    timers = SlotTimers()
    for slot in range(20):
        timers.add(10 * slot, (2 * slot, 1))
        due = timers.due(10 * slot, 5)
        if due.is_all:
            timers.pass_over()
        else:
            timers.take_before(due.slot, due.end)
        assert len(list(timers)) <= 7
    assert timers.next_ms() is None


def test_a_clock_that_is_set_back_ends_nothing_early() -> None:
    timers = SlotTimers()
    timers.add(10, (1, 1))
    timers.add(20, (3, 1))
    assert timers.due(20).runs == [(1, 1), (3, 1)]
    assert timers.due(10).runs == [(1, 1)]
    timers.pass_over()
    assert timers.due(20).runs == [(3, 1)]


@given(some_timers, some.integers(1, 5), some.integers(1, 4))
def test_sweeping_goes_on_where_it_was_after_a_snapshot(
    added: list[tuple[int, int, int]], looked_at: int, block_runs: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timers_module, "_BLOCK_RUNS", block_runs)
        patch.setattr(timers_module, "_LOOKED_AT_ONCE", looked_at)
        patch.setattr(timers_module, "_SWEEP_AT_LEAST", 1)
        timers = SlotTimers()
        for due_ms, first, count in added:
            timers.add(due_ms, (first, count))
        timers.sweep(lambda run: run[0] % 3 == 0)
        copy = SlotTimers(timers.swept)
        copy.load(list(timers))
        for due_ms, first, count in added:
            for one in (timers, copy):
                one.add(due_ms + 7, (first, count))
                one.swept = one.swept._replace(left=0)
                one.sweep(lambda run: run[0] % 3 == 0)
            assert list(copy) == list(timers)
            assert copy.swept == timers.swept
        for _ in range(4 * len(added) + 1):
            timers.swept = timers.swept._replace(left=0)
            timers.sweep(lambda run: run[0] % 3 == 0)
        assert all(first % 3 == 0 for _, runs in timers for first, _ in runs)


@given(some_timers, some.integers(1, 4), some.booleans())
def test_a_slot_is_a_set_of_messages(
    added: list[tuple[int, int, int]], block_runs: int, captured: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timers_module, "_BLOCK_RUNS", block_runs)
        timers = SlotTimers()
        wanted: dict[int, list[Run]] = {}
        for number, (due_ms, first, count) in enumerate(added):
            if captured and number % 7 == 0:
                timers.capture = None
                before = [(slot, runs[:]) for slot, runs in timers]
                images = timers.begin_capture().images()
            timers.add(due_ms, (first, count))
            wanted.setdefault(-(-due_ms // TIMER_SLOT_MS) * TIMER_SLOT_MS, []).append((first, count))
            if captured and number % 7 == 6:
                found: dict[int, list[Run]] = {}
                for row in (row for rows in images for row in rows):
                    found.setdefault(row.slot, []).extend(row.part(0, row.length))
                assert found == dict(before)
        assert dict(timers) == {slot: normalized(runs) for slot, runs in wanted.items()}
