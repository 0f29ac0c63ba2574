"""Queues to which another queue sends messages by itself, and whether it may: one rule for SQS and the native protocol.

Dead letters (received too often, expired, overflown, or delayed in a queue that is deleted) go to the queue that the settings
name; late messages of a queue that is sorted by stamps go to the queue of its name and `.late`. Whoever sends to the source
has not named that queue, and needs no right there. So it is asked about when the source is made or altered: the target's
RedriveAllowPolicy says which queues may send there, and who makes a queue whose target is missing must be allowed to make that too.
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
