"""The Query protocol's answers: results and errors as XML, element by element as in SQS.

Lists and maps are flat: repeated elements without a wrapper. Characters that XML cannot carry become U+FFFD; a carriage
return is written as a reference, or a parser would turn it into a newline and break checksums.
"""

from __future__ import annotations

import base64
import re
from functools import cache
from typing import Any

import msgspec

from penstock.sqs.actions import Action
from penstock.sqs.errors import SqsError
from penstock.sqs.messages.bodies import is_allowed
from penstock.sqs.shapes.kinds import Result

CONTENT_TYPE = "text/xml"
NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"
PROLOGUE = '<?xml version="1.0"?>'
UNKNOWN_OPERATION = b"<UnknownOperationException/>"
"""The whole answer to a request that names no action."""

ELEMENT_NAMES: dict[str, str] = {
    "QueueUrls": "QueueUrl",
    "queueUrls": "QueueUrl",
    "Attributes": "Attribute",
    "Tags": "Tag",
    "Messages": "Message",
    "MessageAttributes": "MessageAttribute",
    "StringListValues": "StringListValue",
    "BinaryListValues": "BinaryListValue",
}
"""Members whose elements have another name; lists of entries are named after the class of the entry."""

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def escape(text: str) -> str:
    """Text as element content. The first check of all bytes keeps it at 2 µs a KiB, not 9."""
    if not is_allowed(text.encode()):
        text = _FORBIDDEN.sub("\ufffd", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")


def encode_result(action: Action, result: Result | None, request_id: str) -> bytes:
    """The whole answer of a success; actions without output have no result element."""
    name = action.name
    parts = [PROLOGUE, f'<{name}Response xmlns="{NAMESPACE}">']
    if result is not None:
        content: list[str] = []
        _write_members(content, result)
        parts += [f"<{name}Result>", *content, f"</{name}Result>"] if content else [f"<{name}Result/>"]
    parts.append(
        f"<ResponseMetadata><RequestId>{escape(request_id)}</RequestId></ResponseMetadata></{name}Response>"
    )
    return "".join(parts).encode()


def encode_error(error: SqsError, request_id: str) -> bytes:
    """The whole answer of a failure."""
    return (
        f'{PROLOGUE}<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>{error.fault}</Type>'
        f"<Code>{escape(error.query_code)}</Code><Message>{escape(error.query_message)}</Message><Detail/>"
        f"</Error><RequestId>{escape(request_id)}</RequestId></ErrorResponse>"
    ).encode()


def _write_members(parts: list[str], shape: msgspec.Struct) -> None:
    for attribute, name, is_renamed in _elements(type(shape)):
        value = getattr(shape, attribute)
        if type(value) is str:
            parts.append(f"<{name}>{escape(value)}</{name}>")
        elif isinstance(value, dict):
            key_name = "Key" if name == "Tag" else "Name"
            for key, item in value.items():
                parts.append(f"<{name}><{key_name}>{escape(key)}</{key_name}>")
                _write(parts, "Value", item)
                parts.append(f"</{name}>")
        elif isinstance(value, list):
            for item in value:
                is_entry = isinstance(item, msgspec.Struct) and not is_renamed
                _write(parts, type(item).__name__ if is_entry else name, item)
        elif value is not None:
            _write(parts, name, value)


def _write(parts: list[str], name: str, value: Any) -> None:
    if isinstance(value, msgspec.Struct):
        parts.append(f"<{name}>")
        _write_members(parts, value)
        parts.append(f"</{name}>")
    else:
        parts.append(f"<{name}>{_text(value)}</{name}>")


def _text(value: Any) -> str:
    match value:
        case str():
            return escape(value)
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return str(value)


@cache
def _elements(shape: type[msgspec.Struct]) -> list[tuple[str, str, bool]]:
    """The name of each field, the name of its element, and whether the latter is in the table above."""
    return [
        (
            field.name,
            ELEMENT_NAMES.get(field.encode_name, field.encode_name),
            field.encode_name in ELEMENT_NAMES,
        )
        for field in msgspec.structs.fields(shape)
    ]
