"""Step 4, authorize: whether the caller may do this to that, by its own policies and by the queue's."""

from __future__ import annotations

from penstock.frontend.session import Session
from penstock.sqs.call import Call
from penstock.sqs.errors import SqsError
from penstock.sqs.http import HttpRequest, Peer
from penstock.sqs.names import QueueArn, parse_arn
from penstock.sqs.policy import Policy
from penstock.sqs.policy_evaluation import AccessRequest, is_allowed, request_context
from penstock.sqs.refusals import access_denied
from penstock.sqs.shapes.moves import (
    CancelMessageMoveTaskRequest,
    ListMessageMoveTasksRequest,
    StartMessageMoveTaskRequest,
)
from penstock.sqs.shapes.queues import CreateQueueRequest
from penstock.sqs.task_handle import decode_task_handle


def authorize(
    call: Call,
    request: HttpRequest,
    session: Session,
    arn: QueueArn | None,
    policy: Policy | None,
    peer: Peer,
    now_ms: int,
) -> None:
    """Raises unless the call is allowed."""
    if session.unrestricted:
        return
    resource = arn if arn is not None else _resource(call, session)
    caller = session.caller
    if caller.root and caller.account == resource.account:
        return  # as `is_allowed` says too, which takes longer to find out
    allowed = is_allowed(
        AccessRequest(
            caller=session.caller,
            action=call.action.name,
            resource=str(resource),
            owner=resource.account,
            context=request_context(
                session.caller,
                now_s=now_ms / 1000,
                source_ip=peer.address,
                secure=peer.secure,
                user_agent=request.headers.get("user-agent"),
            ),
        ),
        session.policies,
        policy,
    )
    if not allowed:
        raise access_denied(str(resource))


def _resource(call: Call, session: Session) -> QueueArn:
    """What actions are about that address no queue."""
    parameters = call.parameters
    match parameters:
        case CreateQueueRequest():
            return QueueArn(session.region, session.account, parameters.queue_name)
        case StartMessageMoveTaskRequest() | ListMessageMoveTasksRequest():
            return parse_arn(parameters.source_arn) or _anything(session)
        case CancelMessageMoveTaskRequest():
            return _source_of(parameters.task_handle) or _anything(session)
        case _:
            return _anything(session)


def _source_of(task_handle: str) -> QueueArn | None:
    try:
        return parse_arn(decode_task_handle(task_handle).source_arn)
    except SqsError:
        return None  # the action says what is wrong with it, to those who may ask at all


def _anything(session: Session) -> QueueArn:
    return QueueArn(session.region, session.account, "*")
