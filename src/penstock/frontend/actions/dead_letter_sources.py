"""ListDeadLetterSourceQueues: the queues that send their dead letters here."""

from __future__ import annotations

from typing import cast

from penstock.frontend.context import Context
from penstock.frontend.queues.listing import find_queues, list_page
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.sqs.names import LATE_SUFFIX
from penstock.sqs.shapes.queues import ListDeadLetterSourceQueuesRequest, ListDeadLetterSourceQueuesResult
from penstock.steps.step import Steps


def list_dead_letter_source_queues(context: Context) -> Steps[ListDeadLetterSourceQueuesResult]:
    """A page of the queues of the same owner that name this one, by name."""
    request = cast(ListDeadLetterSourceQueuesRequest, context.call.parameters)
    queue = yield from context.queues.again(context.queue, context.now_ms)
    page, token = yield from list_page(
        context,
        queue.arn._replace(name=""),
        lambda description: description.settings.dead_letter_queue == queue.native_name,
        request.max_results,
        request.next_token,
    )
    return ListDeadLetterSourceQueuesResult(
        queue_urls=[context.url_of(arn) for arn in page], next_token=token
    )


def is_dead_letter_queue(context: Context, queue: ResolvedQueue) -> Steps[bool]:
    """Whether any queue of the same owner sends its dead letters here, or its late messages."""
    if queue.arn.name.endswith(LATE_SUFFIX):
        return True
    sources = yield from find_queues(
        context,
        queue.arn._replace(name=""),
        lambda description: description.settings.dead_letter_queue == queue.native_name,
        1,
    )
    return bool(sources)
