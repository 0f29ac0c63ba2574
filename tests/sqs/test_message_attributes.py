"""User attributes and system attributes: what may be sent, what a receiver gets, how they are stored."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.messages.bodies import is_allowed
from penstock.sqs.messages.message_attributes import (
    attributes_bytes,
    check_message_attributes,
    check_system_attributes,
    selected_attributes,
    selected_system_attributes,
)
from penstock.sqs.messages.stored_attributes import StoredAttributes, decode_attributes, encode_attributes
from penstock.sqs.shapes.messages import MessageAttributeValue

VALID = {
    "string": MessageAttributeValue(data_type="String", string_value="v"),
    "labelled": MessageAttributeValue(data_type="String.json", string_value="{}"),
    "number": MessageAttributeValue(data_type="Number", string_value="-12.5e3"),
    "binary": MessageAttributeValue(data_type="Binary.png", binary_value=b"\x00\xff"),
    "a.b-c_d": MessageAttributeValue(data_type="String", string_value="\t\n\r\U0001f600"),
    "øßä": MessageAttributeValue(data_type="String", string_value="v"),
    "x" * 256: MessageAttributeValue(data_type="String", string_value="v"),
}


def text(value: str | None, data_type: str = "String") -> MessageAttributeValue:
    return MessageAttributeValue(data_type=data_type, string_value=value)


def refused(name: str, value: MessageAttributeValue) -> SqsError:
    with pytest.raises(SqsError) as caught:
        check_message_attributes({name: value})
    return caught.value


def test_valid_attributes() -> None:
    check_message_attributes(VALID)


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "x" * 257, "AWS.x", "aws.x", "Amazon.x", "AMAZON.X", ".a", "a.", "a\n", "日本"]
)
def test_bad_names(name: str) -> None:
    assert refused(name, text("v")).kind is ErrorKind.INVALID_PARAMETER_VALUE


@pytest.mark.parametrize(
    "data_type", ["", "string", "Strin", "Stringy", "String.", "Object", "String." + "x" * 256]
)
def test_bad_types(data_type: str) -> None:
    error = refused("x", text("v", data_type))
    assert error.kind is ErrorKind.INVALID_PARAMETER_VALUE
    assert error.message == (
        "The message attribute 'x' has an invalid message attribute type, the set of supported type prefixes "
        "is Binary, Number, and String."
    )


@pytest.mark.parametrize("value", ["", None])
def test_values_must_not_be_empty(value: str | None) -> None:
    error = refused("ErrorDetails", text(value))
    assert error.kind is ErrorKind.INVALID_PARAMETER_VALUE
    assert (
        error.message
        == "Message (user) attribute 'ErrorDetails' must contain a non-empty value of type 'String'."
    )
    refused("x", MessageAttributeValue(data_type="Binary", binary_value=b""))
    refused("x", MessageAttributeValue(data_type="Binary", string_value="v"))
    refused("x", MessageAttributeValue(data_type="String", binary_value=b"v"))


def test_a_bad_character_in_a_value_is_not_a_bad_body() -> None:
    assert refused("x", text("\x01")).kind is ErrorKind.INVALID_PARAMETER_VALUE


@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-0",
        "1",
        "+1",
        "1.5",
        ".5",
        "5.",
        "1e126",
        "-1e128",
        "1E-128",
        "9" * 38,
        "0" * 50 + "1",
        "1" + "0" * 60,
    ],
)
def test_numbers(number: str) -> None:
    check_message_attributes({"n": text(number, "Number")})


@pytest.mark.parametrize(
    "number",
    [
        "x",
        "1x",
        "1 ",
        "0x1",
        "1e",
        "",
        "-",
        ".",
        "1e127",
        "2e126",
        "-1e129",
        "9" * 39,
        "٣",
        "1_0",
        "NaN",
        "1" * 300,
    ],
)
def test_what_is_no_number(number: str) -> None:
    assert refused("n", text(number, "Number.int")).kind is ErrorKind.INVALID_PARAMETER_VALUE


def test_at_most_ten() -> None:
    check_message_attributes({f"a{index}": text("v") for index in range(10)})
    with pytest.raises(SqsError) as caught:
        check_message_attributes({f"a{index}": text("v") for index in range(11)})
    assert caught.value.kind is ErrorKind.INVALID_PARAMETER_VALUE


def test_lists_are_not_supported() -> None:
    value = MessageAttributeValue(data_type="String", string_value="v", string_list_values=["a"])
    assert refused("x", value).kind is ErrorKind.UNSUPPORTED_OPERATION


def test_one_system_attribute_can_be_sent() -> None:
    check_system_attributes({"AWSTraceHeader": text("Root=1")})
    for bad in (
        {"SenderId": text("x")},
        {"AWSTraceHeader": text("1", "Number")},
        {"AWSTraceHeader": text("")},
    ):
        with pytest.raises(SqsError):
            check_system_attributes(bad)


def test_the_size_is_name_type_and_value() -> None:
    assert attributes_bytes({"é": text("ü", "String"), "b": VALID["binary"]}) == 2 + 6 + 2 + 1 + 10 + 2


SENT = {"General": text("Kenobi"), "Hello": text("There"), "Help.Me": text("Me")}


@pytest.mark.parametrize(
    ("names", "selected"),
    [
        ([], []),
        (["All"], ["General", "Hello", "Help.Me"]),
        ([".*"], ["General", "Hello", "Help.Me"]),
        (["*"], ["General", "Hello", "Help.Me"]),
        (["Hello"], ["Hello"]),
        (["Hel.*"], ["Hello", "Help.Me"]),
        (["Help.*"], ["Help.Me"]),
        (["hello", "AWS.", "..foo", "Nope"], []),
        (["Gen.*", "Hello"], ["General", "Hello"]),
    ],
)
def test_what_a_receiver_asked_for(names: list[str], selected: list[str]) -> None:
    assert sorted(selected_attributes(SENT, names)) == selected


def test_system_attributes_that_a_receiver_asked_for() -> None:
    values = {"SenderId": "me", "SentTimestamp": "1"}
    assert selected_system_attributes(values, ["All"]) == values
    assert selected_system_attributes(values, ["SenderId", "SequenceNumber", "Nope"]) == {"SenderId": "me"}
    assert selected_system_attributes(values, []) == {}


# --- characters ---------------------------------------------------------------------------------------------


@given(st.text())
def test_allowed_characters_are_those_of_xml(body: str) -> None:
    allowed = all(
        c in "\t\n\r" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000"
        for c in body
    )
    assert is_allowed(body.encode("utf-8", "replace")) is allowed


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        ("\t\n\r ~", True),
        ("\x7f\x85\xa0", True),
        ("\ud7ff\ue000\ufffd\U00010000\U0010ffff", True),
        ("\x00", False),
        ("\x0b", False),
        ("\x1f", False),
        ("é\ufffe", False),
        ("\uffff", False),
    ],
)
def test_the_edges_of_what_is_allowed(body: str, allowed: bool) -> None:
    assert is_allowed(body.encode()) is allowed


# --- storage ------------------------------------------------------------------------------------------------

_NAMES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1).filter(
    lambda name: not name.startswith("AWS.")
)
_TYPES = st.sampled_from(["String", "Number", "String.x", "Number.java.lang.Long", "Number.f"])
_STORED = st.dictionaries(
    _NAMES,
    st.one_of(
        st.builds(text, st.text(st.characters(codec="utf-8")), _TYPES),
        st.builds(text, st.integers().map(str), _TYPES),
        st.builds(text, st.sampled_from(["007", "-0", "+5", "1.50", "1e3", "9" * 30]), _TYPES),
        st.builds(
            lambda kind, value: MessageAttributeValue(data_type=kind, binary_value=value),
            st.sampled_from(["Binary", "Binary.png"]),
            st.binary(),
        ),
    ),
)


@given(
    _STORED,
    st.dictionaries(st.sampled_from(["AWSTraceHeader", "SenderId"]), st.text(st.characters(codec="utf-8"))),
)
def test_attributes_are_stored_without_losing_a_byte(
    attributes: dict[str, MessageAttributeValue], system: dict[str, str]
) -> None:
    assert decode_attributes(encode_attributes(attributes, system)) == (attributes, system)


def test_native_consumers_see_natural_values() -> None:
    stored = encode_attributes(
        {
            "text": text("v"),
            "number": text("5", "Number"),
            "long": text("6", "Number.java.lang.Long"),
            "exact": text("1.50", "Number"),
            "bytes": MessageAttributeValue(data_type="Binary", binary_value=b"\x00"),
        },
        {"SenderId": "me"},
    )
    assert msgspec.msgpack.decode(stored) == {
        "text": "v",
        "number": 5,
        "long": 6,
        "exact": "1.50",
        "bytes": b"\x00",
        "AWS.DataTypes": "long\nNumber.java.lang.Long\nexact\nNumber",
        "AWS.SenderId": "me",
    }
    assert encode_attributes({}, {}) == b""


def test_what_native_producers_sent_is_shown_as_well_as_it_can_be() -> None:
    stored = msgspec.msgpack.encode(
        {"b": True, "f": 1.5, "i": -3, "l": [1, "x"], "n": None, "AWS.DataTypes": 7, "AWS.odd": 7}
    )
    attributes, system = decode_attributes(stored)
    assert {name: (value.data_type, value.string_value) for name, value in attributes.items()} == {
        "b": ("String", "true"),
        "f": ("Number", "1.5"),
        "i": ("Number", "-3"),
        "l": ("String", '[1,"x"]'),
        "n": ("String", "null"),
    }
    assert system == {}


@given(st.binary())
def test_bytes_that_are_no_attributes_never_block_a_message(stored: bytes) -> None:
    assert isinstance(decode_attributes(stored), StoredAttributes)


@pytest.mark.parametrize("levels", range(900, 1_100))
def test_attributes_that_nest_deeply_never_block_a_message(levels: int) -> None:
    assert decode_attributes(b"\x81\xa1a" + b"\x91" * levels + b"\xc0").system == {}


def test_an_extension_is_shown_as_what_it_holds_and_not_as_where_it_is() -> None:
    shown = decode_attributes(b"\x81\xa1a\xc7\x01\x05x").attributes["a"].string_value
    assert shown == '"eA=="'
