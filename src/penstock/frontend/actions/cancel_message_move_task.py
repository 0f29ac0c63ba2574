"""CancelMessageMoveTask: stops a task; messages that have moved stay where they are."""

from __future__ import annotations

from typing import cast

from penstock.frontend.context import Context
from penstock.frontend.move_tasks.task import encode, history_of, key_of, own_queue
from penstock.frontend.queues.changes import ATTEMPTS, too_many_changes
from penstock.metadata.store.interface import VersionConflictError
from penstock.sqs.names import parse_arn
from penstock.sqs.refusals import (
    bad_task_handle,
    invalid_parameter,
    resource_not_found,
    task_does_not_exist,
)
from penstock.sqs.shapes.moves import (
    CancelMessageMoveTaskRequest,
    CancelMessageMoveTaskResult,
    TaskStatus,
)
from penstock.sqs.task_handle import decode_task_handle
from penstock.steps.asking import put
from penstock.steps.step import Steps


def cancel_message_move_task(context: Context) -> Steps[CancelMessageMoveTaskResult]:
    """The number of messages that had moved when it was cancelled; its owner stops at its next slice."""
    handle = decode_task_handle(cast(CancelMessageMoveTaskRequest, context.call.parameters).task_handle)
    if parse_arn(handle.source_arn) is None:
        raise bad_task_handle()
    arn = own_queue(context, handle.source_arn, "SourceArn")
    source = yield from context.queues.find(context.native_name_of(arn), context.now_ms)
    if source is None:
        raise resource_not_found("SourceArn")
    for _ in range(ATTEMPTS):
        history, version = history_of(context, source)
        task = history.find(handle.task_id)
        if task is None:
            raise task_does_not_exist()
        if task.status != "RUNNING":
            raise invalid_parameter("Only active tasks can be cancelled.")
        status: TaskStatus = "CANCELLING" if task.owner else "CANCELLED"
        changed = history.changed(task.task_id, status=status)
        try:
            yield from put(key_of(source.native_name), encode(changed), version)
        except VersionConflictError:
            continue
        return CancelMessageMoveTaskResult(approximate_number_of_messages_moved=task.moved)
    raise too_many_changes()
