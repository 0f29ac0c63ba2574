"""Converts SQS's typed attributes to Penstock's plain ones, and back, without losing a byte.

A consumer of the native protocol sees natural values: texts, whole numbers and bytes under the names with which they were
sent. Types that do not follow from the value (a label, a number that is not a plain integer) are in one reserved
attribute. Names that begin with `AWS.` cannot be sent through SQS, so ours use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from penstock.sqs.shapes.messages import MessageAttributeValue

PREFIX = "AWS."
DATA_TYPES = PREFIX + "DataTypes"

Scalar = str | int | float | bool | bytes

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[dict[str, Any]] = msgspec.msgpack.Decoder(dict[str, Any])


class StoredAttributes(NamedTuple):
    """The stored attributes of one message."""

    attributes: dict[str, MessageAttributeValue]
    system: dict[str, str]
    """Texts that the front end keeps with the message, by the names it gave them."""


def encode_attributes(attributes: Mapping[str, MessageAttributeValue], system: Mapping[str, str]) -> bytes:
    """The bytes to store; none for a message without any."""
    if not attributes and not system:
        return b""
    stored: dict[str, Scalar] = {}
    types: list[str] = []
    for name, value in attributes.items():
        scalar = _scalar(value)
        stored[name] = scalar
        if value.data_type != _natural_type(scalar):
            types += (name, value.data_type)
    if types:
        # Neither names nor types may contain a newline, so it can separate them.
        stored[DATA_TYPES] = "\n".join(types)
    for name, text in system.items():
        stored[PREFIX + name] = text
    return _encoder.encode(stored)


def _scalar(value: MessageAttributeValue) -> Scalar:
    if value.binary_value is not None:
        return value.binary_value
    text = value.string_value or ""
    if value.data_type.startswith("Number") and _is_plain_integer(text):
        return int(text)
    return text


def _is_plain_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 18 and str(int(text)) == text


def _natural_type(value: Scalar) -> str:
    match value:
        case bytes():
            return "Binary"
        case bool():
            return "String"
        case int() | float():
            return "Number"
        case _:
            return "String"


def decode_attributes(stored: bytes) -> StoredAttributes:
    """The attributes of a stored message from any sender; values that are not ours are shown as text."""
    if not stored:
        return StoredAttributes({}, {})
    try:
        values = _decoder.decode(stored)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A native producer sent bytes that are no attributes; the body must stay receivable all the same.
        return StoredAttributes({}, {})
    listed = values.pop(DATA_TYPES, "")
    flat = listed.split("\n") if isinstance(listed, str) else []
    types = dict(zip(flat[::2], flat[1::2], strict=False))
    attributes: dict[str, MessageAttributeValue] = {}
    system: dict[str, str] = {}
    for name, value in values.items():
        if name.startswith(PREFIX):
            if isinstance(value, str):
                system[name[len(PREFIX) :]] = value
        elif isinstance(value, bytes):
            attributes[name] = MessageAttributeValue(data_type=types.get(name, "Binary"), binary_value=value)
        else:
            attributes[name] = MessageAttributeValue(
                data_type=types.get(name, _natural_type(value)), string_value=_text(value)
            )
    return StoredAttributes(attributes, system)


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            try:
                return msgspec.json.encode(value, enc_hook=_unusual).decode()
            except RecursionError:  # writing it out goes deeper than reading it
                return ""


def _unusual(value: Any) -> Any:
    """Values that JSON cannot express; the contents of an extension type, never its memory address."""
    return value.data if isinstance(value, msgspec.msgpack.Ext) else repr(value)
