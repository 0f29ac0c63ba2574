"""The batch: what goes in comes out, slices are batches, and bytes that are no batch are refused."""

from __future__ import annotations

import struct
import time
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model import limits
from penstock.model.batch import (
    ALL_COLUMNS,
    ATTRIBUTES,
    DEDUPLICATION,
    DELAYS,
    GROUPS,
    HEADER_BYTES,
    PRIORITIES,
    STAMPS,
    TTLS,
    UNSET,
    Batch,
    encode,
    encode_parts,
)
from penstock.model.errors import PenstockError


@dataclass
class Sample:
    """The columns of a batch, as given."""

    columns: int
    bodies: list[bytes]
    priorities: list[int]
    times: list[int]
    names: list[bytes]
    attributes: list[bytes]

    def encode(self) -> Batch:
        has = self.columns
        return encode(
            self.bodies,
            priorities=self.priorities if has & PRIORITIES else None,
            delays_ms=self.times if has & DELAYS else None,
            ttls_ms=self.times[::-1] if has & TTLS else None,
            groups=self.names if has & GROUPS else None,
            deduplication_ids=self.names[::-1] if has & DEDUPLICATION else None,
            attributes=self.attributes if has & ATTRIBUTES else None,
            stamps_us=self.times if has & STAMPS else None,
        )


Message = tuple[bytes, int, int | None, int | None, bytes, bytes, bytes, int | None]


def messages(batch: Batch) -> list[Message]:
    """Every message with every column, read one by one."""
    delays, ttls, stamps = batch.integers(DELAYS), batch.integers(TTLS), batch.integers(STAMPS)
    groups, identifiers = batch.names(GROUPS), batch.names(DEDUPLICATION)
    priorities = batch.priorities() if batch.columns & PRIORITIES else bytes(batch.count)
    return [
        (
            bytes(batch.body(i)),
            priorities[i],
            None if delays is None else delays[i],
            None if ttls is None else ttls[i],
            b"" if groups is None else groups[i],
            b"" if identifiers is None else identifiers[i],
            batch.attributes(i),
            None if stamps is None else stamps[i],
        )
        for i in range(batch.count)
    ]


@some.composite
def samples(draw: some.DrawFn) -> Sample:
    count = draw(some.integers(1, 6))

    def column(value: some.SearchStrategy[bytes]) -> list[bytes]:
        return draw(some.lists(value, min_size=count, max_size=count))

    def integers(value: some.SearchStrategy[int]) -> list[int]:
        return draw(some.lists(value, min_size=count, max_size=count))

    return Sample(
        draw(some.integers(0, ALL_COLUMNS)),
        column(some.binary(max_size=20)),
        integers(some.integers(0, 9)),
        integers(some.sampled_from([0, 1, 60_000, UNSET])),
        column(some.binary(max_size=5)),
        column(some.binary(max_size=9)),
    )


@given(samples())
def test_what_goes_in_comes_out(sample: Sample) -> None:
    batch = sample.encode()
    batch.check()
    assert batch.count == len(sample.bodies)
    assert batch.bodies() == sample.bodies
    assert [bytes(batch.body(i)) for i in range(batch.count)] == sample.bodies
    assert batch.columns == sample.columns
    has = sample.columns
    assert list(batch.priorities()) == (sample.priorities if has & PRIORITIES else [])
    delays, ttls = batch.integers(DELAYS), batch.integers(TTLS)
    assert (None if delays is None else list(delays)) == (sample.times if has & DELAYS else None)
    assert (None if ttls is None else list(ttls)) == (sample.times[::-1] if has & TTLS else None)
    stamps = batch.integers(STAMPS)
    assert (None if stamps is None else list(stamps)) == (sample.times if has & STAMPS else None)
    assert batch.names(GROUPS) == (sample.names if has & GROUPS else None)
    assert batch.names(DEDUPLICATION) == (sample.names[::-1] if has & DEDUPLICATION else None)
    attributes = sample.attributes if has & ATTRIBUTES else [b""] * batch.count
    assert [batch.attributes(i) for i in range(batch.count)] == attributes
    sizes = [len(b) + len(a) for b, a in zip(sample.bodies, attributes, strict=True)]
    assert list(batch.message_sizes()) == sizes
    assert batch.message_bytes() == sum(sizes)


@given(samples(), some.data())
def test_a_slice_is_a_batch_of_its_own(sample: Sample, data: some.DataObject) -> None:
    batch = sample.encode()
    start = data.draw(some.integers(0, batch.count - 1))
    stop = data.draw(some.integers(start + 1, batch.count))
    cut = Batch(b"".join(batch.slice(start, stop)))
    assert messages(cut) == messages(batch)[start:stop]
    assert cut.columns == batch.columns


