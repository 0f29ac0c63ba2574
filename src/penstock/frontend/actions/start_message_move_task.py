"""StartMessageMoveTask: redrives dead letters; a mover finds the task in the metadata and carries it out."""

from __future__ import annotations

from typing import cast

from penstock.frontend.actions.dead_letter_sources import is_dead_letter_queue
from penstock.frontend.context import Context
from penstock.frontend.move_tasks.task import MoveTask, encode, history_of, key_of, own_queue
from penstock.frontend.queues.changes import ATTEMPTS, too_many_changes
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.metadata.store.interface import VersionConflictError
from penstock.model.partition_numbers import LARGEST_NUMBER
from penstock.sqs.parameters import messages_per_second
from penstock.sqs.refusals import (
    invalid_parameter,
    resource_not_found,
    source_is_no_dead_letter_queue,
    task_already_running,
)
from penstock.sqs.shapes.moves import StartMessageMoveTaskRequest, StartMessageMoveTaskResult
from penstock.sqs.task_handle import encode_task_handle
from penstock.steps.asking import ask, put
from penstock.steps.step import Steps
from penstock.wire.messages import DescribeQueue, QueueDescription


def start_message_move_task(context: Context) -> Steps[StartMessageMoveTaskResult]:
    """The handle of the new task, which runs from now on."""
    request = cast(StartMessageMoveTaskRequest, context.call.parameters)
    rate = messages_per_second(request.max_number_of_messages_per_second)
    arn = own_queue(context, request.source_arn, "SourceArn")
    source = yield from context.queues.find(context.native_name_of(arn), context.now_ms)
    if source is None:
        raise resource_not_found("SourceArn")
    if not (yield from is_dead_letter_queue(context, source)):
        raise source_is_no_dead_letter_queue()
    destination = yield from _destination(context, source, request.destination_arn)
    description = yield from ask(DescribeQueue(source.native_name), QueueDescription)
    task = MoveTask(
        task_id=_task_id(context),
        source_arn=str(arn),
        destination_arn=request.destination_arn or None,
        destination=destination,
        messages_per_second=rate,
        to_move=description.statistics.ready,
        started_ms=context.now_ms,
        # If a partition does not answer, its numbers are unknown: then all messages are moved.
        until=description.statistics.next_sequence if description.damage is None else LARGEST_NUMBER,
        partitions=description.settings.partitions,
    )
    yield from _begin(context, source, task)
    return StartMessageMoveTaskResult(task_handle=encode_task_handle(task.task_id, task.source_arn))


def _destination(context: Context, source: ResolvedQueue, text: str | None) -> Steps[str | None]:
    if not text:
        return None
    arn = own_queue(context, text, "DestinationArn")
    if arn.name == source.arn.name:
        raise invalid_parameter("Source queue arn and destination queue arn can not be the same.")
    queue = yield from context.queues.find(context.native_name_of(arn), context.now_ms)
    if queue is None:
        raise resource_not_found("DestinationArn")
    if queue.attributes.fifo_queue != source.attributes.fifo_queue:
        raise invalid_parameter("Source queue and destination queue must be of the same type.")
    return queue.native_name


def _begin(context: Context, source: ResolvedQueue, task: MoveTask) -> Steps[None]:
    for _ in range(ATTEMPTS):
        history, version = history_of(context, source)
        if history.running() is not None:
            raise task_already_running()
        try:
            yield from put(key_of(source.native_name), encode(history.begun(task)), version)
        except VersionConflictError:
            continue
        return
    raise too_many_changes()


def _task_id(context: Context) -> str:
    """A random UUID, made here because the module `uuid` would use its own random numbers."""
    random = bytearray(context.token(16))
    random[6] = random[6] & 0x0F | 0x40
    random[8] = random[8] & 0x3F | 0x80
    digits = random.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
