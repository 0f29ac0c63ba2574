"""What every answer must be: a success or a refusal that says what is wrong, in the form that SDKs read."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

_REFUSAL_BYTES = 20_000
_ANSWER_BYTES = 16 * 1024 * 1024
_NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"


class Fault(Exception):
    """An answer, or the lack of one, that no request may cause."""


def check_answer(status: int, headers: dict[str, str], body: bytes, *, bodiless: bool = False) -> None:
    """Raises a fault unless the answer is one; header names are in lower case."""
    if not 200 <= status < 500:
        raise Fault(f"status {status}: {body[:300]!r}")
    if not headers.get("x-amzn-requestid"):
        raise Fault(f"no request id: {status} {headers} {body[:300]!r}")
    if bodiless:
        return
    if len(body) > (_ANSWER_BYTES if status < 300 else _REFUSAL_BYTES):
        raise Fault(f"{len(body)} bytes of answer with status {status}: {body[:200]!r}")
    kind = headers.get("content-type", "").partition(";")[0]
    try:
        if kind == "text/xml":
            _check_xml(status, body)
        elif kind in ("application/x-amz-json-1.0", "application/json"):
            _check_json(status, headers, body)
        else:
            raise Fault(f"content type {kind!r}")
    except (ValueError, ET.ParseError, KeyError, TypeError) as error:
        raise Fault(f"{type(error).__name__} {error} in {body[:300]!r}") from None


def _check_json(status: int, headers: dict[str, str], body: bytes) -> None:
    if not body and status < 300:
        return
    document = json.loads(body)
    if not isinstance(document, dict):
        raise Fault(f"no object: {body[:300]!r}")
    if status < 300:
        return
    if headers["content-type"] == "application/json":
        if not (document["Error"]["Code"] and document["RequestId"]):
            raise Fault(f"a refusal without code or request id: {body[:300]!r}")
        return
    if not document["__type"] or not isinstance(document["message"], str):
        raise Fault(f"a refusal without type or message: {body[:300]!r}")
    if ";" not in headers["x-amzn-query-error"]:
        raise Fault(f"a refusal without x-amzn-query-error: {headers}")


def _check_xml(status: int, body: bytes) -> None:
    root = ET.fromstring(body)
    if status < 300:
        if root.find(f"{_NAMESPACE}ResponseMetadata/{_NAMESPACE}RequestId") is None:
            raise Fault(f"a success without request id: {body[:300]!r}")
        return
    if root.tag == "UnknownOperationException" and status == 404:
        return
    code, request_id = root.find(f"{_NAMESPACE}Error/{_NAMESPACE}Code"), root.find(f"{_NAMESPACE}RequestId")
    if code is None or not code.text or request_id is None or not request_id.text:
        raise Fault(f"a refusal without code or request id: {body[:300]!r}")
