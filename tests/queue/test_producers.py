"""The table of producers: what it remembers, what it refuses, how much it takes, and that all copies of it are the same."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model import limits
from penstock.model.batch import encode
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import Sent
from penstock.queue.state.packed_index import PackedIndex
from penstock.queue.state.producers import ProducerTable
from penstock.queue.state.stored_batch import StoredBatch
from tests.queue.rig import START_MS, Rig


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bounds that a test reaches."""
    with monkeypatch.context() as patch:
        patch.setattr(limits, "PRODUCERS_PER_QUEUE", 5)
        patch.setattr(limits, "PRODUCER_BATCHES_REMEMBERED", 6)
        patch.setattr(limits, "PRODUCER_BATCHES_PER_QUEUE", 12)
        patch.setattr(limits, "PRODUCER_DUPLICATES_BYTES", 1_200)
        yield


def known(table: ProducerTable, producer: int, numbers: range) -> list[int]:
    return [number for number in numbers if isinstance(table.find(producer, number), StoredBatch)]


def test_a_batch_is_remembered_as_it_was_answered() -> None:
    table = ProducerTable()
    table.add(7, 1, 10, 3, 1_000)
    table.add(7, 2, 13, 2, 1_001, [(1, 4), (2, 2**60)], 55)
    table.add(2**64 - 1, 1, 15, 1, 1_002)
    assert table.find(7, 1) == StoredBatch(10, 3, 1_000, [])
    assert table.find(7, 2) == StoredBatch(13, 2, 1_001, [(1, 4), (2, 2**60)], 55)
    assert table.find(2**64 - 1, 1) == StoredBatch(15, 1, 1_002, [])
    assert table.find(7, 3) == table.find(8, 1) == "new"


def test_only_recent_batches_are_remembered_and_older_ones_are_refused() -> None:
    table = ProducerTable()
    most = limits.PRODUCER_BATCHES_REMEMBERED
    for number in range(1, most + 11):
        table.add(7, number, number, 1, 0)
    assert known(table, 7, range(most + 12)) == list(range(11, most + 11))
    assert all(table.find(7, number) == "unknown" for number in range(11))
    assert table.find(7, most + 11) == "new"
    assert table.find(8, 1) == "new"


def test_numbers_that_come_out_of_order_are_remembered_by_their_order() -> None:
    table = ProducerTable()
    for number in [5, 1, 2, 3, 4, *range(7, limits.PRODUCER_BATCHES_REMEMBERED + 4)]:
        table.add(7, number, number, 1, 0)
    assert [table.find(7, number) for number in (1, 2)] == ["unknown", "unknown"], "the lowest went"
    assert table.find(7, 6) == "new", "it was never stored, and everything below it is known"
    for number in range(3, 6):
        found = table.find(7, number)
        assert isinstance(found, StoredBatch)
        assert found.first == number


def test_who_has_most_gives_up_first_and_everybody_keeps_the_newest(small: None) -> None:
    table = ProducerTable()
    for number in range(1, 7):
        table.add(1, number, number, 1, 0)
    for number in range(1, 5):
        table.add(2, number, number, 1, 0)
    for producer in (3, 4, 5):
        for number in (1, 2):
            table.add(producer, number, number, 1, 0)
    assert table.batches == 12
    assert sum(len(known(table, producer, range(10))) for producer in range(1, 6)) == 12
    for producer, newest in ((1, 6), (2, 4), (3, 2), (4, 2), (5, 2)):
        assert isinstance(table.find(producer, newest), StoredBatch)
    assert all(table.find(3 + producer, 1) != "new" for producer in range(3))


def test_idle_producers_are_forgotten_by_and_by() -> None:
    table = ProducerTable()
    for producer in range(1, 41):
        table.add(producer, 1, producer, 1, producer)
    table.add(5, 2, 41, 1, 41)
    number = pass_time(table, 41, limits.PRODUCER_IDLE_MS + 40)
    for again in range(1, 4):
        table.add(99, number + again, 50, 1, limits.PRODUCER_IDLE_MS + 40)
    assert [producer for producer, *_ in table.producers()] == [5, 99]


def pass_time(table: ProducerTable, from_ms: int, to_ms: int) -> int:
    """Producer 99 sends all the while; returns the number of its last batch."""
    number = 0
    for at_ms in range(from_ms, to_ms, limits.PRODUCER_IDLE_STEP_MS):
        number += 1
        table.add(99, number, 50, 1, at_ms)
    return number


