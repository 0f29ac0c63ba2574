"""Step 8, record usage: what one request was, did and cost, for the collector."""

from __future__ import annotations

from typing import Any

from penstock.frontend.session import Session
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
from penstock.usage.event import Row

NOBODY = ""
"""The user of a request that nobody known has made."""
SUCCEEDED = "ok"
CANCELLED = "cancelled"
"""The client went away while it waited for messages; there are none that it took along."""
CANCELLED_STATUS = 499
"""What proxies write where the client did not wait for a status."""


def usage_row(
    call: Call | None,
    action: str,
    session: Session | None,
    address: str,
    queue: str,
    result: Any,
    outcome: str,
    status: int,
    bytes_in: int,
    bytes_out: int,
    now_ms: int,
    latency_us: int,
    request_id: str,
) -> Row:
    """One row; `queue` is an ARN or empty, bytes are what went over the wire without headers."""
    return (
        now_ms,
        session.account if session is not None else "",
        session.user if session is not None else NOBODY,
        address,
        action,
        queue,
        _messages(call, result) if outcome == SUCCEEDED and call is not None else 0,
        bytes_in,
        bytes_out,
        outcome,
        status,
        latency_us,
        request_id,
    )


def _messages(call: Call, result: Any) -> int:
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
