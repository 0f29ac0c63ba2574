"""ListQueues: the caller's queues in the caller's region, by name, page by page."""

from __future__ import annotations

from typing import cast

from penstock.frontend.context import Context
from penstock.frontend.queues.listing import list_page
from penstock.sqs.names import QueueArn
from penstock.sqs.shapes.queues import ListQueuesRequest, ListQueuesResult
from penstock.steps.step import Steps


def list_queues(context: Context) -> Steps[ListQueuesResult]:
    """The URLs of the queues whose names begin with the prefix."""
    request = cast(ListQueuesRequest, context.call.parameters)
    owner = QueueArn(context.session.region, context.session.account, request.queue_name_prefix or "")
    page, token = yield from list_page(
        context, owner, lambda _: True, request.max_results, request.next_token
    )
    return ListQueuesResult(queue_urls=[context.url_of(arn) for arn in page], next_token=token)
