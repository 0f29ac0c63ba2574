"""Who makes a request, from where and how: what authentication finds out."""

from __future__ import annotations

import msgspec

from penstock.sqs.names import QueueArn
from penstock.sqs.policies.evaluation import Caller
from penstock.sqs.policies.policy import Policy


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One caller of one request."""

    caller: Caller
    account: str
    """Whose queues a bare name means."""
    region: str
    user: str
    """For usage and throttling: a user's name, or the access key that was shown while there are no users."""
    sender_id: str | None = None
    """What messages carry as `SenderId`; None: the account's own."""
    policies: tuple[Policy, ...] = ()
    conditional: bool = False
    """Whether any of the policies decides by more than who does what to which queue."""
    decisions: dict[tuple[str, QueueArn], tuple[Policy | None, bool]] = msgspec.field(default_factory=dict)
    """What was decided before, with the queue's policy that it was decided by; never where conditions had a say."""
    unrestricted: bool = False
    """Nothing is forbidden: there are no users yet, or this is the root of the account."""
