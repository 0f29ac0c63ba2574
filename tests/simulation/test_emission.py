"""The plain model of sorting: what it takes from records, and what it does not let pass."""

from __future__ import annotations

from penstock.model.batch import encode
from penstock.model.origin import Lateness
from penstock.model.records import MoveStarted, Record, Sent, Sorted, encode_record
from penstock.simulation.emission import Emission, replay
from penstock.simulation.observed_store import AppendedRecord


def _sent(first: int, times_us: list[int], process: int, late: int = 0) -> tuple[Sent, bytes]:
    batch = encode([b"x"] * len(times_us), stamps_us=times_us)
    record = Sent(first, len(times_us), 1_000, 0, 0, 0, 0, process=process, counter=first, late=late)
    return record, bytes(batch.data)


def _replayed(*written: Record | tuple[Sent, bytes], causal: bool = False) -> Emission:
    log = []
    for number, row in enumerate(written, 1):
        record, payload = row if isinstance(row, tuple) else (row, b"")
        log.append(AppendedRecord(number, 7, number, encode_record(record), payload))
    return replay(log, causal=causal)


def test_messages_leave_in_the_order_of_their_ids() -> None:
    emission = _replayed(
        _sent(1, [50, 10], 2), _sent(3, [20, 50], 1), Sorted(20, 1), _sent(5, [30], 9), Sorted(60, 2)
    )
    assert emission.order == [2, 3, 5, 4, 1]
    assert emission.problems == []


def test_what_is_taken_in_below_the_floor_is_noticed() -> None:
    emission = _replayed(_sent(1, [50], 2), Sorted(60, 1), _sent(2, [50, 49], 1), _sent(4, [50], 3))
    assert len(emission.problems) == 2


def test_what_is_called_late_must_be_late_and_say_so() -> None:
    start = (_sent(1, [50], 2), Sorted(60, 1))
    said = MoveStarted([(2, 1)], "q.late", "late", 1, Lateness(50, 10, None))
    assert _replayed(*start, _sent(2, [40], 2, late=1), said).problems == []
    assert _replayed(*start, _sent(2, [55], 2, late=1), said).problems
    wrong = MoveStarted([(2, 1)], "q.late", "late", 1, Lateness(60, 10, None))
    assert _replayed(*start, _sent(2, [40], 2, late=1), wrong).problems
    assert _replayed(*start, MoveStarted([(1, 1)], "q.late", "late", 1, Lateness(50, 10, None))).problems


def test_causal_sessions_have_floors_of_their_own() -> None:
    emission = _replayed(
        _sent(1, [50, 70], 2),
        _sent(3, [10], 1),
        _sent(4, [60], 2),
        Sorted(1, 1),
        _sent(5, [65], 2),
        causal=True,
    )
    assert emission.order == [1, 4, 2]
    assert len(emission.problems) == 1
    assert (
        _replayed(_sent(1, [50], 2), Sorted(1, 1), _sent(2, [10], 1), Sorted(2, 1), causal=True).problems
        == []
    )