def test_a_clock_that_is_set_forward_makes_nobody_idle() -> None:
    """A batch is stored and its answer is lost. Then the clock is set forward, and another producer is quicker."""
    rig = Rig()
    rig.send(encode([b"x"]), START_MS, 1, 1)
    later_ms = START_MS + 3 * limits.PRODUCER_IDLE_MS
    for number in range(1, 4):
        rig.send(encode([b"y"]), later_ms + number, 2, number)
    assert rig.send(encode([b"x"]), later_ms + 10, 1, 1).runs == [(1, 1)], (
        "sent again, it is not stored twice"
    )
    rig.reload()
    assert isinstance(rig.partition.producers.find(1, 1), StoredBatch)


def test_long_pauses_count_for_a_while_each() -> None:
    table = ProducerTable()
    table.add(1, 1, 1, 1, START_MS)
    pauses = limits.PRODUCER_IDLE_MS // limits.PRODUCER_IDLE_STEP_MS
    for pause in range(1, pauses + 1):
        assert isinstance(table.find(1, 1), StoredBatch)
        table.add(2, pause, 1, 1, START_MS + pause * 12 * limits.PRODUCER_IDLE_MS)
    assert table.find(1, 1) == "new"


def test_producers_that_are_gone_do_not_keep_others_out(small: None) -> None:
    """A full table goes by the clock."""
    rig = Rig()
    for producer in range(1, 6):
        rig.send(encode([b"x"]), START_MS, producer, 1)
    next_day_ms = START_MS + 24 * limits.PRODUCER_IDLE_MS
    for producer in range(6, 16):
        rig.send(encode([b"x"]), next_day_ms + producer, producer, 1)
        rig.send(encode([b"x"]), next_day_ms + producer, producer, 2)
        if len(rig.partition.producers) == limits.PRODUCERS_PER_QUEUE:
            break
    assert rig.partition.producers.find(6, 1) != "new"


def test_a_producer_that_may_still_send_again_is_not_forgotten_for_another(small: None) -> None:
    rig = Rig()
    for producer in range(1, 6):
        rig.send(encode([b"x"]), START_MS + producer, producer, 1)
    with pytest.raises(PenstockError, match="5 producers that sent lately") as caught:
        rig.send(encode([b"x"]), START_MS + 10, 6, 1)
    assert caught.value.code is ErrorCode.OVERLOADED
    for producer in range(1, 6):
        again = rig.send(encode([b"x"]), START_MS + 20, producer, 1)
        assert again.runs == [(producer, 1)], "sent again, it is not stored twice"
    rig.send(encode([b"x"]), START_MS + 30, 1, 2)
    silent_ms = START_MS + 2 + limits.PRODUCER_CROWDED_IDLE_MS
    assert rig.send(encode([b"x"]), silent_ms, 6, 1).runs == [(7, 1)], "the second was silent for long"
    assert rig.partition.producers.find(2, 1) == "new"
    assert isinstance(rig.partition.producers.find(1, 1), StoredBatch)


def test_a_record_of_one_producer_too_many_is_applied_all_the_same(small: None) -> None:
    rig = Rig()
    for producer in range(1, 9):
        rig.partition.apply(Sent(producer, 1, START_MS, 0, 0, producer, 1), encode([b"x"]), 0)
    assert [producer for producer, *_ in rig.partition.producers.producers()] == [4, 5, 6, 7, 8]


def test_a_batch_whose_duplicates_are_not_remembered_is_refused(small: None) -> None:
    table = ProducerTable()
    for number in range(1, 6):
        table.add(7, number, number, 1, 0, [(0, number)])
    assert [table.find(7, number) for number in (1, 2)] == ["unknown", "unknown"]
    assert table.find(7, 5) == StoredBatch(5, 1, 0, [(0, 5)])


@pytest.mark.parametrize(("producer", "number"), [(-1, 1), (2**64, 1), (7, -1), (7, 2**63)])
def test_numbers_that_are_none_are_refused(producer: int, number: int) -> None:
    with pytest.raises(PenstockError) as caught:
        Rig().send(encode([b"x"]), producer=producer, number=number)
    assert caught.value.code is ErrorCode.BAD_REQUEST


