"""What tasks read: every message once, however long or short the stretches are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock import LogPartition
from penstock.model.partition_numbers import number_of
from penstock.pipeline.source.ranges import (
    LARGE_TASK_MESSAGES,
    SPREAD_TASKS,
    TASK_MESSAGES,
    LogRange,
    gaps_of,
    messages_per_task,
    plan_tasks,
    ranges_between,
)

stretches = st.dictionaries(
    st.integers(0, 5), st.tuples(st.integers(1, 50), st.integers(0, 5_000)), max_size=6
)


@given(stretches, st.integers(1, 3_000))
def test_every_message_is_in_one_task_and_tasks_are_full(
    given_stretches: dict[int, tuple[int, int]], size: int
) -> None:
    starts = {one: number_of(one, first) for one, (first, _) in given_stretches.items()}
    stops = {one: number_of(one, first + count) for one, (first, count) in given_stretches.items()}
    ranges = ranges_between(starts, stops)
    tasks = plan_tasks(ranges, size, 7)
    read = [number for task in tasks for one in task.ranges for number in range(one.start, one.stop)]
    assert read == [number for one in ranges for number in range(one.start, one.stop)]
    assert len(read) == sum(count for _, count in given_stretches.values())
    assert all(
        one.partition == one.start >> 48 == (one.stop - 1) >> 48 for task in tasks for one in task.ranges
    )
    sizes = [sum(one.messages for one in task.ranges) for task in tasks]
    assert all(count == size for count in sizes[:-1])
    assert all(count <= size for count in sizes)


gaps = st.lists(st.tuples(st.integers(1, 900), st.sampled_from([1, 50, 1 << 24, 1 << 36])), max_size=4)


@given(gaps, st.integers(1, 500))
def test_numbers_that_no_message_has_make_no_task(given_gaps: list[tuple[int, int]], size: int) -> None:
    """`given_gaps`: messages before each, and how wide it is."""
    following, left_out = number_of(3, 1), []
    present: list[int] = []
    for messages, width in given_gaps:
        present += range(following, following + messages)
        left_out.append((following + messages, following + messages + width))
        following += messages + width
    present += range(following, following + 7)
    part = LogPartition(3, number_of(3, 1), following + 7, tuple(left_out))
    ranges = ranges_between({3: part.begin}, {3: part.end}, gaps_of([part]))
    tasks = plan_tasks(ranges, size, 7)
    assert [
        number for task in tasks for one in task.ranges for number in range(one.start, one.stop)
    ] == present
    assert len(tasks) == -(-len(present) // size)
    assert sum(one.messages for one in ranges) == part.messages == len(present)


def test_a_small_batch_of_many_partitions_is_one_task() -> None:
    ranges = [LogRange(number_of(one, 1), number_of(one, 11)) for one in range(64)]
    tasks = plan_tasks(ranges, messages_per_task(640), 7)
    assert len(tasks) == 1
    assert len(tasks[0].ranges) == 64


def test_the_number_of_tasks_grows_with_the_log_but_not_without_end() -> None:
    def tasks(messages: int, weight: int = 1) -> int:
        return -(-messages // messages_per_task(messages, weight))

    assert tasks(1) == tasks(TASK_MESSAGES) == 1
    assert tasks(TASK_MESSAGES + 1) == 2
    assert tasks(TASK_MESSAGES * SPREAD_TASKS) == tasks(LARGE_TASK_MESSAGES * SPREAD_TASKS) == SPREAD_TASKS
    assert tasks(LARGE_TASK_MESSAGES * 100) == 100
    assert tasks(50, weight=1_000) == 2
