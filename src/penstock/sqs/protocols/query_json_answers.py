"""The answer to a Query GET with `Accept: application/json`: the structure of the XML answer, written as JSON.

Members keep the names of the service's own model (a few start in lower case), maps are lists of names and values as in the
XML, and a member without a value is `null`, as in SQS.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.sqs.actions import Action
from penstock.sqs.errors import SqsError
from penstock.sqs.shapes.kinds import Result

CONTENT_TYPE = "application/json"

MEMBER_NAMES: dict[str, str] = {"Messages": "messages", "QueueUrls": "queueUrls"}

_encode = msgspec.json.Encoder().encode


def encode_result(action: Action, result: Result | None, request_id: str) -> bytes:
    """The whole answer of a success."""
    response: dict[str, Any] = {}
    if result is not None:
        response[f"{action.name}Result"] = _members(result)
    response["ResponseMetadata"] = {"RequestId": request_id}
    return _encode({f"{action.name}Response": response})


def encode_error(error: SqsError, request_id: str) -> bytes:
    """The whole answer of a failure."""
    details = {"Type": error.fault, "Code": error.query_code, "Message": error.query_message, "Detail": None}
    return _encode({"Error": details, "RequestId": request_id})


def _members(shape: msgspec.Struct) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for field in msgspec.structs.fields(shape):
        name = field.encode_name
        members[MEMBER_NAMES.get(name, name)] = _value(name, getattr(shape, field.name))
    return members


def _value(name: str, value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _members(value)
    if isinstance(value, list):
        return [_value(name, item) for item in value] or None
    if isinstance(value, dict):
        key_name = "Key" if name == "Tags" else "Name"
        return [{key_name: key, "Value": _value(name, item)} for key, item in value.items()] or None
    return value
