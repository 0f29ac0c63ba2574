"""Sends one encoded batch and sees it through: numbering, a queue made again, back-pressure."""

from __future__ import annotations

from penstock.client.call import FutureCall, expecting
from penstock.client.incarnation import Incarnation
from penstock.client.route import Route
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Send, SendResult

_result = expecting(SendResult)


async def send_payload(route: Route, payload: bytes) -> SendResult:
    """Returns when the batch is on disk. Sent again after a broken connection, it is not stored twice."""
    incarnation = route.incarnation or await route.resolve()
    try:
        return await _send(route, incarnation, payload)
    except PenstockError as error:
        if error.code is not ErrorCode.QUEUE_NOT_FOUND:
            raise
        present = await route.refresh(incarnation)
        if present is None:
            raise
        return await _send(route, present, payload)


async def _send(route: Route, incarnation: Incarnation, payload: bytes) -> SendResult:
    link = route.link
    while link.congested:
        await link.room()
    while (number := incarnation.take_number()) is None:
        await incarnation.number_free()
    try:
        call = FutureCall(link.loop, _result)
        link.start(call, Send(incarnation.queue_id, route.producer, number), (payload,))
        return await call.future
    finally:
        incarnation.answered(number)
