"""Sends one batch and waits for its result: stamps, back-pressure, and its place in the line to the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock.client.connection.route import Route
from penstock.client.produce.outgoing import Sendable, bring_times, encode_outgoing, given_time_us
from penstock.client.produce.stamping import plan_of
from penstock.client_core.queue_sender import SenderBatch
from penstock.ordering.stamper import Stamps
from penstock.wire.messages import Send, SendResult


def send_head(producer: int, queue_id: int, number: int, after: int, stamps: Stamps | None) -> Send:
    """The request for a batch whose messages have these stamps."""
    if stamps is None:
        return Send(queue_id, producer, number, after=after)
    time_us = 0 if stamps_column(stamps) is not None else stamps.times_us[0]
    return Send(
        queue_id,
        producer,
        number,
        stamps.process,
        stamps.counter,
        time_us,
        stamps.uncertainty_us,
        after=after,
    )


def stamps_column(stamps: Stamps | None) -> list[int] | None:
    """A time for each message; None where one for all is enough, or there is none."""
    if stamps is None:
        return None
    times_us = stamps.times_us
    return None if times_us.count(times_us[0]) == len(times_us) else times_us


class _OneBatch(SenderBatch):
    """A batch that somebody awaits."""

    __slots__ = ("_producer", "_stamps", "future")

    def __init__(self, route: Route, payload: bytes, stamps: Stamps | None) -> None:
        super().__init__()
        self._producer = route.producer
        self._stamps = stamps
        self.body = (payload,)
        self.future: asyncio.Future[SendResult] = route.link.loop.create_future()

    def head(self, queue_id: int, number: int, after: int) -> Send:
        """See `SendCall`."""
        return send_head(self._producer, queue_id, number, after, self._stamps)

    def abandoned(self) -> bool:
        """Whether the waiting task was cancelled."""
        return self.future.cancelled()

    def settled(self) -> None:
        """Resolves the future."""
        if self.future.done():
            return
        if self.result is not None:
            self.future.set_result(self.result)
        elif self.error is not None:
            self.future.set_exception(self.error)


async def send_messages(route: Route, messages: Sequence[Sendable], wanted: bool | None = None) -> SendResult:
    """Returns when the batch is on disk. `wanted`: whether to stamp it; None: as the queue's order demands."""
    reading_us = route.stamping.reading_us()
    payload = encode_outgoing(messages)  # errors in the messages are found before the server is asked
    async with route.turn:
        stamps = await _stamps(route, messages, reading_us, wanted)
        if (column := stamps_column(stamps)) is not None:
            payload = encode_outgoing(messages, column)
        batch = await _submitted(route, payload, stamps)
    return await batch.future


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
        batch = await _submitted(route, payload, None)
    return await batch.future


async def _submitted(route: Route, payload: bytes, stamps: Stamps | None) -> _OneBatch:
    """Puts the batch in the line as soon as there is room; the caller has the turn."""
    link = route.link
    await route.resolve()
    while link.congested:
        await link.room()
    batch = _OneBatch(route, payload, stamps)
    batch.submit(route)
    return batch
