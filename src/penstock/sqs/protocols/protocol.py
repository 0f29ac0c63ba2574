"""Which of the wire protocols a request speaks."""

from __future__ import annotations

import re
from enum import Enum

from penstock.sqs.protocols.http import HttpRequest


class Protocol(Enum):
    """How a request is read and its answer written."""

    JSON = "json"
    """AWS JSON 1.0."""
    QUERY = "query"
    """A form or query string in, XML out."""
    QUERY_JSON = "query-json"
    """A query string in, the XML's structure as JSON out: what a GET with `Accept: application/json` gets."""
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