@pytest.mark.parametrize(("producer", "number"), [(-1, 1), (-7, -1), (7, -1), (7, 2**64 - 1)])
def test_a_record_with_such_numbers_does_no_harm(producer: int, number: int) -> None:
    """Clients are not trusted, and the journal may hold what they said to an earlier version."""
    rig = Rig()
    for place in range(1, 4):
        rig.partition.apply(Sent(place, 1, START_MS, 0, 0, producer, number), encode([b"x"]), 0)
    rig.reload()


Step = tuple[int, int, int, bool]
"""(producer, number, milliseconds that pass, with duplicates)."""
steps = some.lists(
    some.tuples(
        some.integers(1, 8), some.integers(0, 30), some.sampled_from([0, 0, 0, 1, 400]), some.booleans()
    ),
    max_size=120,
)


@given(steps)
def test_nothing_is_taken_for_new_that_was_stored(taken: list[Step]) -> None:
    """Beside a plain model: everything that was stored since a producer was last forgotten."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PRODUCERS_PER_QUEUE", 5)
        patch.setattr(limits, "PRODUCER_BATCHES_REMEMBERED", 6)
        patch.setattr(limits, "PRODUCER_BATCHES_PER_QUEUE", 12)
        patch.setattr(limits, "PRODUCER_DUPLICATES_BYTES", 1_200)
        patch.setattr(limits, "PRODUCER_IDLE_MS", 1_000)
        _compare(taken)


def _compare(taken: list[Step]) -> None:
    table, twin = ProducerTable(), ProducerTable()
    stored: dict[int, dict[int, StoredBatch]] = {}
    now_ms = 1_000
    for first, (producer, number, pause_ms, duplicated) in enumerate(taken, 1):
        now_ms += pause_ms
        found = table.find(producer, number)
        if number in stored.get(producer, {}):
            assert found in (stored[producer][number], "unknown")
        if found == "new":
            duplicates = [(0, first), (2, 1)] if duplicated else []
            for copy in (table, twin):
                copy.add(producer, number, first, 1, now_ms, duplicates)
            stored.setdefault(producer, {})[number] = StoredBatch(first, 1, now_ms, duplicates)
        rows = list(table.producers())
        remembered = {one for one, *_ in rows}
        assert len(table) == len(remembered) <= 5
        stored = {one: batches for one, batches in stored.items() if one in remembered}
        assert table.batches == sum(len(batches) for *_, batches in rows) <= 12
        for one, last_ms, forgotten, batches in rows:
            numbers = [batch[0] for batch in batches]
            assert numbers == sorted(numbers)
            assert len(numbers) in range(1, 7)
            assert forgotten < numbers[0]
            assert numbers[-1] == max(stored[one])
            assert last_ms >= max(batch[3] for batch in batches)
        if first % 7 == 0:
            copy = ProducerTable()
            copy.load(twin.dump())
            twin = copy
        assert twin.dump() == table.dump()


def test_a_table_that_was_large_becomes_small_again() -> None:
    table = ProducerTable()
    for producer in range(1, 6_001):
        table.add(producer, 1, producer, 1, 1_000, stamp_us=3)
    half_ms = 1_000 + limits.PRODUCER_IDLE_MS // 2
    pass_time(table, 1_000, half_ms)
    table.add(6_000, 2, 2, 1, half_ms)
    pass_time(table, half_ms, 1_000 + limits.PRODUCER_IDLE_MS)
    for _ in range(6_000 // 16 + 1):
        table.add(99, 1, 3, 1, 1_000 + limits.PRODUCER_IDLE_MS)
    assert [producer for producer, *_ in table.producers()] == [6_000, 99]
    assert table.find(6_000, 2) == StoredBatch(2, 1, half_ms, [])
    assert sum(map(len, table.dump().columns)) < 30_000


def test_an_index_has_what_was_put_into_it() -> None:
    dice = Random(5)
    index, model = PackedIndex(), dict[int, int]()
    for step in range(20_000):
        key = dice.choice([0, 2**64 - 1, dice.randrange(2**64), dice.randrange(4_000)])
        assert index.get(key) == model.get(key, 0)
        if key in model:
            index.remove(key)
            del model[key]
        else:
            model[key] = dice.randrange(1, 2**32)
            index.put(key, model[key])
        if step % 3_000 == 2_999:
            copy = PackedIndex()
            copy.load(index.columns())
            index = copy
    assert len(index) == len(model)
    assert {key: index.get(key) for key in model} == model
    for key in list(model):
        index.remove(key)
    assert len(index) == 0
    assert not index.get(7)
