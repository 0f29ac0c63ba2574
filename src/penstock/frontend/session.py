"""The result of authentication: the caller of a request, its address and its credentials."""

from __future__ import annotations

import msgspec

from penstock.sqs.names import QueueArn
from penstock.sqs.policies.evaluation import Caller
from penstock.sqs.policies.policy import Policy


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One caller of one request."""

    caller: Caller
    account: str
    """The account of queues that are named without one."""
    region: str
    user: str
    """For usage and throttling: a user's name, or the access key that was shown while there are no users."""
    sender_id: str | None = None
    """The `SenderId` of messages; None: the account's own."""
    policies: tuple[Policy, ...] = ()
    conditional: bool = False
    """Whether any of the policies decides by more than who does what to which queue."""
    decisions: dict[tuple[str, QueueArn], tuple[Policy | None, bool]] = msgspec.field(default_factory=dict)
    """Earlier decisions, each with the queue's policy at that time; never decisions that depended on conditions."""
    unrestricted: bool = False
    """Nothing is forbidden: there are no users yet, or this is the root of the account."""
