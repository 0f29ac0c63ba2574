"""What users hand over: durations, addresses, options, messages; and what they are told when it cannot be."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import ErrorCode, OutgoingMessage, PenstockError, SentMessages
from penstock.client.connection.address import Address, parse_address
from penstock.client.consume.delivered_run import DeliveredRun
from penstock.client.consume.message import MessageView
from penstock.client.duration import Duration, milliseconds
from penstock.client.options import changes_of, settings_of
from penstock.client.produce.outgoing import (
    AttributeValue,
    Sendable,
    encode_attributes,
    encode_outgoing,
    prepared,
)
from penstock.client.queue_options import QueueOptions
from penstock.model import limits
from penstock.model.batch import Batch, encode_parts
from penstock.model.settings import SETTINGS, QueueSettings
from penstock.wire.messages import DeliveredBatch, SendResult


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (0, 0),
        (1, 1_000),
        (1.5, 1_500),
        (0.0001, 1),
        (timedelta(minutes=2), 120_000),
        (0.3, 300),
        (True, 1_000),
    ],
)
def test_durations_become_milliseconds(given_: Duration, expected: int) -> None:
    assert milliseconds(given_, "wait") == expected


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), timedelta(seconds=-1), 10**30])
def test_durations_that_are_none_are_refused_by_name(bad: Duration) -> None:
    with pytest.raises(PenstockError, match="wait is") as caught:
        milliseconds(bad, "wait")
    assert caught.value.code is ErrorCode.BAD_REQUEST


def test_a_duration_of_the_wrong_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="wait must be seconds"):
        milliseconds("20", "wait")  # type: ignore[arg-type]  # what is wrong is the test


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("penstock://127.0.0.1:9326", "127.0.0.1", 9326),
        ("penstock://queue.example", "queue.example", 9326),
        ("penstock://[::1]:4000/", "::1", 4000),
    ],
)
def test_addresses(url: str, host: str, port: int) -> None:
    address = parse_address(url)
    assert address == Address(host, port)
    assert str(port) in str(address)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:9326",
        "http://host",
        "penstock://",
        "penstock://host:port",
        "penstock://host:99999",
        "penstock://host/path",
        "penstock://user@host",
        "penstock://host?x=1",
    ],
)
def test_addresses_that_are_none_are_refused_with_an_example(url: str) -> None:
    with pytest.raises(PenstockError, match="Use for example penstock://"):
        parse_address(url)


# -- queue options -------------------------------------------------------------------------------------------


def test_options_are_settings_in_seconds() -> None:
    options = QueueOptions(
        visibility_timeout=1.5, retention=timedelta(days=1), max_receives=3, dead_letter_queue="d"
    )
    assert settings_of(options) == QueueSettings(
        visibility_timeout_ms=1_500, retention_ms=86_400_000, max_receives=3, dead_letter_queue="d"
    )
    assert changes_of(QueueOptions(default_ttl=None, max_bytes=None)) == {
        "default_ttl_ms": None,
        "max_bytes": None,
    }


def test_there_is_an_option_for_every_setting() -> None:
    names = {field.removesuffix("_ms") for field in SETTINGS}
    assert set(QueueOptions.__annotations__) == names


def test_options_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(PenstockError, match=r"no option 'colour'; they have .*retention"):
        settings_of({"colour": "red"})  # type: ignore[typeddict-unknown-key]  # what is wrong is the test
    with pytest.raises(PenstockError, match="ordering"):
        settings_of({"ordering": "random"})  # type: ignore[typeddict-item]  # what is wrong is the test


# -- messages ------------------------------------------------------------------------------------------------

NAMES = st.one_of(st.none(), st.text(min_size=1, max_size=20), st.binary(min_size=1, max_size=20))
SECONDS = st.one_of(st.none(), st.integers(0, 10_000))
VALUES = st.one_of(
    st.text(max_size=5),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    st.binary(max_size=5),
)
ATTRIBUTES = st.dictionaries(st.text(max_size=5), VALUES, max_size=4)
MESSAGES = st.builds(
    OutgoingMessage,
    st.one_of(st.binary(max_size=30), st.text(max_size=30), st.binary(max_size=9).map(bytearray)),
    st.one_of(st.none(), ATTRIBUTES),
    SECONDS,
    SECONDS,
    st.one_of(st.none(), st.integers(0, 9)),
    NAMES,
    NAMES,
)
SENDABLES = st.one_of(st.binary(max_size=30), st.text(max_size=30), MESSAGES)


def as_bytes(value: str | bytes | bytearray | memoryview) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)


def as_name(value: str | bytes | None) -> str | None:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


@given(st.lists(SENDABLES, min_size=1, max_size=6))
def test_whatever_is_sent_is_what_is_read(sent: list[Sendable]) -> None:
    encoded = encode_outgoing(sent)
    Batch(encoded).check()
    part = DeliveredRun("q", DeliveredBatch(1, len(sent), 0, len(encoded), 1, 0), memoryview(encoded))
    assert part.bodies() == [part.body(index) for index in range(part.count)]
    for index, one in enumerate(sent):
        message = one if isinstance(one, OutgoingMessage) else OutgoingMessage(one)
        read = MessageView(part, index)
        assert read.body == as_bytes(message.body)
        assert read.attributes == (message.attributes or {})
        assert read.delay_ms == (None if message.delay is None else milliseconds(message.delay, ""))
        assert read.ttl_ms == (None if message.ttl is None else milliseconds(message.ttl, ""))
        assert read.priority == (message.priority or 0)
        assert read.group == as_name(message.group)
        assert read.deduplication_id == as_name(message.deduplication_id)


@given(SENDABLES)
def test_preparing_a_message_does_not_change_it(message: Sendable) -> None:
    quick, size = prepared(message)
    assert encode_outgoing([quick]) == encode_outgoing([message])
    assert len(as_bytes(message.body if isinstance(message, OutgoingMessage) else message)) <= size


def test_views_of_something_else_than_bytes_are_sent_as_bytes() -> None:
    wide = memoryview(b"12345678").cast("I")
    assert Batch(encode_outgoing([wide, b"x", memoryview(b"plain")])).bodies() == [
        b"12345678",
        b"x",
        b"plain",
    ]


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (OutgoingMessage(b"", priority=10), "priority 10 is not between 0 and 9"),
        (OutgoingMessage(b"", priority=-1), "priority -1"),
        (OutgoingMessage(b"", group=""), "a group of 0 bytes; use 1 to 128"),
        (OutgoingMessage(b"", group="x" * 129), "a group of 129 bytes"),
        (OutgoingMessage(b"", deduplication_id=b"x" * 129), "a deduplication_id of 129 bytes"),
        (OutgoingMessage(b"", delay=-1), "delay is -1"),
        (OutgoingMessage(b"", ttl=float("nan")), "ttl is nan"),
        (OutgoingMessage(b"", {str(number): 1 for number in range(65)}), "65 attributes"),
        (OutgoingMessage(b"", {"big": "x" * limits.ATTRIBUTES_BYTES}), "bytes of attributes"),
        (OutgoingMessage(b"", {"big": 2**70}), "more than 64 bits"),
    ],
)
def test_what_a_message_cannot_carry_is_refused_with_the_reason(
    message: OutgoingMessage, complaint: str
) -> None:
    with pytest.raises(PenstockError, match=complaint):
        encode_outgoing([message])


@pytest.mark.parametrize("bad", [None, 17, ["list"], OutgoingMessage(None)])  # type: ignore[arg-type]  # what is wrong is the test
def test_what_is_no_message_is_a_type_error(bad: object) -> None:
    with pytest.raises(TypeError, match="must be bytes or str"):
        encode_outgoing([b"fine", bad])  # type: ignore[list-item]  # what is wrong is the test


@pytest.mark.parametrize("attributes", [{"a": None}, {"a": [1]}, {1: "a"}])
def test_attributes_of_the_wrong_type_are_a_type_error(attributes: dict[str, AttributeValue]) -> None:
    with pytest.raises(TypeError, match="names are str, values str, int, float, bool or bytes"):
        encode_attributes(attributes)


def test_batches_that_are_too_large_are_refused_with_what_to_do() -> None:
    with pytest.raises(PenstockError, match=r"send 1 to 10000 at once, or use queue.producer\(\)"):
        encode_outgoing([b""] * 10_001)
    with pytest.raises(PenstockError, match="send at most") as caught:
        encode_outgoing([b"x" * limits.BATCH_BYTES])
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_attributes_somebody_else_garbled_are_an_error_of_that_message_alone() -> None:
    for garbled in (b"\xc1", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({"a": None})):
        encoded = encode_parts([b"x", b"y"], attributes=[garbled, b""])
        part = DeliveredRun("q", DeliveredBatch(1, 2, 0, len(encoded), 1, 0), memoryview(encoded))
        with pytest.raises(PenstockError, match="message 1 has attributes"):
            _ = MessageView(part, 0).attributes
        assert MessageView(part, 1).attributes == {}


@given(st.lists(st.tuples(st.integers(1, 1_000), st.integers(1, 5)), max_size=5), st.data())
def test_sent_messages_are_a_sequence(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    sequences = [number for first, count in runs for number in range(first, first + count)]
    duplicates = data.draw(st.lists(st.sampled_from(range(len(sequences))), unique=True)) if sequences else []
    sent = SentMessages(SendResult(runs, duplicates, 9))
    assert len(sent) == len(sequences)
    assert [one.sequence for one in sent] == sent.sequences == sequences
    assert [sent[index] for index in range(len(sent))] == list(sent) == sent[:]
    assert [index for index, one in enumerate(sent) if one.duplicate] == sorted(sent.duplicates)
    with pytest.raises(IndexError):
        sent[len(sent)]
    with pytest.raises(IndexError):
        sent[-len(sent) - 1]
