"""Records survive being written, and nothing else is taken for one."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model import records
from penstock.model.document import TooOldError
from penstock.model.origin import Origin
from penstock.model.records import Record, decode_record, encode_record
from penstock.model.settings import QueueSettings

RUNS = [(1, 5), (2**40, 1)]
ORIGIN = Origin(7, "orders", "max-receives", [(9, 2), (1, 1)], 1_000, [3, 300, 1], 2_000)
EXAMPLES: list[Record] = [
    records.Sent(1, 5, 10, 0, 0, 0, 0),
    records.Sent(6, 3, 10, 20, 30, 2**63, 2**40, ORIGIN, [(0, 4), (2, 5)]),
    records.Leased(1, RUNS, 10, 20),
    records.Deleted(1, RUNS, 10),
    records.Released(1, RUNS, "lease-ended", 10, 20),
    records.Extended(1, RUNS, 10, 20),
    records.Resumed(1, RUNS, 10, 20),
    records.Matured([], 10),
    records.Expired(RUNS, "ttl", 10),
    records.Dropped(RUNS, 10),
    records.MoveStarted(RUNS, "dead", "overflow", 10),
    records.SpentMoved(1, RUNS, "released", 10, "dead", "ValueError"),
    records.TimersEnded("ttl", RUNS, 20, 7, 10, "dead"),
    records.MoveFinished(RUNS, 10),
    records.MoveAbandoned(RUNS, 10),
    records.OriginsForgotten(7, RUNS, 10),
    records.Purged(100, 10),
    records.SettingsChanged(QueueSettings(ordering="fifo", max_messages=3), 10),
    records.Sorted(2**50, 10),
    records.Closed(2**50, 10),
    records.LogCut(2**40, "bytes", 10),
    records.OffsetCommitted("billing", 2**40, 10),
    records.GroupChanged("billing", 7, ["a", "b"], 10, [1_000, 2_000], 2, 4),
    records.IdsClaimed([b"x", b"y"], [0, 3], 17, 20, 10),
    records.MessagesLost(3, 10),
    records.IdsBarred([b"x"], [17], 20, 10),
    records.GroupRemoved("billing", 10),
    records.EpochBegan(3, 10),
    records.NumbersSkipped(1 << 36, 1_000, 7 << 36),
    records.DuplicatesSent(2**63, 2**40, [(4, 2), (4, 1)], 10),
    records.LifecycleReported(2**40, 10),
    records.LifecycleEnded(10),
    records.QueueCreated(1, "orders", QueueSettings(), 10),
    records.QueueDeleted(1, 10),
    records.QueueRemoved(1, 10),
]


def test_there_is_an_example_of_every_record() -> None:
    assert {type(example) for example in EXAMPLES} == set(get_args(Record))


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_a_record_reads_back_as_it_was_written(record: Record) -> None:
    encoded = encode_record(record)
    assert decode_record(encoded) == record
    assert decode_record(memoryview(encoded)) == record


def test_a_usual_record_is_small() -> None:
    """A receive and a delete of any number of neighbouring messages cost a few bytes of journal."""
    assert len(encode_record(records.Leased(2**30, [(2**40, 10_000)], 2**41, 2**41))) < 48
    assert len(encode_record(records.Deleted(2**30, [(2**40, 10_000)], 2**41))) < 40


@given(some.binary(max_size=40))
def test_other_bytes_are_refused(data: bytes) -> None:
    try:
        record = decode_record(data)
    except msgspec.DecodeError:
        return
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_a_cut_record_is_refused(record: Record) -> None:
    encoded = encode_record(record)
    for length in range(len(encoded)):
        with pytest.raises(msgspec.DecodeError):
            decode_record(encoded[:length])


@pytest.mark.parametrize("place", [1, 3])
def test_settings_of_a_newer_version_are_kept_in_records(place: int) -> None:
    record = records.SettingsChanged(QueueSettings(), 10) if place == 1 else EXAMPLES[-3]
    fields = msgspec.msgpack.decode(encode_record(record))
    fields[place]["flavour"] = "sweet"
    read = decode_record(msgspec.msgpack.encode(fields))
    assert isinstance(read, records.SettingsChanged | records.QueueCreated)
    assert read.settings.later == {"flavour": "sweet"}
    assert decode_record(encode_record(read)) == read


def test_fields_at_the_end_of_a_record_that_are_not_known_are_left_out() -> None:
    fields = [*msgspec.msgpack.decode(encode_record(records.Purged(3, 10))), "more"]
    assert decode_record(msgspec.msgpack.encode(fields)) == records.Purged(3, 10)


def test_a_kind_of_record_that_is_not_known_is_a_newer_version_s() -> None:
    with pytest.raises(TooOldError, match=r"too old for it \(a record of kind 99\): upgrade this process"):
        decode_record(msgspec.msgpack.encode([99, 1, 2]))
