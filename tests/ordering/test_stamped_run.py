"""Stamped runs: ids rise along a run, and a floor cuts it in the right place."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import PenstockError
from penstock.ordering.stamped_run import check_ids, run_from_image, run_of, run_of_range
from penstock.ordering.timestamp_id import COUNTERS, PROCESS_MAX, TIME_MAX, TimestampId
from tests.ordering.producers import expand

TIMES = st.lists(st.integers(0, 6), min_size=1, max_size=12)


@given(TIMES)
def test_a_run_is_its_batch_in_the_order_of_ids(times: list[int]) -> None:
    run = run_of(times, 3, 100, 50)
    ids = {50 + i: TimestampId(time_us, 3, 100 + i) for i, time_us in enumerate(times)}
    order = sorted(ids, key=ids.__getitem__)
    assert [run.id_at(i) for i in range(len(run))] == [ids[sequence] for sequence in order]
    assert expand(run.runs(0, len(run))) == list(run.numbers(0, len(run))) == order
    assert (run.sequences is None) == (times == sorted(times))


@given(TIMES, st.builds(TimestampId, st.integers(0, 7), st.integers(2, 4), st.integers(98, 114)))
def test_a_floor_cuts_a_run_between_ids_at_or_below_it_and_those_above(
    times: list[int], floor: TimestampId
) -> None:
    run = run_of(times, 3, 100, 50)
    cut = run.first_after(floor)
    assert [run.id_at(i) <= floor for i in range(len(run))] == [i < cut for i in range(len(run))]


@given(TIMES, st.data())
def test_what_is_left_of_a_run_survives_a_snapshot(times: list[int], data: st.DataObject) -> None:
    run = run_of(times, 3, 100, 50)
    start = data.draw(st.integers(0, len(times) - 1))
    copy = run_from_image(run.image(start))
    assert [copy.id_at(i) for i in range(len(copy))] == [run.id_at(i) for i in range(start, len(run))]
    assert list(copy.numbers(0, len(copy))) == list(run.numbers(start, len(run)))


@pytest.mark.parametrize(
    ("times", "process", "counter"),
    [([1], PROCESS_MAX + 1, 0), ([1, 2], 1, COUNTERS - 1), ([TIME_MAX + 1], 1, 0)],
)
def test_stamps_that_are_no_ids_are_refused(times: list[int], process: int, counter: int) -> None:
    with pytest.raises(PenstockError, match="bad stamps"):
        check_ids(array("Q", times), process, counter)


def test_the_greatest_ids_are_ids() -> None:
    check_ids(array("Q", [1, TIME_MAX]), PROCESS_MAX, COUNTERS - 2)


def test_ids_taken_at_once_are_one_time() -> None:
    run = run_of_range(TimestampId(9, 3, 100), 3, 50)
    assert [run.id_at(i) for i in range(3)] == [TimestampId(9, 3, 100 + i) for i in range(3)]
