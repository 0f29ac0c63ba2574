"""TagQueue, UntagQueue and ListQueueTags."""

from __future__ import annotations

from typing import cast

from penstock.frontend.context import Context
from penstock.frontend.queues.changes import change_metadata, metadata_of
from penstock.sqs.attributes.tags import merged_tags, without_tags
from penstock.sqs.shapes.queues import ListQueueTagsResult, TagQueueRequest, UntagQueueRequest
from penstock.steps.step import Steps


def tag_queue(context: Context) -> Steps[None]:
    """Adds tags; the same keys are overwritten."""
    added = cast(TagQueueRequest, context.call.parameters).tags
    yield from change_metadata(
        context,
        lambda queue: metadata_of(queue, tags=merged_tags(queue.tags, added, queue.arn.name)),
    )


def untag_queue(context: Context) -> Steps[None]:
    """Removes tags; keys that are not there are no error."""
    keys = cast(UntagQueueRequest, context.call.parameters).tag_keys
    yield from change_metadata(context, lambda queue: metadata_of(queue, tags=without_tags(queue.tags, keys)))


def list_queue_tags(context: Context) -> Steps[ListQueueTagsResult]:
    """All tags of the queue."""
    queue = yield from context.queues.again(context.queue, context.now_ms)
    return ListQueueTagsResult(tags=queue.tags)
