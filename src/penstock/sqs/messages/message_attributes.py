"""Typed attributes of messages: which are allowed, their size, and which of them a receiver requested."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from penstock.sqs.compatibility import MESSAGE_ATTRIBUTES
from penstock.sqs.errors import SqsError
from penstock.sqs.messages.bodies import is_allowed
from penstock.sqs.refusals import INVALID_CHARACTERS, invalid_parameter, unsupported_operation
from penstock.sqs.shapes.messages import MessageAttributeValue

TRACE_HEADER = "AWSTraceHeader"
NAME_CHARACTERS = 256
TYPE_CHARACTERS = 256

Attributes = Mapping[str, MessageAttributeValue]

# The service also takes Latin letters with accents, though its manual does not say so.
_NAME = re.compile(r"[A-Za-z0-9_.\u00c0-\u017f-]+")
_RESERVED = ("aws.", "amazon.")
_TYPE = re.compile(r"(String|Number|Binary)(\..+)?")
_NUMBER = re.compile(r"[+-]?(?:(\d{1,200})(?:\.(\d{0,200}))?|\.(\d{1,200}))(?:[eE]([+-]?\d{1,4}))?", re.ASCII)
_DIGITS = 38
_EXPONENT_MAX_NEGATIVE, _EXPONENT_MAX_POSITIVE = 128, 126
_EVERYTHING = frozenset({"All", ".*", "*"})


def check_message_attributes(attributes: Attributes) -> None:
    """Raises unless every attribute is one the service would take."""
    if len(attributes) > MESSAGE_ATTRIBUTES:
        raise invalid_parameter(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum "
            f"[{MESSAGE_ATTRIBUTES}]."
        )
    for name, value in attributes.items():
        _check_name(name)
        _check_value(name, value)


def check_system_attributes(attributes: Attributes) -> None:
    """Raises unless they are the one system attribute that can be sent, and that one a text."""
    for name, value in attributes.items():
        if name != TRACE_HEADER:
            raise invalid_parameter(f"Message system attribute name '{name[:256]}' is invalid.")
        if value.data_type != "String":
            raise invalid_parameter(
                f"Message system attribute '{name}' has an invalid type. The only supported type is String."
            )
        _check_value(name, value)


def _check_name(name: str) -> None:
    if not name:
        raise invalid_parameter("The request must contain non-empty message attribute name.")
    if len(name) > NAME_CHARACTERS:
        raise invalid_parameter(
            f"Message (user) attribute names must not be longer than {NAME_CHARACTERS} characters."
        )
    if not _NAME.fullmatch(name):
        raise invalid_parameter(
            f"Message (user) attribute name '{name}' is invalid. Attribute name can contain A-Z, a-z, 0-9, "
            "underscore (_), hyphen (-), and period (.) characters."
        )
    if name.lower().startswith(_RESERVED) or name[0] == "." or name[-1] == ".":
        raise invalid_parameter(
            f"Message (user) attribute name '{name}' is invalid. You can't use message attribute names "
            "beginning with 'AWS.' or 'Amazon.', and a name can't start or end with '.'."
        )


def _check_value(name: str, value: MessageAttributeValue) -> None:
    kind = _base_type(name, value.data_type)
    if value.string_list_values or value.binary_list_values:
        raise unsupported_operation(
            "Message attribute list values in SendMessage operation are not supported."
        )
    if kind == "Binary":
        if not value.binary_value or value.string_value is not None:
            raise _empty(name, kind)
        return
    text = value.string_value
    if not text or value.binary_value is not None:
        raise _empty(name, kind)
    if not is_allowed(text.encode()):
        raise invalid_parameter(INVALID_CHARACTERS)
    if kind == "Number" and not _is_number(text):
        raise invalid_parameter(f"Can't cast the value of message (user) attribute '{name}' to a number.")


def _base_type(name: str, data_type: str) -> str:
    match = _TYPE.fullmatch(data_type) if len(data_type) <= TYPE_CHARACTERS else None
    if match is None or not is_allowed(data_type.encode()):
        raise invalid_parameter(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported "
            "type prefixes is Binary, Number, and String."
        )
    return match[1]


def _empty(name: str, kind: str) -> SqsError:
    return invalid_parameter(
        f"Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'."
    )


def _is_number(text: str) -> bool:
    """Up to 38 digits, between -10^128 and 10^126."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return False
    whole, fraction, exponent = match[1] or "", match[2] or match[3] or "", int(match[4] or 0)
    digits = (whole + fraction).lstrip("0")
    if len(digits.rstrip("0")) > _DIGITS:
        return False
    magnitude = len(digits) - len(fraction) + exponent  # the number is below 10^magnitude
    most = _EXPONENT_MAX_NEGATIVE if text[0] == "-" else _EXPONENT_MAX_POSITIVE
    return not digits or magnitude <= most or (magnitude == most + 1 and digits.rstrip("0") == "1")


def attributes_bytes(attributes: Attributes) -> int:
    """The size that attributes add to a message: name, type and value of each."""
    size = 0
    for name, value in attributes.items():
        content = (
            value.binary_value if value.binary_value is not None else (value.string_value or "").encode()
        )
        size += len(name.encode()) + len(value.data_type.encode()) + len(content)
    return size


def selected_attributes(
    attributes: Mapping[str, MessageAttributeValue], names: Iterable[str]
) -> dict[str, MessageAttributeValue]:
    """Those a receiver asked for: by name, by `prefix.*`, or everything; unknown names match nothing."""
    exact: set[str] = set()
    prefixes: list[str] = []
    for name in names:
        if name in _EVERYTHING:
            return dict(attributes)
        if name.endswith(".*"):
            prefixes.append(name[:-2])
        else:
            exact.add(name)
    starts = tuple(prefixes)
    return {
        name: value
        for name, value in attributes.items()
        if name in exact or (starts and name.startswith(starts))
    }


def selected_system_attributes(values: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those a receiver asked for; a name without a value is skipped."""
    wanted = set(names)
    return dict(values) if "All" in wanted else {name: values[name] for name in values if name in wanted}
