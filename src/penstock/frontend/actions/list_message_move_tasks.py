"""ListMessageMoveTasks: the latest tasks of a source, newest first."""

from __future__ import annotations

from typing import cast

from penstock.frontend.context import Context
from penstock.frontend.move_tasks.task import MoveTask, history_of, own_queue
from penstock.sqs.parameters import max_tasks
from penstock.sqs.refusals import resource_not_found
from penstock.sqs.shapes.moves import (
    ListMessageMoveTasksRequest,
    ListMessageMoveTasksResult,
    ListMessageMoveTasksResultEntry,
)
from penstock.sqs.task_handle import encode_task_handle
from penstock.steps.step import Steps


def list_message_move_tasks(context: Context) -> Steps[ListMessageMoveTasksResult]:
    """At most ten tasks, one unless more are asked for."""
    request = cast(ListMessageMoveTasksRequest, context.call.parameters)
    most = max_tasks(request.max_results)
    arn = own_queue(context, request.source_arn, "SourceArn")
    source = yield from context.queues.find(context.native_name_of(arn), context.now_ms)
    if source is None:
        raise resource_not_found("SourceArn")
    history, _ = history_of(context, source)
    return ListMessageMoveTasksResult(results=[_entry(task) for task in history.tasks[:most]])


def _entry(task: MoveTask) -> ListMessageMoveTasksResultEntry:
    running = task.status == "RUNNING"
    return ListMessageMoveTasksResultEntry(
        task_handle=encode_task_handle(task.task_id, task.source_arn) if running else None,
        status=task.status,
        source_arn=task.source_arn,
        destination_arn=task.destination_arn,
        max_number_of_messages_per_second=task.messages_per_second,
        approximate_number_of_messages_moved=task.moved,
        approximate_number_of_messages_to_move=task.to_move,
        failure_reason=task.failure_reason,
        started_timestamp=task.started_ms,
    )
