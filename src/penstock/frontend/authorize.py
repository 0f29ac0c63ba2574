"""Step 4, authorize: whether the caller may do this with that queue, by its own policies and by the queue's."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.frontend.session import Session
from penstock.sqs.names import QueueArn
from penstock.sqs.policies.evaluation import AccessRequest, is_allowed, request_context
from penstock.sqs.policies.policy import Policy
from penstock.sqs.protocols.http import Peer
from penstock.sqs.refusals import access_denied

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
"""Actions that no policy can give to another account: it could give rights to others, or lock out the owner's users."""
DECISIONS = 1_000
"""So many are remembered of one caller."""


def authorize(
    session: Session,
    action: str,
    rights: Sequence[str],
    resource: QueueArn,
    policy: Policy | None,
    peer: Peer,
    now_ms: int,
    user_agent: str | None,
) -> None:
    """Raises unless all rights that an action needs on a queue are given, by the caller's policies or by the queue's."""
    caller = session.caller
    if caller.root and caller.account == resource.account:
        return  # as `is_allowed` says too, which takes longer to find out
    owner_only = action in OWNER_ONLY
    for right in rights:
        if not may(session, right, resource, policy, peer, now_ms, user_agent, owner_only=owner_only):
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
    """Evaluates all policies (80 µs for a small one, twice the rest), and remembers the result if it depends on nothing else."""
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
