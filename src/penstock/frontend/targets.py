"""What an action needs before it begins: queues, and rights there. The table of actions names these."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache

import msgspec

from penstock.frontend.queues.native_names import DefaultAccount, native_name
from penstock.frontend.session import Session
from penstock.sqs.call import Call
from penstock.sqs.errors import SqsError
from penstock.sqs.names import QueueArn, is_account, is_queue_name, parse_arn
from penstock.sqs.shapes.moves import (
    CancelMessageMoveTaskRequest,
    ListMessageMoveTasksRequest,
    StartMessageMoveTaskRequest,
)
from penstock.sqs.shapes.queues import CreateQueueRequest, GetQueueUrlRequest
from penstock.sqs.task_handle import decode_task_handle

_NAME_CHARACTERS = 256
"""More than any queue's name has. What was decided is remembered by name, and a request may name a queue in megabytes."""
_ON_DEAD_LETTERS = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
"""The rights that an action on a message move task needs beside its own."""


class Use(Enum):
    """What an action does with a queue."""

    WORKS_ON = "it must exist; what is remembered of it will do, and its limit is charged"
    ASKS_ABOUT = "its policy is read as it is now; the action says what is wrong where it does not exist"
    NAMES = "it has no policy yet, or stands for many queues"


class Target(msgspec.Struct, frozen=True):
    """A queue by all of its names, and the rights that are needed."""

    arn: QueueArn
    arn_text: str
    native_name: str
    use: Use = Use.WORKS_ON
    rights: tuple[str, ...] = ()
    """The actions that must be allowed on it; none: the action itself."""


Targets = tuple[Target, ...]
TargetsOf = Callable[[DefaultAccount, Call, Session], Targets]


def its_queue(home: DefaultAccount, call: Call, session: Session) -> Targets:
    """The queue that the address of the call names."""
    address = call.queue
    assert address is not None, "the call of an action on a queue has an address, or is refused"
    return _known_queue(home, session.region, address.account or session.account, address.name)


def asked_queue(home: DefaultAccount, call: Call, session: Session) -> Targets:
    """The queue that `GetQueueUrl` asks for, of the owner that is named, else of the caller."""
    parameters = call.parameters
    assert isinstance(parameters, GetQueueUrlRequest)
    owner, name = parameters.queue_owner_account or session.account, parameters.queue_name
    if not (is_account(owner) and is_queue_name(name)):
        # Not looked up: the native protocol may have a queue of that name, and who may not ask must not learn that.
        return (_named(owner, session.region, name),)
    return _queue(home, session.region, owner, name)


def new_queue(home: DefaultAccount, call: Call, session: Session) -> Targets:
    """The queue that `CreateQueue` makes."""
    parameters = call.parameters
    assert isinstance(parameters, CreateQueueRequest)
    return (_named(session.account, session.region, parameters.queue_name),)


def all_queues(home: DefaultAccount, call: Call, session: Session) -> Targets:
    """All queues of the caller."""
    return (_named(session.account, session.region, "*"),)


def moved_queues(home: DefaultAccount, call: Call, session: Session) -> Targets:
    """The queues of a message move task: a caller that starts one receives, deletes and sends.

    Where an ARN is none, the action says so to callers that may do it at all.
    """
    parameters = call.parameters
    source = target = None
    if isinstance(parameters, CancelMessageMoveTaskRequest):
        source = _source_of(parameters.task_handle)
    elif isinstance(parameters, StartMessageMoveTaskRequest):
        source, target = _queue_of(parameters.source_arn), _queue_of(parameters.destination_arn or "")
    elif isinstance(parameters, ListMessageMoveTasksRequest):
        source = _queue_of(parameters.source_arn)
    if source is None:
        return all_queues(home, call, session)
    targets = (_asked_about(home, source, (call.action.name, *_ON_DEAD_LETTERS)),)
    return targets if target is None else (*targets, _asked_about(home, target, ("SendMessage",)))


def _queue(home: DefaultAccount, region: str, account: str, name: str) -> Targets:
    arn = QueueArn(region, account, name)
    return (Target(arn, str(arn), native_name(home, region, account, name)),)


_known_queue = lru_cache(maxsize=4096)(_queue)
"""For addresses, the lengths of which were checked: 0.2 µs against 1.4."""


def _named(account: str, region: str, name: str) -> Target:
    arn = QueueArn(region, account[:_NAME_CHARACTERS], name[:_NAME_CHARACTERS])
    return Target(arn, str(arn), "", Use.NAMES)


def _asked_about(home: DefaultAccount, arn: QueueArn, rights: tuple[str, ...]) -> Target:
    native = native_name(home, arn.region, arn.account, arn.name)
    return Target(arn, str(arn), native, Use.ASKS_ABOUT, rights)


def _queue_of(text: str) -> QueueArn | None:
    """The queue that an ARN names, always by the one name that policies know it by: all partitions are ours."""
    arn = parse_arn(text)
    return QueueArn(arn.region, arn.account, arn.name) if arn is not None else None


def _source_of(task_handle: str) -> QueueArn | None:
    try:
        return _queue_of(decode_task_handle(task_handle).source_arn)
    except SqsError:
        return None  # the action says what is wrong with it, to those who may ask at all
