"""Step 8, record usage: the words of the record, and how many messages a request was about."""

from __future__ import annotations

import re
from typing import Any

from penstock.sqs.actions import ACTIONS
from penstock.sqs.call import Call
from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.protocols.json_protocol import TARGET_PREFIX
from penstock.sqs.protocols.protocol import Protocol
from penstock.sqs.shapes.batches import (
    ChangeMessageVisibilityBatchResult,
    DeleteMessageBatchResult,
    SendMessageBatchResult,
)
from penstock.sqs.shapes.messages import (
    ChangeMessageVisibilityRequest,
    DeleteMessageRequest,
    ReceiveMessageResult,
    SendMessageResult,
)

NOBODY = ""
"""The user of a request that nobody known has made."""
SUCCEEDED = "ok"
CANCELLED = "cancelled"
"""The client went away while it waited for messages; there are none that it took along."""
CANCELLED_STATUS = 499
"""What proxies write where the client did not wait for a status."""

_ACTION = re.compile(r"(?:^|&)Action=([A-Za-z]{1,64})(?:&|$)")
_FORM_BYTES = 4096


def messages_in(call: Call, result: Any) -> int:
    """How many messages a call that succeeded sent, received, deleted or changed."""
    match result:
        case SendMessageResult():  # before the rest, because most requests end here
            return 1
        case None:
            return int(isinstance(call.parameters, DeleteMessageRequest | ChangeMessageVisibilityRequest))
        case ReceiveMessageResult():
            return len(result.messages)
        case SendMessageBatchResult() | DeleteMessageBatchResult() | ChangeMessageVisibilityBatchResult():
            return len(result.successful)
        case _:
            return 0


def asked_action(request: HttpRequest, protocol: Protocol) -> str:
    """The action that a request names which is no call for another reason; empty where there is no such action."""
    if protocol is Protocol.JSON:
        name = request.headers.get("x-amz-target", "").removeprefix(TARGET_PREFIX)
    else:
        form = request.body[:_FORM_BYTES].decode("latin-1")
        found = _ACTION.search(request.query[:_FORM_BYTES]) or _ACTION.search(form)
        name = found[1] if found is not None else ""
    return name if name in ACTIONS else ""
