"""ReceiveMessage, and peeking through it."""

from __future__ import annotations

import re
from typing import cast

from penstock.frontend.context import Context
from penstock.frontend.messages.received_messages import MessageView
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import SECOND_MS
from penstock.sqs import parameters
from penstock.sqs.refusals import attempt_not_retryable, over_limit
from penstock.sqs.shapes.messages import ReceiveMessageRequest, ReceiveMessageResult
from penstock.steps.asking import give_back
from penstock.steps.step import Ask, Reply, Steps
from penstock.wire.messages import Delivery, Peek, Peeked, Receive

IN_FLIGHT = 120_000
"""SQS's own bound, which only strict servers keep."""

PEEK = "Penstock.Peek"
"""As the name of a message attribute: show messages without receiving them, from the start or, as
`Penstock.Peek.<sequence number>`, from there on."""
_PEEK = re.compile(r"Penstock\.Peek(?:\.([0-9]{1,20}))?")


def receive_message(context: Context) -> Steps[ReceiveMessageResult]:
    """Up to ten messages, at once or when the first arrives."""
    queue = context.queue
    request = cast(ReceiveMessageRequest, context.call.parameters)
    most = parameters.max_number_of_messages(request.max_number_of_messages)
    wait_s = parameters.wait_time_seconds(request.wait_time_seconds)
    if wait_s is None:
        wait_s = queue.attributes.receive_message_wait_time_seconds
    visibility_s = parameters.visibility_timeout(request.visibility_timeout, context.compatibility)
    attempt = parameters.attempt_id(request.receive_request_attempt_id) if queue.traits.fifo else None
    extensions = context.compatibility.extensions
    view = MessageView(
        queue,
        context.home,
        [*request.attribute_names, *request.message_system_attribute_names],
        request.message_attribute_names,
        extensions=extensions,
    )
    if extensions and (start := _peek_start(request)) is not None:
        return (yield from _peek(context, view, start, most))
    try:
        reply: Reply = yield Ask(
            Receive(
                queue.queue_id,
                most,
                wait_s * SECOND_MS,
                None if visibility_s is None else visibility_s * SECOND_MS,
                attempt=attempt.encode() if attempt is not None else b"",
                max_leased=None if extensions else IN_FLIGHT,
                consumer=context.session.user,
            ),
            # A caller that named the attempt may ask for the same messages again, so nothing is given back.
            give_back=None if attempt else give_back,
        )
    except PenstockError as error:
        if error.code is ErrorCode.ATTEMPT_CHANGED:
            raise attempt_not_retryable(attempt or "") from None
        if error.code is ErrorCode.LIMIT_REACHED:
            if queue.traits.fifo:
                return ReceiveMessageResult()  # there the service answers with nothing
            raise over_limit("Too many messages in flight.") from None
        raise
    delivery = cast(Delivery, reply.answer)
    return ReceiveMessageResult(messages=view.messages(delivery.batches, reply.body, delivery.token))


def _peek_start(request: ReceiveMessageRequest) -> int | None:
    for name in request.message_attribute_names:
        match = _PEEK.fullmatch(name)
        if match is not None:
            return int(match[1] or 0)
    return None


def _peek(context: Context, view: MessageView, start: int, most: int) -> Steps[ReceiveMessageResult]:
    reply: Reply = yield Ask(Peek(context.queue.queue_id, start, most))
    peeked = cast(Peeked, reply.answer)
    return ReceiveMessageResult(messages=view.messages(peeked.batches, reply.body, None))
