"""Step 1, validate: which protocol a request speaks, which action it asks for, with which parameters."""

from __future__ import annotations

import re

from penstock.sqs.actions import ACTIONS
from penstock.sqs.call import Call, read_call
from penstock.sqs.errors import SqsError
from penstock.sqs.http import HttpRequest
from penstock.sqs.json_protocol import TARGET_PREFIX
from penstock.sqs.protocol import Protocol, protocol_of

_ACTION = re.compile(r"(?:^|&)Action=([A-Za-z]{1,64})(?:&|$)")
_FORM_BYTES = 4096


Validated = tuple[Protocol, Call | None, SqsError | None]
"""A request as far as it could be read; either a call or what is wrong with it."""


def validate(request: HttpRequest) -> Validated:
    """Never raises: who may not ask at all is told that, and not what is wrong with the question."""
    protocol = protocol_of(request)
    try:
        return protocol, read_call(request, protocol), None
    except SqsError as refused:
        return protocol, None, refused


def asked_action(request: HttpRequest, protocol: Protocol) -> str:
    """The action that a request names which is no call for another reason; empty where there is no such action."""
    if protocol is Protocol.JSON:
        name = request.headers.get("x-amz-target", "").removeprefix(TARGET_PREFIX)
    else:
        form = request.body[:_FORM_BYTES].decode("latin-1")
        found = _ACTION.search(request.query[:_FORM_BYTES]) or _ACTION.search(form)
        name = found[1] if found is not None else ""
    return name if name in ACTIONS else ""
