"""Batches shared out over partitions and put together again: nothing lost, nothing doubled, groups in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from penstock.model.batch import Batch, encode
from penstock.model.partition_numbers import ORDINAL_SHIFT
from penstock.model.runs import count_of
from penstock.model.settings import QueueSettings
from penstock.routing.batch_parts import ordinal_of, ordinal_of_batch, share_out, together
from penstock.routing.numbers import inward, inward_runs, outward, outward_runs
from penstock.wire.messages import SendResult

FIFO = QueueSettings(ordering="fifo")
STANDARD = QueueSettings()

names = some.lists(some.binary(max_size=3), min_size=1, max_size=40)
counts = some.integers(min_value=1, max_value=8)


def batch_of(groups: list[bytes], column: str) -> Batch:
    """Messages whose body says their place."""
    bodies = [b"%d" % place for place in range(len(groups))]
    return encode(bodies, groups=groups) if column == "groups" else encode(bodies, deduplication_ids=groups)


@given(names, counts)
def test_every_message_goes_to_exactly_one_partition_and_a_group_to_one_in_order(
    groups: list[bytes], partitions: int
) -> None:
    batch = batch_of(groups, "groups")
    shares = share_out(batch, FIFO, partitions, 0)
    seen: list[int] = []
    for share in shares:
        places = list(share.places) if share.places is not None else list(range(batch.count))
        assert places == sorted(places)
        assert all(ordinal_of(groups[place], partitions) == share.ordinal for place in places)
        picked = batch.select(places) if share.places is not None else batch
        assert picked.bodies() == [b"%d" % place for place in places]
        seen += places
    assert sorted(seen) == list(range(batch.count))
    assert len({share.ordinal for share in shares}) == len(shares)


@given(names, counts, some.integers(min_value=0, max_value=7))
def test_ids_meet_and_what_has_none_goes_together(
    identifiers: list[bytes], partitions: int, any_place: int
) -> None:
    elsewhere = any_place % partitions
    shares = share_out(batch_of(identifiers, "ids"), STANDARD, partitions, elsewhere)
    for share in shares:
        for place in share.places if share.places is not None else range(len(identifiers)):
            name = identifiers[place]
            assert share.ordinal == (ordinal_of(name, partitions) if name else elsewhere)


@given(names, counts, some.data())
def test_the_answer_has_the_number_of_every_message_in_the_order_of_the_batch(
    groups: list[bytes], partitions: int, data: some.DataObject
) -> None:
    batch = batch_of(groups, "groups")
    shares = share_out(batch, FIFO, partitions, 0)
    results, expected, duplicates = [], {}, []
    for share in shares:
        places = list(share.places) if share.places is not None else list(range(batch.count))
        first = data.draw(some.integers(min_value=1, max_value=1 << 40))
        double = data.draw(some.sets(some.sampled_from(range(len(places)))))
        results.append(SendResult([(first, len(places))], sorted(double), first, 0))
        for step, place in enumerate(places):
            expected[place] = outward(share.ordinal, first + step)
        duplicates += [places[index] for index in double]
    answer = together(batch.count, shares, results)
    numbers = [number for first, count in answer.runs for number in range(first, first + count)]
    assert numbers == [expected[place] for place in range(batch.count)]
    assert answer.duplicates == sorted(duplicates)
    assert answer.sent_ms == max(result.sent_ms for result in results)


@given(
    some.integers(min_value=0, max_value=1023), some.integers(min_value=0, max_value=(1 << ORDINAL_SHIFT) - 1)
)
def test_numbers_go_out_and_in_unchanged(ordinal: int, number: int) -> None:
    assert inward(outward(ordinal, number)) == (ordinal, number)
    assert outward(0, number) == number


@given(
    some.dictionaries(
        some.integers(0, 1023),
        some.lists(some.tuples(some.integers(0, 1 << 40), some.integers(1, 9)), min_size=1),
    )
)
def test_runs_go_out_and_in_unchanged(by_partition: dict[int, list[tuple[int, int]]]) -> None:
    out = [run for ordinal, runs in by_partition.items() for run in outward_runs(ordinal, runs)]
    assert inward_runs(out) == by_partition
    assert count_of(out) == sum(count_of(runs) for runs in by_partition.values())


@given(some.integers(1, 1 << 62), counts)
def test_numbered_batches_go_around_and_always_to_the_same_partition(producer: int, partitions: int) -> None:
    places = [ordinal_of_batch(producer, number, partitions) for number in range(partitions)]
    assert sorted(places) == list(range(partitions))
    assert places == [ordinal_of_batch(producer, number, partitions) for number in range(partitions)]


def test_names_are_spread_over_the_partitions() -> None:
    found = [ordinal_of(b"group-%d" % number, 8) for number in range(4_000)]
    assert all(350 < found.count(ordinal) < 650 for ordinal in range(8))
