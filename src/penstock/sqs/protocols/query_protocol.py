"""The Query protocol's requests: a tree of parameters into the same typed values as JSON.

How each member is read follows from its type and from one table of exceptional names; the plan for every action is made
once, at import. Absent, bare and empty lists are all the same: empty.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from penstock.sqs.actions import ACTIONS, Action
from penstock.sqs.protocols.query_form import Node
from penstock.sqs.refusals import malformed
from penstock.sqs.shapes.kinds import Request

QUERY_NAMES: dict[str, str] = {
    "Attributes": "Attribute",
    "AttributeNames": "AttributeName",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "MessageAttributeNames": "MessageAttributeName",
    "MessageAttributes": "MessageAttribute",
    "MessageSystemAttributes": "MessageSystemAttribute",
    "StringListValues": "StringListValue",
    "BinaryListValues": "BinaryListValue",
    "tags": "Tag",
    "Tags": "Tag",
    "TagKeys": "TagKey",
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
}
"""Members with another name in Query: lists and maps are named after one of their elements."""

_KEY_NAMES = {"tags": "Key", "Tags": "Key"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")

Reader = Callable[[str, Node], Any]


class _Member(NamedTuple):
    """One field of a shape: its possible names in a form, and how its value is read."""

    field: str
    names: tuple[str, ...]
    read: Reader


_Plan = tuple[_Member, ...]


def decode_parameters(action: Action, form: Node) -> Request:
    """The parameters of a Query request."""
    request = _read_shape(action.request, _PLANS[action.name], form)
    assert isinstance(request, Request)
    return request


def _read_shape(shape: type[msgspec.Struct], plan: _Plan, form: Node) -> msgspec.Struct:
    values: dict[str, Any] = {}
    for field, names, read in plan:
        for name in names:
            node = form.children.get(name)
            if node is not None and (value := read(name, node)) is not None:
                values[field] = value
                break
    return shape(**values)


# --- values -------------------------------------------------------------------------------------------------


def _read_text(name: str, node: Node) -> str | None:
    return node.value


def _read_integer(name: str, node: Node) -> int | None:
    text = node.value
    if not text:
        return None
    value = int(text) if _INTEGER.fullmatch(text) else None
    if value is None or not -(2**31) <= value < 2**31:
        raise malformed(f"Value ({text[:80]}) for parameter {name} is invalid. Must be an integer.")
    return value


def _read_bytes(name: str, node: Node) -> bytes | None:
    if node.value is None:
        return None
    try:
        return base64.b64decode(node.value, validate=True)
    except (binascii.Error, ValueError):
        raise malformed(f"The value of parameter {name} is not valid base64.") from None


def _read_list(read: Reader) -> Reader:
    def read_list(name: str, node: Node) -> list[Any] | None:
        values = [read(name, item) for item in node.numbered()]
        return [value for value in values if value is not None] or None

    return read_list


def _read_map(key_name: str, read: Reader) -> Reader:
    def read_map(name: str, node: Node) -> dict[str, Any] | None:
        values: dict[str, Any] = {}
        for item in node.numbered():
            value = item.children.get("Value")
            values[item.text(key_name) or ""] = read(name, value or Node())
        return values or None

    return read_map


def _read_map_text(name: str, node: Node) -> str:
    return node.value or ""


def _read_nested(shape: type[msgspec.Struct]) -> Reader:
    plan = _plan(shape)

    def read_nested(name: str, node: Node) -> msgspec.Struct:
        return _read_shape(shape, plan, node)

    return read_nested


# --- plans --------------------------------------------------------------------------------------------------


def _plan(shape: type[msgspec.Struct], entries_name: str = "") -> _Plan:
    information = inspect.type_info(shape)
    assert isinstance(information, inspect.StructType)
    members: list[_Member] = []
    for field in information.fields:
        member = field.encode_name
        query_name = entries_name if member == "Entries" else QUERY_NAMES.get(member, member)
        # The JSON name is read too: some clients send it, and an empty list arrives under it.
        names = (query_name,) if query_name == member else (query_name, member)
        members.append(_Member(field.name, names, _reader(member, field.type)))
    return tuple(members)


def _reader(member: str, kind: inspect.Type) -> Reader:
    match kind:
        case inspect.UnionType(types=options):
            return _reader(member, next(one for one in options if not isinstance(one, inspect.NoneType)))
        case inspect.ListType(item_type=item):
            return _read_list(_reader(member, item))
        case inspect.DictType(value_type=value):
            read = _read_map_text if isinstance(value, inspect.StrType) else _reader(member, value)
            return _read_map(_KEY_NAMES.get(member, "Name"), read)
        case inspect.StructType(cls=shape):
            return _read_nested(shape)
        case inspect.StrType():
            return _read_text
        case inspect.BytesType():
            return _read_bytes
        case inspect.IntType():
            return _read_integer
        case _:
            raise TypeError(f"no way to read {kind} from a form")


_PLANS: dict[str, _Plan] = {
    name: _plan(action.request, f"{name}RequestEntry") for name, action in ACTIONS.items()
}
