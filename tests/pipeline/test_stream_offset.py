"""How far a stream has come: limits hold, and partitions that come and go lose nothing and repeat nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.partition_numbers import number_of
from penstock.pipeline.source.stream_offset import StreamOffset, admitted, load_offset, planned_ranges
from penstock.pipeline.trouble import PipelineError

steps = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 3), st.integers(0, 40), max_size=4),  # what is sent
        st.sets(st.integers(0, 3)),  # partitions that are there
        st.one_of(st.none(), st.integers(1, 30)),  # the limit
    ),
    max_size=12,
)


@given(steps)
def test_partitions_that_appear_and_vanish_lose_and_repeat_nothing(
    history: list[tuple[dict[int, int], set[int], int | None]],
) -> None:
    ends: dict[int, int] = {}
    offset = StreamOffset(7, {})
    read: list[int] = []
    everything = set(range(4))
    for sent, present, limit in [*history, ({}, everything, None)]:
        for partition, count in sent.items():
            ends[partition] = ends.get(partition, number_of(partition, 1)) + count
        visible = {one: end for one, end in ends.items() if one in present}
        begins = {one: number_of(one, 1) for one in visible}
        starts = begins | offset.following
        stops = admitted(starts, visible, limit)
        after = load_offset(json.loads(json.dumps(offset._replace(following=stops).dump())))
        ranges = planned_ranges(offset, after, begins)
        batch = [number for one in ranges for number in range(one.start, one.stop)]
        assert limit is None or len(batch) <= limit
        waiting = sum(end - starts[one] for one, end in visible.items())
        assert bool(batch) == bool(waiting), "a limit never stops a stream"
        read += batch
        offset = after
    assert sorted(read) == [
        number for one, end in sorted(ends.items()) for number in range(number_of(one, 1), end)
    ]


def test_a_limit_is_shared_by_what_waits() -> None:
    starts = {0: number_of(0, 1), 1: number_of(1, 1), 2: number_of(2, 1)}
    ends = {0: number_of(0, 901), 1: number_of(1, 91), 2: number_of(2, 11)}
    stops = admitted(starts, ends, 100)
    assert [stops[one] - starts[one] for one in range(3)] == [90, 9, 1]


def test_a_checkpoint_of_another_source_is_refused() -> None:
    with pytest.raises(PipelineError, match="a checkpoint of its own"):
        load_offset({"logOffset": 3})
