"""Where two logs part, found from a few numbers, is where comparing them record by record finds it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.replication.primary_secondary.core.epochs import EpochHistory, last_common


def history_of(log: list[int]) -> EpochHistory:
    """A log given as the epoch of each record."""
    history = EpochHistory()
    for index, epoch in enumerate(log, 1):
        if epoch != history.last:
            history.begin(epoch, index)
    return history


@some.composite
def parted_logs(draw: some.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs with a common beginning; after it no epoch is in both, because one primary writes in an epoch."""
    common = sorted(draw(some.lists(some.integers(1, 4), max_size=6)))
    low = common[-1] if common else 1
    ours = sorted(draw(some.lists(some.sampled_from([low + 1, low + 3]), max_size=5)))
    theirs = sorted(draw(some.lists(some.sampled_from([low + 2, low + 4]), max_size=5)))
    return common + ours, common + theirs


@given(parted_logs())
def test_the_last_common_record_is_found(logs: tuple[list[int], list[int]]) -> None:
    ours, theirs = logs
    agreed = 0
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            break
        agreed += 1
    assert last_common(history_of(ours), len(ours), history_of(theirs), len(theirs)) == agreed


def test_the_first_record_after_an_epoch_is_found_though_that_epoch_wrote_none() -> None:
    history = EpochHistory([(2, 1), (4, 7), (5, 9)])
    assert [history.first_after(epoch) for epoch in range(6)] == [1, 1, 7, 7, 9, None]


def test_epochs_only_rise() -> None:
    history = EpochHistory([(1, 1), (3, 10)])
    with pytest.raises(ValueError, match="does not follow"):
        history.begin(3, 20)
    with pytest.raises(ValueError, match="does not follow"):
        history.begin(4, 10)
