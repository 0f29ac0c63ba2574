"""Push consumers: `async for` over deliveries, by message or by delivery."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from penstock.client.connection.link import Link
from penstock.client.consume.subscription import Subscription
from penstock.client.settle.delivered import DeliveredMessages, Message


class _Consumer:
    """The common part of both consumers: beginning and ending.

    Leaving the loop ends the subscription when the consumer object is freed; `async with` ends it before the next line
    runs.
    """

    __slots__ = ("_link", "_subscription")

    def __init__(self, link: Link, subscription: Subscription) -> None:
        self._link = link
        self._subscription = subscription

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        await self._subscription.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the subscription; messages that were delivered but never handed out go back to the queue."""
        await self._subscription.close()

    def __del__(self) -> None:
        if not self._subscription.closed:
            self._link.background.run_from_collector(self._subscription.close)


class BatchConsumer(_Consumer):
    """Yields `DeliveredMessages`: the fast way."""

    __slots__ = ()

    async def __anext__(self) -> DeliveredMessages:
        delivery = await self._subscription.next()
        if delivery is None:
            raise StopAsyncIteration
        self._subscription.handed_out(len(delivery))
        return delivery


class MessageConsumer(_Consumer):
    """Yields one `Message` after the other."""

    __slots__ = ()

    async def __anext__(self) -> Message:
        message = await self._subscription.next_message()
        if message is None:
            raise StopAsyncIteration
        return message
