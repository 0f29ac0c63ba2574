"""GetQueueAttributes and SetQueueAttributes."""

from __future__ import annotations

from typing import cast

from penstock.frontend.context import Context
from penstock.frontend.queues.changes import ATTEMPTS, metadata_of, too_many_changes, write_metadata
from penstock.frontend.queues.dead_letter_target import check_attributes, dead_letter_queue_of
from penstock.frontend.queues.directory import check_same
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.model.limits import SECOND_MS
from penstock.model.settings import SETTINGS
from penstock.sqs.attributes.changes import changed_attributes
from penstock.sqs.attributes.queue_attributes import QueueAttributes
from penstock.sqs.attributes.queue_settings import settings_of
from penstock.sqs.attributes.texts import QueueFacts, attribute_texts
from penstock.sqs.shapes.queues import (
    GetQueueAttributesRequest,
    GetQueueAttributesResult,
    SetQueueAttributesRequest,
)
from penstock.steps.asking import ask
from penstock.steps.step import Steps
from penstock.wire.messages import AlterQueue, DescribeQueue, QueueDescription


def get_queue_attributes(context: Context) -> Steps[GetQueueAttributesResult]:
    """The attributes that are asked for, as of now."""
    request = cast(GetQueueAttributesRequest, context.call.parameters)
    description = yield from ask(DescribeQueue(context.queue.native_name), QueueDescription)
    queue = context.queues.learn(description, context.now_ms)
    check_same(context.queue, queue.queue_id)
    held = description.statistics
    facts = QueueFacts(
        arn=queue.arn,
        created_s=queue.created_ms // SECOND_MS,
        last_modified_s=queue.modified_ms // SECOND_MS,
        messages=held.ready,
        # Moving to another queue: still here, but not receivable.
        messages_not_visible=held.leased + held.moving,
        messages_delayed=held.delayed + held.held,
        messages_held=held.held,
        messages_late=held.late_total,
    )
    texts = attribute_texts(queue.attributes, facts, request.attribute_names, context.compatibility)
    return GetQueueAttributesResult(attributes=texts)


def set_queue_attributes(context: Context) -> Steps[None]:
    """Sets all attributes or none.

    The engine's settings come first, because the engine may refuse. They do not depend on concurrent changes, so after a
    conflict, and after a crash in between, the whole request is repeated.
    """
    given = cast(SetQueueAttributesRequest, context.call.parameters).attributes
    for _ in range(ATTEMPTS):
        queue = yield from context.queues.again(context.queue, context.now_ms)
        changed = changed_attributes(queue.attributes, given, context.compatibility)
        yield from check_attributes(context, queue.arn, changed, given)
        changes = _engine_changes(context, queue, changed)
        if changes:
            yield from ask(AlterQueue(queue.native_name, changes), QueueDescription)
            context.queues.forget(queue.native_name)
        metadata = metadata_of(queue, attributes=changed, modified_ms=context.now_ms)
        if (yield from write_metadata(queue, metadata)):
            return
    raise too_many_changes()


def _engine_changes(
    context: Context, queue: ResolvedQueue, changed: QueueAttributes
) -> dict[str, str | int | None]:
    """Only what the new attributes change: settings that SQS has no words for stay as they are."""
    before = settings_of(queue.attributes, dead_letter_queue_of(context, queue.attributes), queue.settings)
    after = settings_of(changed, dead_letter_queue_of(context, changed), queue.settings)
    return {
        field: getattr(after, field) for field in SETTINGS if getattr(after, field) != getattr(before, field)
    }
