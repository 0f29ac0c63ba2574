"""Calls as the bodies of both protocols. Values of any type are taken: mutations put them anywhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

ELEMENT_NAMES = {
    "Attributes": "Attribute",
    "AttributeNames": "AttributeName",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "MessageAttributeNames": "MessageAttributeName",
    "MessageAttributes": "MessageAttribute",
    "MessageSystemAttributes": "MessageSystemAttribute",
    "tags": "Tag",
    "Tags": "Tag",
    "TagKeys": "TagKey",
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
}
_DEPTH = 12


def json_body(parameters: Any, *, ascii_only: bool) -> bytes:
    """JSON; bytes are base64. Surrogates are written as escapes, or as bytes that are no UTF-8."""
    text = json.dumps(parameters, default=_base64, ensure_ascii=ascii_only)
    return text.encode("utf-8", "surrogatepass")


def form_body(action: str, parameters: Any) -> str:
    """A form; what has no place in one is written as its text."""
    pairs = [("Action", action), ("Version", "2012-11-05")]
    if isinstance(parameters, dict):
        for name, value in parameters.items():
            element = (
                f"{action}RequestEntry" if name == "Entries" else ELEMENT_NAMES.get(str(name), str(name))
            )
            pairs += _pairs(element, value, "Key" if element == "Tag" else "Name", _DEPTH)
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)


def _pairs(name: str, value: Any, key_name: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth == 0:
        return
    if isinstance(value, list):
        for number, item in enumerate(value, 1):
            if isinstance(item, dict):
                for member, inner in item.items():
                    element = ELEMENT_NAMES.get(str(member), str(member))
                    yield from _pairs(f"{name}.{number}.{element}", inner, "Name", depth - 1)
            else:
                yield from _pairs(f"{name}.{number}", item, key_name, depth - 1)
    elif isinstance(value, dict):
        for number, (key, item) in enumerate(value.items(), 1):
            yield f"{name}.{number}.{key_name}", str(key)
            if isinstance(item, dict):
                for member, inner in item.items():
                    yield from _pairs(f"{name}.{number}.Value.{member}", inner, "Name", depth - 1)
            else:
                yield from _pairs(f"{name}.{number}.Value", item, key_name, depth - 1)
    elif isinstance(value, bytes):
        yield name, base64.b64encode(value).decode()
    else:
        yield name, str(value)


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="-_.~")


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
