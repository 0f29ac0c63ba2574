"""GetQueueUrl."""

from __future__ import annotations

from typing import cast

from penstock.frontend.context import Context
from penstock.sqs.names import QueueArn, is_account, is_queue_name
from penstock.sqs.refusals import invalid_value, queue_does_not_exist
from penstock.sqs.shapes.queues import GetQueueUrlRequest, GetQueueUrlResult
from penstock.steps.step import Steps


def get_queue_url(context: Context) -> Steps[GetQueueUrlResult]:
    """The URL of a queue that exists, in the caller's region."""
    arn = asked_queue(context)
    if not is_queue_name(arn.name):
        raise queue_does_not_exist()
    queue = yield from context.queues.find(context.native_name_of(arn), context.now_ms)
    if queue is None:
        raise queue_does_not_exist()
    return GetQueueUrlResult(queue_url=context.url_of(arn))


def asked_queue(context: Context) -> QueueArn:
    """The queue that is asked for: of the owner that is named, else of the caller."""
    request = cast(GetQueueUrlRequest, context.call.parameters)
    owner = request.queue_owner_account or context.session.account
    if not is_account(owner):
        raise invalid_value(owner, "QueueOwnerAWSAccountId", "Must be an account id of 12 digits.")
    return QueueArn(context.session.region, owner, request.queue_name)
