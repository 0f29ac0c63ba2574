"""Which records of a decision belong together."""

from __future__ import annotations

from penstock.model.records import MoveStarted, QueueRecord, Released
from penstock.queue.decision import Written, in_groups


def _released(first: int) -> Released:
    return Released(1, [(first, 1)], "lease-ended", 0, 0)


def _moved(first: int) -> MoveStarted:
    return MoveStarted([(first, 1)], "dead", "max-receives", 0)


def test_what_is_given_back_because_it_leaves_is_written_with_its_move() -> None:
    records: list[QueueRecord] = [_released(1), _moved(1), _released(2), _released(3), _moved(4), _moved(5)]
    groups = [[row.record for row in group] for group in in_groups([Written(record) for record in records])]
    assert groups == [[_released(1), _moved(1)], [_released(2)], [_released(3)], [_moved(4)], [_moved(5)]]
    assert list(in_groups([])) == []
