"""CreateQueue: first the engine's queue, then the metadata that only SQS uses.

A process may die between the two. Then the engine has a queue without metadata (or with metadata of an earlier queue of
that name, which is ignored): the next CreateQueue whose attributes agree with the engine's settings adopts it. So a caller
who repeats the request gets the requested queue.

A queue of the native protocol has no metadata either. Giving it a policy, other attributes or tags alters an existing
queue: a caller whose own request did not create the queue must be allowed SetQueueAttributes, and TagQueue for tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from penstock.frontend.context import Context
from penstock.frontend.queues import unfinished_queues
from penstock.frontend.queues.changes import ATTEMPTS, metadata_of, too_many_changes, write_metadata
from penstock.frontend.queues.dead_letter_target import (
    check_attributes,
    check_late_queue,
    dead_letter_queue_of,
)
from penstock.frontend.queues.recently_deleted import is_reserved
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.model.errors import ErrorCode, PenstockError
from penstock.sqs.attributes.changes import FIELDS, check_same_attributes, created_attributes
from penstock.sqs.attributes.queue_attributes import QueueAttributes
from penstock.sqs.attributes.queue_settings import ENGINE_FIELDS, ENVELOPE_BYTES, settings_of
from penstock.sqs.attributes.tags import merged_tags
from penstock.sqs.compatibility import STRICT
from penstock.sqs.names import FIFO_SUFFIX, QueueArn, is_queue_name
from penstock.sqs.refusals import access_denied, bad_queue_name, queue_deleted_recently, queue_name_exists
from penstock.sqs.shapes.queues import CreateQueueRequest, CreateQueueResult
from penstock.steps.asking import ask
from penstock.steps.step import Steps
from penstock.wire.messages import CreateQueue, QueueDescription


def create_queue(context: Context) -> Steps[CreateQueueResult]:
    """The queue's URL, whether it is new or was there with the same values."""
    request = cast(CreateQueueRequest, context.call.parameters)
    name = request.queue_name
    if not is_queue_name(name):
        raise bad_queue_name()  # before anything is looked up: the engine knows names that SQS must not say
    arn = QueueArn(context.session.region, context.session.account, name)
    tags = merged_tags({}, request.tags, name) if request.tags else {}
    made: int | None = None
    for _ in range(ATTEMPTS):
        queue = yield from context.queues.find(context.native_name_of(arn), context.now_ms)
        asked = _asked(context, name, request.attributes, queue is None)
        if queue is None:
            queue = yield from _make(context, arn, asked, request.attributes)
            if queue is None:
                continue
            made = queue.queue_id
        wanted = _Wanted(asked, request.attributes, tags)
        if (yield from _agree(context, queue, wanted, made=queue.queue_id == made)):
            if made is not None and asked.redrive_allow_policy is not None:
                yield from unfinished_queues.finish(context.metadata, queue.native_name, context.now_ms)
            return CreateQueueResult(queue_url=context.url_of(arn))
    raise too_many_changes()


class _Wanted(NamedTuple):
    """The requested queue: as values, as texts, and the tags."""

    attributes: QueueAttributes
    given: Mapping[str, str]
    tags: dict[str, str]


def _asked(context: Context, name: str, given: Mapping[str, str], new: bool) -> QueueAttributes:
    # A queue that exists is FIFO by its name; a new one must be asked for as such.
    if not new and name.endswith(FIFO_SUFFIX) and "FifoQueue" not in given:
        given = {**given, "FifoQueue": "true"}
    return created_attributes(name, given, context.compatibility)


def _make(
    context: Context, arn: QueueArn, asked: QueueAttributes, given: Mapping[str, str]
) -> Steps[ResolvedQueue | None]:
    """The new queue of the engine; None if another client created it meanwhile."""
    native = context.native_name_of(arn)
    if context.compatibility == STRICT and is_reserved(context, native):
        raise queue_deleted_recently()
    yield from check_attributes(context, arn, asked, given)
    settings = settings_of(asked, dead_letter_queue_of(context, asked))
    yield from check_late_queue(context, arn, settings)
    if asked.redrive_allow_policy is not None:
        yield from unfinished_queues.begin(native, context.now_ms)
    try:
        description = yield from ask(CreateQueue(native, settings), QueueDescription)
    except PenstockError as error:
        if error.code is not ErrorCode.QUEUE_EXISTS:
            raise
        return None
    return context.queues.learn(description, context.now_ms)


def _agree(context: Context, queue: ResolvedQueue, wanted: _Wanted, *, made: bool) -> Steps[bool]:
    """Whether the queue is the requested one; raises if it is another, False if it must be read again."""
    metadata, _ = context.queues.metadata_of(queue.native_name, queue.queue_id)
    if metadata is not None:
        check_same_attributes(queue.arn.name, queue.attributes, wanted.given, context.compatibility)
        return True
    changes = _adopted(queue, wanted.attributes, wanted.given)
    if not (made or wanted.given or wanted.tags):
        return True  # nothing is requested: its creator may have been interrupted and may still continue
    attributes = msgspec.structs.replace(queue.attributes, **changes)
    if not made:
        if attributes == queue.attributes and not wanted.tags:
            return True
        _check_may_adopt(context, queue, attributes, wanted.tags)
    return (yield from write_metadata(queue, metadata_of(queue, attributes=attributes, tags=wanted.tags)))


def _check_may_adopt(
    context: Context, queue: ResolvedQueue, attributes: QueueAttributes, tags: dict[str, str]
) -> None:
    """Raises if the caller may create queues, but not alter this one; the queue has no policy that could allow it."""
    alters = attributes != queue.attributes and not context.may("SetQueueAttributes", queue.arn)
    if alters or (tags and not context.may("TagQueue", queue.arn)):
        raise access_denied(str(queue.arn))


def _adopted(queue: ResolvedQueue, asked: QueueAttributes, given: Mapping[str, str]) -> dict[str, Any]:
    """The attributes of an adopted queue; raises if the engine's settings differ from the requested ones."""
    changes: dict[str, Any] = {
        field: getattr(asked, field)
        for field in QueueAttributes.__struct_fields__
        if field not in ENGINE_FIELDS
    }
    if queue.settings.max_message_bytes == asked.maximum_message_size + ENVELOPE_BYTES:
        changes["maximum_message_size"] = asked.maximum_message_size
    for attribute in given:
        field = FIELDS[attribute]
        if field not in changes and getattr(queue.attributes, field) != getattr(asked, field):
            raise queue_name_exists(attribute)
    return changes
