"""A priority group: one queue for each priority, received from together by weight."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from penstock.client.client import Client
from penstock.client.connection.call import FutureCall
from penstock.client.connection.failure import refused
from penstock.client.connection.incarnation import Incarnation
from penstock.client.consume.group_consumer import GroupConsumer
from penstock.client.consume.group_messages import GroupMessages
from penstock.client.duration import Duration, milliseconds, optional_milliseconds
from penstock.client.queue import Queue
from penstock.client.settle.delivered import DeliveredMessages
from penstock.client_core.call import unexpected
from penstock.client_core.settling import GIVE_BACK
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import (
    Answer,
    Delivery,
    GroupDelivery,
    QueueDelivery,
    ReceiveAny,
    Unsubscribe,
    WeightedQueue,
)


class PriorityGroup:
    """Queues that are received from together: `PriorityGroup(client, {"orders-high": 8, "orders-low": 1})`.

    While all of them have messages, each delivers in proportion to its weight, and each delivers in every round, so the
    lowest never starves. A queue without messages leaves its share to the others. All consumers of the same queues with
    the same weights share the turns, which the server keeps.
    """

    def __init__(self, client: Client, weights: Mapping[str, int]) -> None:
        self.weights: dict[str, int] = dict(weights)
        """The weights by the names of the queues."""
        if not 1 <= len(self.weights) <= limits.QUEUES_PER_RECEIVE:
            raise refused(
                f"a priority group of {len(self.weights)} queues; use 1 to {limits.QUEUES_PER_RECEIVE}"
            )
        for name, weight in self.weights.items():
            if not 1 <= weight <= limits.QUEUE_WEIGHT_MAX:
                raise refused(f"the weight of {name!r} is {weight}; use 1 to {limits.QUEUE_WEIGHT_MAX}")
        self.queues: dict[str, Queue] = {name: client.queue(name) for name in self.weights}
        """The queues by their names: send to them as to any other."""
        self._link = next(iter(self.queues.values())).route.link

    def __repr__(self) -> str:
        return f"<priority group {self.weights}>"

    async def receive(
        self,
        max_messages: int = 10,
        *,
        wait: Duration = 0,
        visibility_timeout: Duration | None = None,
        max_bytes: int | None = None,
    ) -> GroupMessages:
        """Receives what is there, up to `max_messages` of all queues; with none, waits up to `wait` seconds for some.

        The arguments are those of `queue.receive`; `visibility_timeout` None is each queue's own.
        """
        wait_ms = milliseconds(wait, "wait")
        timeout_ms = optional_milliseconds(visibility_timeout, "visibility_timeout")

        def request(known: Mapping[str, Incarnation]) -> ReceiveAny:
            queues = [WeightedQueue(known[name].queue_id, weight) for name, weight in self.weights.items()]
            return ReceiveAny(queues, max_messages, wait_ms, timeout_ms, max_bytes)

        known = await self._resolve()
        try:
            return await self._ask(request(known), known)
        except PenstockError as error:
            if error.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
            present = await self._look_again()
            if {name: one.queue_id for name, one in present.items()} == {
                name: one.queue_id for name, one in known.items()
            }:
                raise
            return await self._ask(request(present), present)

    async def _resolve(self) -> dict[str, Incarnation]:
        found = await asyncio.gather(*(queue.route.resolve() for queue in self.queues.values()))
        return dict(zip(self.queues, found, strict=True))

    async def _look_again(self) -> dict[str, Incarnation]:
        """Describes every queue again; raises with the name of the one that is gone."""
        for queue in self.queues.values():
            queue.route.forget()
        return await self._resolve()

    async def _ask(self, request: ReceiveAny, known: Mapping[str, Incarnation]) -> GroupMessages:
        names = {incarnation.queue_id: name for name, incarnation in known.items()}

        def convert(_call: FutureCall[GroupMessages], answer: Answer, body: memoryview) -> GroupMessages:
            if not isinstance(answer, GroupDelivery):
                raise unexpected(answer)
            return self._delivered(answer, body, names)

        call = FutureCall(self._link.loop, convert, unclaimed=_give_back)
        request_id = self._link.start(call, request)
        try:
            return await call.future
        except asyncio.CancelledError:
            if not call.future.cancelled():  # it came in the very turn in which this task was cancelled
                _give_back(call.future.result())
            else:
                self._link.post(Unsubscribe(request_id))
            raise

    def _delivered(self, answer: GroupDelivery, body: memoryview, names: Mapping[int, str]) -> GroupMessages:
        deliveries: list[DeliveredMessages] = []
        start = 0
        for one in answer.deliveries:
            end = start + sum(batch.size for batch in one.batches)
            deliveries.append(self._of_one_queue(one, body[start:end], names))
            start = end
        return GroupMessages(deliveries)

    def _of_one_queue(
        self, one: QueueDelivery, body: memoryview, names: Mapping[int, str]
    ) -> DeliveredMessages:
        name = names.get(one.queue_id)
        if name is None:
            raise PenstockError(
                ErrorCode.INTERNAL, "the server delivered from a queue that was not asked for"
            )
        delivery = Delivery(one.token, one.until_ms, one.batches)
        return DeliveredMessages(name, self.queues[name].settler, delivery, body, self._link.loop.time())

    def consume(
        self,
        *,
        batch_messages: int = 10,
        visibility_timeout: Duration | None = None,
        heartbeat: bool = False,
    ) -> GroupConsumer:
        """One message after the other: `async for message in group.consume(): ...`.

        Up to `batch_messages` are received at a time: the fewer, the sooner a message of a high priority is next.
        With `heartbeat`, leases are extended for as long as messages are being worked on.
        """
        if not 1 <= batch_messages <= limits.RECEIVE_MESSAGES:
            raise refused(f"batch_messages is {batch_messages}: use 1 to {limits.RECEIVE_MESSAGES}")

        async def receive(wait: float) -> GroupMessages:
            return await self.receive(batch_messages, wait=wait, visibility_timeout=visibility_timeout)

        timeout_ms = optional_milliseconds(visibility_timeout, "visibility_timeout")
        routes = {name: queue.route for name, queue in self.queues.items()}
        return GroupConsumer(self._link, receive, routes, timeout_ms, heartbeat=heartbeat)


def _give_back(messages: GroupMessages) -> None:
    """A receive was cancelled and messages came all the same: returns them for other consumers."""
    if messages:
        for delivery in messages.deliveries:
            delivery.settler.together(GIVE_BACK, delivery.lease)
