"""AWS JSON 1.0: request bodies into typed parameters, results and errors into answer bodies.

Unknown members are ignored and `null` means absent. A wrong type or broken JSON is a SerializationException in every case;
the range of values is not checked here.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from penstock.sqs.actions import ACTIONS, Action
from penstock.sqs.errors import SqsError
from penstock.sqs.protocols.http import REQUEST_BYTES
from penstock.sqs.refusals import malformed, request_too_large
from penstock.sqs.shapes.kinds import Request, Result

CONTENT_TYPE = "application/x-amz-json-1.0"
TARGET_PREFIX = "AmazonSQS."

DEPTH = 16
"""How deep a request may nest where it has to be walked; a real one nests four deep."""

OBJECTS = 2_000
"""A batch of ten messages with ten attributes each has 111. A million empty ones in 4 MiB took 1.5 s and 300 MB."""
_TEXTS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

_DECODE = {name: msgspec.json.Decoder(action.request).decode for name, action in ACTIONS.items()}
_MEMBERS = {
    name: frozenset(field.encode_name for field in msgspec.structs.fields(action.request))
    for name, action in ACTIONS.items()
}
_encode = msgspec.json.Encoder().encode


def decode_parameters(action: Action, body: bytes) -> Request:
    """The parameters of a JSON request."""
    if len(body) > REQUEST_BYTES:
        raise request_too_large(REQUEST_BYTES)
    if _has_many_objects(body):
        raise malformed(f"The request has more than {OBJECTS} objects.")
    try:
        return _DECODE[action.name](body or b"{}")
    except msgspec.ValidationError as error:
        # Only this slow path accepts null as absent: fast clients send no nulls.
        if b"null" not in body:
            raise malformed(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise malformed(str(error)) from None
    return _decode_without_nulls(action, body)


def _has_many_objects(body: bytes) -> bool:
    """Whether there are more objects than any request needs.

    JSON within a text does not count: its braces usually follow an escaped quotation mark. Only if there are many other
    braces all texts are removed first, which takes up to 0.1 s for a MiB.
    """
    if body.count(b"{") - body.count(b'{\\"') <= OBJECTS:
        return False
    return _TEXTS.sub(b"", body).count(b"{") > OBJECTS


def _decode_without_nulls(action: Action, body: bytes) -> Request:
    try:
        document = msgspec.json.decode(body)
        if not isinstance(document, dict):
            raise malformed("Expected `object`")
        members = _MEMBERS[action.name]
        known = {name: value for name, value in document.items() if name in members}
        return msgspec.convert(_without_nulls(known, DEPTH), action.request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise malformed(str(error)) from None


def _without_nulls(value: Any, depth: int) -> Any:
    if depth == 0:
        raise malformed("The request nests too deep.")
    if isinstance(value, dict):
        return {key: _without_nulls(item, depth - 1) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item, depth - 1) for item in value if item is not None]
    return value


def encode_result(result: Result | None) -> bytes:
    """The body of a success; actions without output have none."""
    return b"" if result is None else _encode(result)


def encode_error(error: SqsError) -> bytes:
    """The body of a failure."""
    return _encode({"__type": error.json_type, "message": error.message})


def query_error_header(error: SqsError) -> tuple[str, str]:
    """The header from which SDKs take the code of the Query protocol, with which old programs compare."""
    return ("x-amzn-query-error", f"{error.query_code};{error.fault}")
