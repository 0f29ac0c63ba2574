"""Queues to which another queue sends messages by itself, and whether it may: one rule for SQS and the native protocol.

Dead letters (received too often, expired, removed by a limit, or delayed in a deleted queue) go to the queue in the
settings. Late messages of a queue sorted by stamps go to `<queue>.late`. A sender to the source does not name that queue
and needs no right there. So the right is checked when the source is created or altered: the target's RedriveAllowPolicy
says which queues may send there, and a user who creates a queue with a missing target must be allowed to create the target
too.
"""

from __future__ import annotations

from penstock.model.settings import QueueSettings
from penstock.sqs.attributes.queue_attributes import QueueAttributes
from penstock.sqs.names import LATE_SUFFIX, QueueArn
from penstock.wire.messages import AlterQueue, CreateQueue, Request


def onward_queues(request: Request) -> tuple[str, ...]:
    """The engine's names of the queues to which what a request makes or alters will send messages."""
    if isinstance(request, CreateQueue):
        return onward_of(request.name, request.settings)
    if isinstance(request, AlterQueue):
        target = request.changes.get("dead_letter_queue")
        return (target,) if isinstance(target, str) else ()
    return ()


def onward_of(name: str, settings: QueueSettings) -> tuple[str, ...]:
    """The same of a queue of that name with those settings."""
    late = (f"{name}{LATE_SUFFIX}",) if settings.sorted else ()
    return late if settings.dead_letter_queue is None else (settings.dead_letter_queue, *late)


def takes_from(target: QueueAttributes, source: QueueArn) -> bool:
    """Whether a queue lets another one send messages to it."""
    allow = target.redrive_allow_policy
    return allow is None or allow.allows(source)
