"""Step 2, validate: which action a request asks for, with which parameters.

It comes after step 1, authenticate. Reading parameters makes an object of every few bytes, and takes a hundred times as long
as refusing a stranger. And who may not ask at all is told that, and not what is wrong with the question.
"""

from __future__ import annotations

import re

from penstock.sqs.actions import ACTIONS
from penstock.sqs.call import Call, read_call
from penstock.sqs.http import HttpRequest
from penstock.sqs.json_protocol import TARGET_PREFIX
from penstock.sqs.protocol import Protocol

_ACTION = re.compile(r"(?:^|&)Action=([A-Za-z]{1,64})(?:&|$)")
_FORM_BYTES = 4096


def validate(request: HttpRequest, protocol: Protocol) -> Call:
    """The call that a request makes; raises what its caller must be told instead."""
    return read_call(request, protocol)


def asked_action(request: HttpRequest, protocol: Protocol) -> str:
    """The action that a request names which is no call for another reason; empty where there is no such action."""
    if protocol is Protocol.JSON:
        name = request.headers.get("x-amz-target", "").removeprefix(TARGET_PREFIX)
    else:
        form = request.body[:_FORM_BYTES].decode("latin-1")
        found = _ACTION.search(request.query[:_FORM_BYTES]) or _ACTION.search(form)
        name = found[1] if found is not None else ""
    return name if name in ACTIONS else ""
