"""How far a stream has come: limits hold, and partitions that come and go lose nothing and repeat nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import LogPartition
from penstock.model.number_gaps import NO_GAPS, NumberGaps
from penstock.model.partition_numbers import number_of
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.progress import Progress
from penstock.pipeline.source.missing import Missing
from penstock.pipeline.source.offsets import checked_starts
from penstock.pipeline.source.options import read_options
from penstock.pipeline.source.stream_offset import (
    StreamOffset,
    admitted,
    load_offset,
    lost_stops,
    planned_ranges,
)

steps = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 3), st.integers(0, 40), max_size=4),  # what is sent
        st.dictionaries(st.integers(0, 3), st.sampled_from([1, 9, 1 << 24, 1 << 36]), max_size=1),  # left out
        st.sets(st.integers(0, 3)),  # partitions that are there
        st.one_of(st.none(), st.integers(1, 30)),  # the limit
    ),
    max_size=12,
)


@given(steps)
def test_partitions_that_appear_and_vanish_lose_and_repeat_nothing(
    history: list[tuple[dict[int, int], dict[int, int], set[int], int | None]],
) -> None:
    ends: dict[int, int] = {}
    gaps: dict[int, NumberGaps] = {}
    offset = StreamOffset(7, {})
    read: list[int] = []
    all_sent: list[int] = []
    everything = set(range(4))
    for sent, left_out, present, limit in [*history, ({}, {}, everything, None)]:
        for partition, count in sent.items():
            end = ends.get(partition, number_of(partition, 1))
            all_sent += range(end, end + count)
            ends[partition] = end + count
        for partition, width in left_out.items():
            if partition in ends:
                gaps.setdefault(partition, NumberGaps()).add(ends[partition], ends[partition] + width)
                ends[partition] += width
        visible = {one: end for one, end in ends.items() if one in present}
        begins = {one: number_of(one, 1) for one in visible}
        starts = begins | offset.following
        stops = admitted(starts, visible, limit, gaps)
        after = load_offset(json.loads(json.dumps(offset._replace(following=stops).dump())))
        ranges = planned_ranges(offset, after, begins, gaps)
        assert lost_stops(offset, after, gaps) == {}
        batch = [number for one in ranges for number in range(one.start, one.stop)]
        assert limit is None or len(batch) <= limit
        waiting = sum(gaps.get(one, NO_GAPS).messages(starts[one], end) for one, end in visible.items())
        assert bool(batch) == bool(waiting), "a limit never stops a stream"
        read += batch
        offset = after
    assert sorted(read) == sorted(all_sent)


def test_a_limit_is_shared_by_what_waits() -> None:
    starts = {0: number_of(0, 1), 1: number_of(1, 1), 2: number_of(2, 1)}
    ends = {0: number_of(0, 901), 1: number_of(1, 91), 2: number_of(2, 11)}
    stops = admitted(starts, ends, 100)
    assert [stops[one] - starts[one] for one in range(3)] == [90, 9, 1]


def test_a_checkpoint_of_another_source_is_refused() -> None:
    with pytest.raises(PipelineError, match="a separate checkpoint"):
        load_offset({"logOffset": 3})


def test_offsets_of_before_a_failover_lose_and_repeat_nothing() -> None:
    """A failover of an `async` log has lost messages 80 to 99: their numbers are left out, up to a thousand."""
    gaps = {0: NumberGaps([(80, 1_000)])}
    for following in (80, 90, 100, 999):  # how far a query had come, as its checkpoint says
        begun = StreamOffset(7, {0: following})
        ended = StreamOffset(7, admitted(begun.following, {0: 1_011}, 5, gaps))
        assert planned_ranges(begun, ended, {0: 1}, gaps) == [(1_000, 1_005)]
        assert lost_stops(begun, ended, gaps) == {}, (
            "what it had read is lost, and nothing that it has to read"
        )


def test_what_is_lost_of_a_planned_micro_batch_is_said() -> None:
    gaps = {0: NumberGaps([(80, 1_000)])}
    planned = StreamOffset(7, {0: 60}), StreamOffset(7, {0: 100})
    assert planned_ranges(*planned, {0: 1}, gaps) == [(60, 80)]
    assert lost_stops(*planned, gaps) == {0: Missing(80, 100, 20)}
    further = StreamOffset(7, {0: 90}), StreamOffset(7, {0: 100})
    assert lost_stops(*further, gaps) == {0: Missing(90, 100, 10)}
    assert lost_stops(StreamOffset(7, {0: 60}), StreamOffset(7, {0: 80}), gaps) == {}, (
        "it ends where the gap begins"
    )


def test_a_start_among_numbers_left_out_is_not_missing() -> None:
    options = read_options({"queue": "events", "endpoint": "127.0.0.1:1"}, "readStream")
    begun_late = LogPartition(0, 1_000, 1_011, ((80, 1_000),))
    assert checked_starts([begun_late], {0: 90}, options) == ({0: 1_000}, {})
    assert checked_starts([begun_late], {0: 80}, options) == ({0: 1_000}, {})
    with pytest.raises(PipelineError, match="no longer has 5 messages"):
        checked_starts([begun_late], {0: 75}, options)
    cut = LogPartition(0, 1_005, 1_011, ((80, 1_000),))
    lenient = read_options(
        {"queue": "events", "endpoint": "127.0.0.1:1", "failOnDataLoss": "false"}, "readStream"
    )
    assert checked_starts([cut], {0: 75}, lenient) == ({0: 1_005}, {0: Missing(75, 1_005, 10)})


def test_how_far_behind_a_query_is_counts_messages() -> None:
    progress = Progress("ledger")
    latest = {"queue": 7, "next": {"0": 1_011}, "gaps": {"0": [[80, 1_000]]}}
    progress.note_offsets(
        {"endOffset": json.dumps({"queue": 7, "next": {"0": 70}}), "latestOffset": json.dumps(latest)}
    )
    assert progress.lag_messages == 21
