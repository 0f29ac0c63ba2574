"""Step 3, resolve: the queue that a call works on, by the engine's name and identity."""

from __future__ import annotations

from penstock.frontend.native_names import Home, native_name
from penstock.frontend.session import Session
from penstock.sqs.call import Call
from penstock.sqs.names import QueueArn
from penstock.sqs.shapes.queues import GetQueueUrlRequest


def queue_arn(call: Call, session: Session) -> QueueArn | None:
    """What an action on a queue addresses; None for the other actions."""
    address = call.queue
    if address is None:
        if isinstance(call.parameters, GetQueueUrlRequest):  # asks for the queue that it names otherwise
            owner = call.parameters.queue_owner_account or session.account
            return QueueArn(session.region, owner, call.parameters.queue_name)
        return None
    return QueueArn(session.region, address.account or session.account, address.name)


def native_name_of(home: Home, arn: QueueArn) -> str:
    """The engine's name of the queue."""
    return native_name(home, arn.region, arn.account, arn.name)
