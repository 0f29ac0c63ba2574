"""Closed timestamps and the merge of partitions up to their minimum."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.closed_timestamp import (
    SEALED,
    ClosedTimestamps,
    PartitionMerge,
    PartitionRun,
    Slice,
)
from penstock.ordering.commit_wait import CommitWait
from penstock.ordering.stamped_run import run_of, run_of_range
from penstock.ordering.timestamp_id import TimestampId

PARTITIONS = 3


def reloaded(merge: PartitionMerge, closed: ClosedTimestamps) -> tuple[PartitionMerge, ClosedTimestamps]:
    data = msgspec.msgpack.encode((closed.dump(), merge.dump()))
    closes, runs = msgspec.msgpack.decode(data, type=tuple[dict[int, int], list[PartitionRun]])
    closed = ClosedTimestamps(closes)
    merge = PartitionMerge(closed)
    merge.load(runs)
    return merge, closed


def expand(slices: list[Slice]) -> list[tuple[int, int]]:
    return [
        (partition, sequence)
        for partition, (first, count) in slices
        for sequence in range(first, first + count)
    ]


@given(st.data())
def test_the_merge_is_a_plain_sort_that_never_takes_anything_back(data: st.DataObject) -> None:
    """Partitions stamp, close and are heard of late, in any order; what is delivered is a prefix of the whole."""
    states = [CommitWait() for _ in range(PARTITIONS)]
    closed = ClosedTimestamps(dict.fromkeys(range(PARTITIONS), 0))
    merge = PartitionMerge(closed)
    sequences = [1] * PARTITIONS
    ids: dict[tuple[int, int], TimestampId] = {}
    delivered: list[tuple[int, int]] = []
    true_us = 1_000
    for _ in range(data.draw(st.integers(1, 40))):
        true_us += data.draw(st.integers(0, 10))
        partition = data.draw(st.integers(0, PARTITIONS - 1))
        state = states[partition]
        now = ClockInterval(true_us - data.draw(st.integers(0, 8)), true_us + data.draw(st.integers(0, 8)))
        match data.draw(st.sampled_from(["send", "send", "close", "take", "crash"])):
            case "send":
                stamp_us = state.next_stamp(now)
                state.observe(stamp_us)
                count = data.draw(st.integers(1, 4))
                first = TimestampId(stamp_us, partition, sequences[partition])
                merge.add(partition, run_of_range(first, count, sequences[partition]))
                for i in range(count):
                    ids[partition, sequences[partition] + i] = first._replace(counter=first.counter + i)
                sequences[partition] += count
            case "close":
                closes_us = state.closable_us(now)
                state.observe(closes_us)
                closed.publish(partition, closes_us)
            case "take":
                delivered += expand(merge.take())
            case _:
                merge, closed = reloaded(merge, closed)
                states[partition] = CommitWait(state.last_us)
    for partition in range(PARTITIONS):
        closed.publish(partition, SEALED)
    delivered += expand(merge.take())
    assert delivered == sorted(ids, key=ids.__getitem__)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 9), min_size=1, max_size=6)), max_size=8),
    st.integers(0, 40),
)
def test_runs_with_a_time_for_each_message_are_cut_where_others_come_between(
    parts: list[tuple[int, list[int]]], limit_us: int
) -> None:
    closed = ClosedTimestamps({0: limit_us})
    merge = PartitionMerge(closed)
    clocks, sequences = [0, 0, 0], [1, 1, 1]
    ids: dict[tuple[int, int], TimestampId] = {}
    for partition, steps in parts:
        times = [clocks[partition] + sum(steps[: i + 1]) for i in range(len(steps))]
        clocks[partition] = times[-1]
        base = sequences[partition]
        merge.add(partition, run_of(times, partition, base, base))
        ids |= {
            (partition, base + i): TimestampId(time_us, partition, base + i)
            for i, time_us in enumerate(times)
        }
        sequences[partition] += len(times)
    order = sorted(ids, key=ids.__getitem__)
    complete = [message for message in order if ids[message].time_us <= limit_us]
    assert expand(merge.take()) == complete
    closed.publish(0, SEALED)
    assert expand(merge.take()) == order[len(complete) :]


def test_a_slice_is_as_long_as_nothing_comes_between() -> None:
    merge = PartitionMerge(ClosedTimestamps({1: 100, 2: 100}))
    merge.add(1, run_of(range(10, 60), 1, 0, 1))
    merge.add(2, run_of([35, 36], 2, 0, 1))
    assert merge.take() == [
        Slice(1, (1, 26)),
        Slice(2, (1, 1)),
        Slice(1, (27, 1)),
        Slice(2, (2, 1)),
        Slice(1, (28, 23)),
    ]


def test_one_partition_that_is_not_heard_of_holds_up_all_and_is_named() -> None:
    closed = ClosedTimestamps({1: 50, 2: 50})
    merge = PartitionMerge(closed)
    merge.add(1, run_of([60], 1, 0, 1))
    assert closed.publish(1, 90)
    assert merge.take() == []
    assert closed.slowest() == 2
    assert closed.publish(2, 60)
    assert merge.take() == [Slice(1, (1, 1))]


def test_old_word_and_word_of_strangers_changes_nothing() -> None:
    closed = ClosedTimestamps({1: 50})
    assert not closed.publish(1, 50)
    assert not closed.publish(1, 40)
    assert not closed.publish(9, 70)
    assert closed.minimum_us() == 50


def test_without_partitions_nothing_is_complete() -> None:
    assert ClosedTimestamps().minimum_us() == -1
    assert ClosedTimestamps().slowest() is None


def test_children_begin_where_their_parent_ends_so_the_minimum_never_falls() -> None:
    closed = ClosedTimestamps({1: 50})
    with pytest.raises(ValueError, match="before 50"):
        closed.join(2, 49)
    with pytest.raises(ValueError, match="there already"):
        closed.join(1, 80)
    closed.join(2, 50)
    closed.join(3, 50)
    with pytest.raises(ValueError, match="not sealed"):
        closed.leave(1)
    closed.publish(1, SEALED)
    assert closed.minimum_us() == 50
    closed.leave(1)
    assert closed.minimum_us() == 50
    assert closed.dump() == {2: 50, 3: 50}


def test_what_a_partition_lets_out_is_in_order() -> None:
    with pytest.raises(ValueError, match="no sorting here"):
        PartitionMerge(ClosedTimestamps()).add(1, run_of([2, 1], 1, 0, 1))
