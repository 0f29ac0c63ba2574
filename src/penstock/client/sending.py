"""Sends one batch and sees it through: stamps, numbering, a queue made again, back-pressure, a cluster that changes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.client.backoff import delays
from penstock.client.call import FutureCall, expecting
from penstock.client.failure import passes
from penstock.client.incarnation import Incarnation
from penstock.client.link import Link
from penstock.client.outgoing import Sendable, bring_times, encode_outgoing, given_time_us
from penstock.client.route import Route
from penstock.client.stamping import plan_of
from penstock.model.errors import ErrorCode, PenstockError
from penstock.ordering.stamper import Stamps
from penstock.wire.messages import Send, SendResult

_result = expecting(SendResult)


def send_head(route: Route, incarnation: Incarnation, number: int, stamps: Stamps | None) -> Send:
    """The request for a batch whose messages have these stamps."""
    if stamps is None:
        return Send(incarnation.queue_id, route.producer, number)
    time_us = 0 if stamps_column(stamps) is not None else stamps.times_us[0]
    return Send(
        incarnation.queue_id,
        route.producer,
        number,
        stamps.process,
        stamps.counter,
        time_us,
        stamps.uncertainty_us,
    )


def stamps_column(stamps: Stamps | None) -> list[int] | None:
    """A time for each message; None where one for all is enough, or there is none."""
    if stamps is None:
        return None
    times_us = stamps.times_us
    return None if times_us.count(times_us[0]) == len(times_us) else times_us


async def send_messages(route: Route, messages: Sequence[Sendable], wanted: bool | None = None) -> SendResult:
    """Returns when the batch is on disk. `wanted`: whether to stamp it; None: as the queue's order demands."""
    reading_us = route.stamping.reading_us()
    payload = encode_outgoing(messages)  # what is wrong with the messages is known before the server is asked
    async with route.turn:
        stamps = await _stamps(route, messages, reading_us, wanted)
        if (column := stamps_column(stamps)) is not None:
            payload = encode_outgoing(messages, column)
        underway = await _start(route, payload, stamps)
    return await _finish(route, payload, stamps, underway)


async def _stamps(
    route: Route, messages: Sequence[Sendable], reading_us: int, wanted: bool | None
) -> Stamps | None:
    description = route.description or await route.describe()
    plan = plan_of(description.settings, wanted)
    if plan is not None and any(given_time_us(one) is None for one in messages):
        await route.stamping.prepare(route.name, plan)
    if plan is None and not bring_times(messages):
        return None
    return route.stamping.stamp(plan, [reading_us] * len(messages), messages)


async def send_payload(route: Route, payload: bytes) -> SendResult:
    """Returns when the batch is on disk. Sent again after a broken connection, it is not stored twice."""
    async with route.turn:
        underway = await _start(route, payload, None)
    return await _finish(route, payload, None, underway)


class _Underway(NamedTuple):
    """A batch that was sent and is not answered yet."""

    incarnation: Incarnation
    head: Send
    call: FutureCall[SendResult]

    async def result(self, link: Link, payload: bytes) -> SendResult:
        """The answer; a cluster that cannot take the batch just now is asked again, for as long as one that is away."""
        call = self.call
        pauses: Iterator[float] | None = None  # seeding the dice takes 20 µs, and next to nobody has to wait
        deadline = link.loop.time() + link.timeout
        try:
            while True:
                try:
                    return await call.future
                except PenstockError as error:
                    pauses = pauses or delays(random.Random())
                    pause = next(pauses)
                    again = passes(error, connected=link.connected, resent=call.resent)
                    if not again or link.loop.time() + pause > deadline:
                        raise
                await asyncio.sleep(pause)
                call = FutureCall(link.loop, _result)
                link.start(call, self.head, (payload,))
        finally:
            self.incarnation.answered(self.head.number)


async def _start(route: Route, payload: bytes, stamps: Stamps | None) -> _Underway:
    """Sends the batch as soon as there is room; whoever calls has the turn."""
    link = route.link
    incarnation = route.incarnation or await route.resolve()
    while link.congested:
        await link.room()
    while (number := incarnation.take_number()) is None:
        await incarnation.number_free()
    call = FutureCall(link.loop, _result)
    head = send_head(route, incarnation, number, stamps)
    try:
        link.start(call, head, (payload,))
    except BaseException:
        incarnation.answered(number)
        raise
    return _Underway(incarnation, head, call)


async def _finish(route: Route, payload: bytes, stamps: Stamps | None, underway: _Underway) -> SendResult:
    """The answer; where the queue was made again meanwhile, that of the new one."""
    try:
        return await underway.result(route.link, payload)
    except PenstockError as error:
        if error.code is not ErrorCode.QUEUE_NOT_FOUND:
            raise
        if await route.refresh(underway.incarnation) is None:
            raise
    async with route.turn:
        underway = await _start(route, payload, stamps)
    return await underway.result(route.link, payload)
