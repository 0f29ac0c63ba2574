"""The rule for each request of the native protocol: its SQS action for policies, and its name in usage records."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec

from penstock.wire import messages


class About(Enum):
    """How a request names its queue."""

    QUEUE_ID = "its id"
    NAME = "its name"
    RECEIPTS = "the tokens of its receipts"
    QUEUES = "a list of ids"
    ALL = "all queues of an account"
    NOTHING = "none"


class Rule(NamedTuple):
    """One kind of request."""

    about: About
    permission: str
    """The action of SQS that a policy must allow; empty: every admitted client may."""
    recorded_as: str
    """The action in the record of usage; empty: it is part of the conversation, not something that is done."""
    owner_only: bool = False
    """Whether no policy can hand it to another account."""


_ID, _NAME, _RECEIPTS = About.QUEUE_ID, About.NAME, About.RECEIPTS

RULES: dict[type[msgspec.Struct], Rule] = {
    messages.Send: Rule(_ID, "SendMessage", "SendMessage"),
    messages.Receive: Rule(_ID, "ReceiveMessage", "ReceiveMessage"),
    messages.Subscribe: Rule(_ID, "ReceiveMessage", "ReceiveMessage"),
    messages.ReceiveAny: Rule(About.QUEUES, "ReceiveMessage", "ReceiveMessage"),
    messages.Delete: Rule(_RECEIPTS, "DeleteMessage", "DeleteMessage"),
    messages.Release: Rule(_RECEIPTS, "ChangeMessageVisibility", "ChangeMessageVisibility"),
    messages.Extend: Rule(_RECEIPTS, "ChangeMessageVisibility", "ChangeMessageVisibility"),
    messages.Peek: Rule(_ID, "ReceiveMessage", "Peek"),
    messages.Purge: Rule(_ID, "PurgeQueue", "PurgeQueue"),
    messages.Redrive: Rule(_ID, "StartMessageMoveTask", "StartMessageMoveTask", owner_only=True),
    messages.CreateQueue: Rule(_NAME, "CreateQueue", "CreateQueue", owner_only=True),
    messages.AlterQueue: Rule(_NAME, "SetQueueAttributes", "SetQueueAttributes", owner_only=True),
    messages.DeleteQueue: Rule(_NAME, "DeleteQueue", "DeleteQueue", owner_only=True),
    messages.DescribeQueue: Rule(_NAME, "GetQueueAttributes", "GetQueueAttributes"),
    messages.ListQueues: Rule(About.ALL, "ListQueues", "ListQueues", owner_only=True),
    messages.DescribeNode: Rule(About.ALL, "ListQueues", "DescribeNode", owner_only=True),
    messages.ReadLog: Rule(_ID, "ReceiveMessage", "ReadLog"),
    messages.LocateLog: Rule(_ID, "ReceiveMessage", "LocateLog"),
    messages.FindOffset: Rule(_ID, "ReceiveMessage", "FindOffset"),
    messages.CommitOffset: Rule(_ID, "ReceiveMessage", "CommitOffset"),
    messages.JoinGroup: Rule(_ID, "ReceiveMessage", "JoinGroup"),
    messages.LeaveGroup: Rule(_ID, "ReceiveMessage", "LeaveGroup"),
    messages.SeekGroup: Rule(_ID, "ReceiveMessage", "SeekGroup"),
    messages.DeleteGroup: Rule(_ID, "ReceiveMessage", "DeleteGroup"),
    messages.ListGroups: Rule(_ID, "GetQueueAttributes", "ListGroups"),
    messages.ClaimIds: Rule(_ID, "SendMessage", "ClaimIds"),
    messages.FindIds: Rule(_ID, "SendMessage", "FindIds"),
    messages.TakeIds: Rule(About.NOTHING, "", "TakeIds"),
    messages.ReadClock: Rule(About.NOTHING, "", ""),
    messages.Ping: Rule(About.NOTHING, "", ""),
    messages.AddCredit: Rule(About.NOTHING, "", ""),
    messages.Unsubscribe: Rule(About.NOTHING, "", ""),
    messages.Hello: Rule(About.NOTHING, "", ""),
}
"""Every request; a test looks whether one is missing."""

NO_RULE = Rule(About.NOTHING, "", "")
"""Of what cannot be read."""

LOOKED_FOR: frozenset[type[msgspec.Struct]] = frozenset(
    {
        *(messages.Receive, messages.ReceiveAny, messages.Subscribe, messages.ReadLog, messages.LocateLog),
        *(messages.FindOffset, messages.CommitOffset, messages.JoinGroup, messages.LeaveGroup),
        *(messages.SeekGroup, messages.DeleteGroup, messages.ListGroups),
    }
)
"""Requests of consumers with a queue id. If the queue is not known yet, the store is read before they are refused."""

CONNECTED = "Connect"
"""A greeting that failed, in the record of usage; one that did not is no request yet."""
UNREADABLE = "Unknown"
"""A request that cannot be read."""
WITH_A_MOVE = ("ReceiveMessage", "DeleteMessage")
"""The additional rights for moving dead letters, as in SQS."""
