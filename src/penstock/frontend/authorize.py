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

OWNER_ONLY = frozenset(
    {
        *(
            "AddPermission",
            "RemovePermission",
            "SetQueueAttributes",
            "DeleteQueue",
            "CreateQueue",
            "ListQueues",
        ),
        *("TagQueue", "UntagQueue", "ListQueueTags"),
        *("StartMessageMoveTask", "ListMessageMoveTasks", "CancelMessageMoveTask"),
    }
)
"""What no policy can hand to another account: who was let in could else let others in, or lock the owner's users out."""
DECISIONS = 1_000
"""So many are remembered of one caller."""
_ON_DEAD_LETTERS = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
"""What whoever has to do with a message move task must be allowed beside it."""


def authorize(
    call: Call,
    request: HttpRequest,
    session: Session,
    arn: QueueArn | None,
    policy: Policy | None,
    peer: Peer,
    now_ms: int,
    action: str | None = None,
) -> None:
    """Raises unless the call is allowed; `action` is what it does beside its own, if it is about that."""
    if session.unrestricted:
        return
    resource = arn if arn is not None else _resource(call, session)
    caller = session.caller
    if caller.root and caller.account == resource.account:
        return  # as `is_allowed` says too, which takes longer to find out
    name = action or call.action.name
    owner_only = call.action.name in OWNER_ONLY
    agent = request.headers.get("user-agent")
    if not may(session, name, resource, policy, peer, now_ms, agent, owner_only=owner_only):
        raise access_denied(str(resource))


def may(
    session: Session,
    action: str,
    resource: QueueArn,
    policy: Policy | None,
    peer: Peer,
    now_ms: int,
    user_agent: str | None,
    *,
    owner_only: bool,
) -> bool:
    """Whether the caller may do this to that, by what was decided before or by all policies."""
    known = session.decisions.get((action, resource))
    if known is not None and known[0] is policy:
        return known[1]
    return _decide(session, action, resource, policy, peer, now_ms, user_agent, owner_only)


def _decide(
    session: Session,
    action: str,
    resource: QueueArn,
    policy: Policy | None,
    peer: Peer,
    now_ms: int,
    user_agent: str | None,
    owner_only: bool,
) -> bool:
    """Asks all policies (80 µs for a small one, twice all the rest), and remembers what they said where it depends on nothing else."""
    caller = session.caller
    if caller.account != resource.account and owner_only:
        return False
    context = request_context(
        caller,
        now_s=now_ms / 1000,
        source_ip=peer.address,
        secure=peer.secure,
        user_agent=user_agent,
    )
    asked = AccessRequest(
        caller=caller, action=action, resource=str(resource), owner=resource.account, context=context
    )
    allowed = is_allowed(asked, session.policies, policy)
    if not session.conditional and (policy is None or not policy.conditional):
        if len(session.decisions) >= DECISIONS:
            session.decisions.clear()
        session.decisions[action, resource] = (policy, allowed)
    return allowed


def is_allowed_alone(
    session: Session, action: str, resource: QueueArn, peer: Peer, now_ms: int, user_agent: str | None
) -> bool:
    """Whether the caller's own policies allow what only the owner's account may do to a queue that has no policy."""
    caller = session.caller
    return (
        session.unrestricted
        or (caller.root and caller.account == resource.account)
        or may(session, action, resource, None, peer, now_ms, user_agent, owner_only=True)
    )


def move_permissions(call: Call) -> list[tuple[str, QueueArn]]:
    """What a caller must be allowed who asks about a message move task: actions, each on a queue.

    Who starts one receives, deletes and sends. Where an ARN is none, the action says so.
    """
    parameters = call.parameters
    if isinstance(parameters, CancelMessageMoveTaskRequest):
        source = _source_of(parameters.task_handle)
    elif isinstance(parameters, StartMessageMoveTaskRequest | ListMessageMoveTasksRequest):
        source = _queue_of(parameters.source_arn)
    else:
        return []
    if source is None:
        return []
    needed = [(action, source) for action in (call.action.name, *_ON_DEAD_LETTERS)]
    if isinstance(parameters, StartMessageMoveTaskRequest):
        target = _queue_of(parameters.destination_arn or "")
        if target is not None:
            needed.append(("SendMessage", target))
    return needed


def _resource(call: Call, session: Session) -> QueueArn:
    """What actions are about that address no queue."""
    parameters = call.parameters
    name = parameters.queue_name if isinstance(parameters, CreateQueueRequest) else "*"
    return QueueArn(session.region, session.account, name)


def _queue_of(text: str) -> QueueArn | None:
    """The queue that an ARN names, always by the one name that policies know it by: all partitions are ours."""
    arn = parse_arn(text)
    return QueueArn(arn.region, arn.account, arn.name) if arn is not None else None


def _source_of(task_handle: str) -> QueueArn | None:
    try:
        return _queue_of(decode_task_handle(task_handle).source_arn)
    except SqsError:
        return None  # the action says what is wrong with it, to those who may ask at all
