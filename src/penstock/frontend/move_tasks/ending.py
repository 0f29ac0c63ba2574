"""How a move task ends: completed, or failed because messages could not go to their target."""

from __future__ import annotations

from typing import NamedTuple

from penstock.frontend.move_tasks.task import MoveTask
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import number_in_partition
from penstock.sqs.shapes.moves import TaskStatus
from penstock.steps.asking import ask
from penstock.steps.step import Steps
from penstock.wire.messages import DescribeQueue, Peek, Peeked, PeekFilter, QueueDescription

NO_SUCH_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"
NO_SOURCE = "CouldNotDetermineMessageSource"

_LOOKED_AT = 100


class Ending(NamedTuple):
    """The last values that are stored."""

    status: TaskStatus
    failure_reason: str | None = None
    returned: int = 0
    """Moving messages that came back, because their target was gone."""


def ending_of(native: str, task: MoveTask, now_ms: int) -> Steps[Ending | None]:
    """How a task ended after all its messages began to move; None while some of them have not arrived."""
    source = yield from ask(DescribeQueue(native), QueueDescription)
    if source.statistics.moving:
        return None
    # Messages that came back have higher numbers than earlier ones in their partition.
    start = task.until if task.partitions == 1 else 0
    bounced = yield from ask(
        Peek(source.queue_id, start, limits.PEEK_MESSAGES, PeekFilter(reason="queue-deleted")), Peeked
    )
    # Moved since the task began: messages that came back earlier belong to another task.
    returned = sum(
        batch.count
        for batch in bounced.batches
        if batch.origin is not None and batch.origin.moved_ms >= task.started_ms
    )
    if returned:
        reason = NO_SUCH_QUEUE if task.destination is not None else NO_SOURCE
        return Ending("FAILED", reason, returned)
    if task.destination is None and (yield from _has_strangers(source.queue_id, task)):
        return Ending("FAILED", NO_SOURCE)
    return Ending("COMPLETED")


def _has_strangers(queue_id: int, task: MoveTask) -> Steps[bool]:
    """Whether messages are left that have nowhere to go: they never died, or their queue was gone before."""
    left = yield from ask(Peek(queue_id, 0, _LOOKED_AT, PeekFilter(states=["ready"])), Peeked)
    return any(
        number_in_partition(batch.first) < task.until
        and (batch.origin is None or batch.origin.reason == "queue-deleted")
        for batch in left.batches
    )


def failure_of(native: str, queue_id: int, error: PenstockError) -> Steps[str | None]:
    """The reason to show for a refusal that waiting does not help; None when the source itself is gone."""
    if error.code is not ErrorCode.QUEUE_NOT_FOUND:
        return str(error.code)
    try:
        source = yield from ask(DescribeQueue(native), QueueDescription)
    except PenstockError as gone:
        return None if gone.code is ErrorCode.QUEUE_NOT_FOUND else NO_SUCH_QUEUE
    return NO_SUCH_QUEUE if source.queue_id == queue_id else None