def test_to_look_at_each_message_costs_the_same_for_each() -> None:
    count = limits.BATCH_MESSAGES
    batch = encode([b"x"] * count, attributes=[b"\x80"] * count)
    began = time.process_time()
    assert {bytes(batch.body(i)) for i in range(count)} == {b"x"}
    assert {batch.attributes(i) for i in range(count)} == {b"\x80"}
    assert time.process_time() - began < 0.2, "with a sum over those before each it takes twice as long"


def test_a_slice_of_everything_is_the_batch_itself_and_nothing_is_copied() -> None:
    batch = encode([b"a", b"bc"])
    assert batch.slice(0, 2) == [batch.data]


@given(samples(), some.data())
def test_selecting_keeps_the_order_given(sample: Sample, data: some.DataObject) -> None:
    batch = sample.encode()
    indexes = data.draw(some.lists(some.integers(0, batch.count - 1), min_size=1, max_size=8))
    assert messages(batch.select(indexes)) == [messages(batch)[index] for index in indexes]


def assert_consistent(data: bytes) -> None:
    """Either a clear refusal, or a batch of which every part can be read and written again."""
    try:
        batch = Batch(data)
    except PenstockError:
        return
    found = messages(batch)
    assert len(found) == batch.count == len(batch.sizes)
    assert sum(len(body) for body, *_ in found) + batch.body_offset == len(data)
    assert messages(Batch(b"".join(batch.slice(0, 1)))) == found[:1]
    assert messages(batch.select(range(batch.count))) == found
    with suppress(PenstockError):
        batch.check()


@given(some.binary(max_size=120))
def test_arbitrary_bytes(data: bytes) -> None:
    assert_consistent(data)


@given(some.integers(0, 255), some.integers(0, 70), some.integers(0, 5), some.integers(0, 40), some.binary())
def test_arbitrary_bytes_after_a_likely_header(
    version: int, columns: int, count: int, size: int, data: bytes
) -> None:
    assert_consistent(struct.pack("<BBHII", version % 3, columns, 0, count, size) + data)


@given(samples(), some.data())
def test_a_damaged_batch(sample: Sample, data: some.DataObject) -> None:
    whole = bytearray(sample.encode().data)
    where = data.draw(some.integers(0, len(whole) - 1))
    whole[where] ^= 1 << data.draw(some.integers(0, 7))
    assert_consistent(bytes(whole))


@given(samples())
def test_a_batch_that_is_cut_or_longer_is_refused(sample: Sample) -> None:
    whole = bytes(sample.encode().data)
    for length in range(len(whole)):
        with pytest.raises(PenstockError):
            Batch(whole[:length])
    with pytest.raises(PenstockError):
        Batch(whole + b"\0")


def test_sizes_that_only_overflow_to_the_right_sum_are_refused() -> None:
    header = struct.pack("<BBHII", 1, 0, 0, 2, 0)
    with pytest.raises(PenstockError):
        Batch(header + struct.pack("<II", 2**31, 2**31))


def test_the_number_of_messages_is_bounded() -> None:
    assert encode([b""] * limits.BATCH_MESSAGES).count == limits.BATCH_MESSAGES
    with pytest.raises(PenstockError, match="1 to"):
        encode([b""] * (limits.BATCH_MESSAGES + 1))
    with pytest.raises(PenstockError, match="1 to"):
        encode([])


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        (encode([b"x"], priorities=[limits.PRIORITIES]), "priority"),
        (encode([b"x"], delays_ms=[limits.RETENTION_MS_MAX + 1]), "delay"),
        (encode([b"x"], ttls_ms=[UNSET - 1]), "time to live"),
        (encode([b"x"], groups=[b"g" * (limits.GROUP_BYTES + 1)]), "group"),
        (encode([b"x"], deduplication_ids=[b"g" * (limits.DEDUPLICATION_ID_BYTES + 1)]), "deduplication"),
        (encode([b"x"], attributes=[bytes(limits.ATTRIBUTES_BYTES + 1)]), "attributes"),
    ],
    ids=["priority", "delay", "ttl", "group", "deduplication", "attributes"],
)
def test_values_no_producer_may_send_are_refused(batch: Batch, complaint: str) -> None:
    with pytest.raises(PenstockError, match=complaint):
        batch.check()


def test_the_layout_is_what_it_says() -> None:
    """Stored data must stay readable: the bytes of one batch with every column, written out by hand."""
    encoded = encode_parts(
        [b"hi", b""],
        priorities=[1, 9],
        delays_ms=[UNSET, 5],
        ttls_ms=[7, UNSET],
        groups=[b"g", b""],
        deduplication_ids=[b"", b"id"],
        attributes=[b"\x80", b""],
    )
    assert encoded == b"".join(
        [
            struct.pack("<BBHII", 1, 63, 0, 2, 2),
            struct.pack("<II", 2, 0),
            b"\x01\x09",
            struct.pack("<QQ", UNSET, 5),
            struct.pack("<QQ", 7, UNSET),
            b"\x01\x00g",
            b"\x00\x02id",
            struct.pack("<II", 1, 0) + b"\x80",
            b"hi",
        ]
    )
    assert HEADER_BYTES == 12
