"""Whole answers: a result or an error, in the protocol the request came in."""

from __future__ import annotations

from typing import assert_never

from penstock.sqs.actions import Action
from penstock.sqs.errors import SqsError
from penstock.sqs.protocols import json_protocol, query_json_answers, xml_answers
from penstock.sqs.protocols.http import HttpResponse
from penstock.sqs.protocols.protocol import Protocol
from penstock.sqs.shapes.kinds import Result

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
