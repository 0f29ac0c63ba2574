"""The wire protocol of a request, and complete answers in it."""

from __future__ import annotations

import re
from enum import Enum
from typing import assert_never

from penstock.sqs.actions import Action
from penstock.sqs.errors import SqsError
from penstock.sqs.protocols import json_protocol, query_json_answers, xml_answers
from penstock.sqs.protocols.http import HttpRequest, HttpResponse
from penstock.sqs.shapes.kinds import Result


class Protocol(Enum):
    """How a request is read and its answer written."""

    JSON = "json"
    """AWS JSON 1.0."""
    QUERY = "query"
    """A form or query string in, XML out."""
    QUERY_JSON = "query-json"
    """A query string in, the XML's structure as JSON out: for a GET with `Accept: application/json`."""
    NONE = "none"
    """No action was asked for in any way."""


_JSON_TYPES = ("application/x-amz-json-1.0", "application/x-amz-json-1.1")
_ACTION = re.compile(r"(?:^|&)Action=")
_ACTION_BYTES = re.compile(rb"(?:^|&)Action=")


def protocol_of(request: HttpRequest) -> Protocol:
    """The protocol of a request; never fails."""
    headers = request.headers
    if request.method == "POST":
        if "x-amz-target" in headers or headers.get("content-type", "").startswith(_JSON_TYPES):
            return Protocol.JSON
        if _ACTION_BYTES.search(request.body) or _ACTION.search(request.query):
            return Protocol.QUERY
    elif request.method == "GET" and _ACTION.search(request.query):
        return Protocol.QUERY_JSON if _accepts_json(headers.get("accept", "")) else Protocol.QUERY
    return Protocol.NONE


def _accepts_json(accept: str) -> bool:
    return accept.split(";", 1)[0].split(",", 1)[0].strip() == "application/json"


REQUEST_ID = "x-amzn-RequestId"

_JSON_HEADER = ("Content-Type", json_protocol.CONTENT_TYPE)
_XML_HEADER = ("Content-Type", xml_answers.CONTENT_TYPE)
_QUERY_JSON_HEADER = ("Content-Type", query_json_answers.CONTENT_TYPE)


def answer(protocol: Protocol, action: Action, result: Result | None, request_id: str) -> HttpResponse:
    """The answer of a success; `result` is None for actions without output."""
    request_header = (REQUEST_ID, request_id)
    match protocol:
        case Protocol.JSON:
            return HttpResponse(200, (_JSON_HEADER, request_header), json_protocol.encode_result(result))
        case Protocol.QUERY:
            body = xml_answers.encode_result(action, result, request_id)
            return HttpResponse(200, (_XML_HEADER, request_header), body)
        case Protocol.QUERY_JSON:
            body = query_json_answers.encode_result(action, result, request_id)
            return HttpResponse(200, (_QUERY_JSON_HEADER, request_header), body)
        case Protocol.NONE:
            raise ValueError("a request without an action has no result")
        case _:
            assert_never(protocol)


def refusal(protocol: Protocol, error: SqsError, request_id: str) -> HttpResponse:
    """The answer of a failure."""
    request_header = (REQUEST_ID, request_id)
    match protocol:
        case Protocol.JSON:
            headers = (_JSON_HEADER, request_header, json_protocol.query_error_header(error))
            return HttpResponse(error.status, headers, json_protocol.encode_error(error))
        case Protocol.QUERY:
            body = xml_answers.encode_error(error, request_id)
            return HttpResponse(error.status, (_XML_HEADER, request_header), body)
        case Protocol.QUERY_JSON:
            body = query_json_answers.encode_error(error, request_id)
            return HttpResponse(error.status, (_QUERY_JSON_HEADER, request_header), body)
        case Protocol.NONE:
            return HttpResponse(404, (_XML_HEADER, request_header), xml_answers.UNKNOWN_OPERATION)
        case _:
            assert_never(protocol)
