"""Made from `penstock.client.consume.consumer` by `make blocking`: do not edit."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.delivered import BlockingDeliveredMessages, BlockingMessage, blocking
from penstock.client.consume.consumer import BatchConsumer, MessageConsumer
from penstock.client.consume.group_consumer import GroupConsumer


class BlockingConsumer:
    """Yields one `BlockingMessage` after the other; use it with `with`, or in a `for` loop."""

    def __init__(self, bridge: Bridge, consumer: MessageConsumer | GroupConsumer) -> None:
        self._bridge = bridge
        self._consumer = consumer

    def __next__(self) -> BlockingMessage:
        try:
            return blocking(self._bridge, self._bridge.call(self._consumer.__anext__))
        except StopAsyncIteration:
            raise StopIteration from None

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        self._bridge.call(self._consumer.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bridge.end(self._consumer.__aexit__, kind, error, trace)

    def close(self) -> None:
        """Ends it; messages that were delivered but never handed out go back to their queue."""
        self._bridge.end(self._consumer.aclose)


class BlockingBatchConsumer:
    """Yields `BlockingDeliveredMessages`: the fast way; use it with `with`, or in a `for` loop."""

    def __init__(self, bridge: Bridge, consumer: BatchConsumer) -> None:
        self._bridge = bridge
        self._consumer = consumer

    def __next__(self) -> BlockingDeliveredMessages:
        try:
            return BlockingDeliveredMessages(self._bridge, self._bridge.call(self._consumer.__anext__))
        except StopAsyncIteration:
            raise StopIteration from None

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        self._bridge.call(self._consumer.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bridge.end(self._consumer.__aexit__, kind, error, trace)

    def close(self) -> None:
        """Ends the subscription; messages that were delivered but never handed out go back to the queue."""
        self._bridge.end(self._consumer.aclose)
