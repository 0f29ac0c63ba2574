"""Step 8, record usage: the words of the record, and how many messages a request was about."""

from __future__ import annotations

from typing import Any

from penstock.sqs.call import Call
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
