"""Push consumers of the blocking client: plain `for` loops over what the server delivers."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.delivered import BlockingDeliveredMessages, BlockingMessage, blocking
from penstock.client.consumer import BatchConsumer, MessageConsumer
from penstock.client.group_consumer import GroupConsumer


class BlockingConsumer:
    """Yields one `BlockingMessage` after the other; use it with `with`, or in a `for` loop."""

    def __init__(self, bridge: Bridge, consumer: MessageConsumer | GroupConsumer) -> None:
        self._bridge = bridge
        self._consumer = consumer

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> BlockingMessage:
        try:
            return blocking(self._bridge, self._bridge.call(self._consumer.__anext__))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """Ends it; messages that were delivered but never handed out go back to their queue."""
        self._bridge.call(self._consumer.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BlockingBatchConsumer:
    """Yields `BlockingDeliveredMessages`: the fast way; use it with `with`, or in a `for` loop."""

    def __init__(self, bridge: Bridge, consumer: BatchConsumer) -> None:
        self._bridge = bridge
        self._consumer = consumer

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> BlockingDeliveredMessages:
        try:
            return BlockingDeliveredMessages(self._bridge, self._bridge.call(self._consumer.__anext__))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """Ends the subscription; messages that were delivered but never handed out go back to the queue."""
        self._bridge.call(self._consumer.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
