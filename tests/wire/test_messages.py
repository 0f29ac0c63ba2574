"""Messages: every kind comes back as it went, old and new peers understand each other, garbage is refused."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.origin import Origin
from penstock.model.settings import QueueSettings
from penstock.wire import messages
from penstock.wire.credentials import read_greeting
from penstock.wire.messages import (
    Delete,
    DeliveredBatch,
    Delivery,
    Failed,
    Hello,
    Peek,
    PeekFilter,
    Receipt,
    Receive,
    Send,
    SendResult,
    decode_answer,
    decode_request,
    encode_message,
    is_known_request,
)

REQUESTS: tuple[type[msgspec.Struct], ...] = get_args(messages.Request)
ANSWERS: tuple[type[msgspec.Struct], ...] = get_args(messages.Answer)

INTEGERS = st.integers(0, 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
RUNS = st.lists(st.tuples(INTEGERS, INTEGERS), max_size=4)
SETTINGS = st.builds(QueueSettings)
ORIGINS = st.builds(
    Origin,
    INTEGERS,
    TEXT,
    st.sampled_from(["max-receives", "expired", "overflow", "queue-deleted", "redrive"]),
    RUNS,
    INTEGERS,
    st.lists(INTEGERS, max_size=3),
    INTEGERS,
)


def any_of(kind: Any) -> st.SearchStrategy[Any]:
    """A value of a field's type, by the types the protocol uses."""
    simple: dict[Any, st.SearchStrategy[Any]] = {
        int: INTEGERS,
        str: TEXT,
        bytes: st.binary(max_size=40),
        bool: st.booleans(),
        float: st.floats(allow_nan=False, allow_infinity=False),
        QueueSettings: SETTINGS,
        Origin: ORIGINS,
        messages.MessageState: st.sampled_from(["ready", "leased", "delayed", "moving"]),
    }
    return simple[kind] if kind in simple else composed(kind)


def composed(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return struct_of(kind)
    if kind is type(None):
        return st.none()
    arguments = get_args(kind)
    match getattr(kind, "__origin__", None):
        case origin if origin is list:
            return st.lists(any_of(arguments[0]), max_size=3)
        case origin if origin is tuple:
            return st.tuples(*map(any_of, arguments))
        case origin if origin is dict:
            return st.dictionaries(any_of(arguments[0]), any_of(arguments[1]), max_size=3)
        case _:
            return st.one_of(*map(any_of, arguments))


def struct_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    fields = msgspec.structs.fields(kind)
    return st.tuples(*(any_of(field.type) for field in fields)).map(lambda values: kind(*values))


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_every_request_comes_back_as_it_went(kind: type[msgspec.Struct]) -> None:
    @given(struct_of(kind))
    def comes_back(message: Any) -> None:
        assert decode_request(encode_message(message)) == message

    comes_back()


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_every_answer_comes_back_as_it_went(kind: type[msgspec.Struct]) -> None:
    @given(struct_of(kind))
    def comes_back(message: Any) -> None:
        assert decode_answer(encode_message(message)) == message

    comes_back()


def test_tags_are_the_numbers_they_always_were() -> None:
    tags = {kind.__name__: kind.__struct_config__.tag for kind in (*REQUESTS, *ANSWERS)}
    assert len(set(tags.values())) == len(tags)
    assert {*range(1, 22), *range(100, 114)} <= set(tags.values())
    assert (tags["Hello"], tags["Send"], tags["Delete"], tags["Failed"], tags["Delivery"]) == (
        1,
        8,
        13,
        100,
        106,
    )


def test_heads_are_arrays_in_field_order_after_the_tag() -> None:
    assert msgspec.msgpack.decode(encode_message(Send(7, 9, 3))) == [8, 7, 9, 3, 0, 0, 0, 0, False, 0, []]
    assert msgspec.msgpack.decode(encode_message(Hello([1], "me"))) == [1, [1], "me", "", b""]
    assert msgspec.msgpack.decode(encode_message(Delete([Receipt(b"t", [(5, 2)])]))) == [
        13,
        [[b"t", [[5, 2]], None]],
    ]
    head = DeliveredBatch(1, 2, 3, 4, 5, [6, 7])
    assert msgspec.msgpack.decode(encode_message(Delivery(b"t", 9, [head]))) == [
        106,
        b"t",
        9,
        [[1, 2, 3, 4, 5, [6, 7], None, None, 0, 0, 0]],
    ]


def test_fields_with_a_default_may_be_left_out_and_fields_from_the_future_are_ignored() -> None:
    encode = msgspec.msgpack.encode
    assert decode_request(encode([9, 7])) == Receive(7)
    future = encode([9, 7, 5, 0, None, None, None, b"", "", "new", {"more": 1}])
    assert decode_request(future) == Receive(7, 5)
    assert decode_request(encode([16, 7, 0, 10, [["ready"]]])) == Peek(7, 0, 10, PeekFilter(["ready"]))
    assert decode_answer(encode([105, [[1, 2]], [], 3, 0, "new"])) == SendResult([(1, 2)], [], 3)


@pytest.mark.parametrize(
    "head",
    [
        [],
        [0],
        [100, "bad-request", "an answer is no request"],
        [8],
        [8, "seven"],
        [13, [[b"token", [[1]]]]],
        [10, 7],
        {"tag": 8, "queue_id": 7},
        "text",
        None,
    ],
    ids=str,
)
def test_what_is_no_request_is_refused(head: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_request(msgspec.msgpack.encode(head))


@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_decoded_or_refused(head: bytes) -> None:
    for decode in (decode_request, decode_answer):
        try:
            decode(head)
        except msgspec.DecodeError:
            pass


def test_deep_nesting_is_refused_without_harm() -> None:
    nested = b"\x91" * 100_000 + b"\xc0"
    for head in (
        nested,
        b"\x92\x01" + nested,
        b"\x92\x02" + nested,
        b"\x92\x04" + nested,
        b"\x81\x01" * 100_000,
    ):
        with pytest.raises(msgspec.DecodeError):
            decode_request(head)
        is_known_request(head)


@pytest.mark.parametrize(
    "head",
    [
        b"\xa1\x80",
        b"\x91\xa1\x80",
        b"\x92\x07\xa1\x80",
        b"\x93\x01\x91\x01\xa1\x80",
        b"\x93\x04\xa1a\x81\xa1\x80\x01",
    ],
)
def test_text_that_is_not_utf_8_is_refused_without_harm(head: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_request(head)
    assert not is_known_request(head)
    assert read_greeting(head) is None
    with pytest.raises(msgspec.DecodeError):
        decode_answer(b"\x93\x64\xa1\x80\xa1\x80")


def test_an_announced_length_is_not_believed() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_request(b"\x92\x0d\xdd\xff\xff\xff\xff")
    with pytest.raises(msgspec.DecodeError):
        decode_answer(b"\x93\x64\xdb\xff\xff\xff\xffshort")


def test_answers_and_requests_do_not_mix() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_answer(encode_message(Hello([1], "me")))
    with pytest.raises(msgspec.ValidationError):
        decode_request(encode_message(Failed("bad-request", "no")))
