"""A priority group without `await`: the calls of `penstock.client.priority_group.PriorityGroup`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.client import BlockingClient
from penstock.client.blocking.consumer import BlockingConsumer
from penstock.client.blocking.delivered import BlockingMessage, blocking
from penstock.client.duration import Duration
from penstock.client.group_messages import GroupMessages
from penstock.client.priority_group import PriorityGroup
from penstock.client.settlement import Settlement


class BlockingGroupMessages(Sequence[BlockingMessage]):
    """Messages of several queues, the greatest weight first; each knows its queue (`message.queue_name`)."""

    __slots__ = ("_bridge", "_messages")

    def __init__(self, bridge: Bridge, messages: GroupMessages) -> None:
        self._bridge = bridge
        self._messages = messages

    def bodies(self) -> list[bytes]:
        """All bodies, in order: the quickest way to them."""
        return self._messages.bodies()

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[BlockingMessage]:
        for message in self._messages:
            yield blocking(self._bridge, message)

    @overload
    def __getitem__(self, index: int) -> BlockingMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[BlockingMessage]: ...
    def __getitem__(self, index: int | slice) -> BlockingMessage | list[BlockingMessage]:
        if isinstance(index, slice):
            return [blocking(self._bridge, message) for message in self._messages[index]]
        return blocking(self._bridge, self._messages[index])

    def __repr__(self) -> str:
        return repr(self._messages)

    def delete(self) -> Settlement:
        """Done with them: the server forgets the messages."""
        return self._bridge.call(self._messages.delete)

    ack = delete

    def release(self, delay: Duration = 0, *, error: str | BaseException = "") -> Settlement:
        """Gives them back for another try, not before `delay` seconds."""
        return self._bridge.call(self._messages.release, delay, error=error)

    def extend(self, visibility_timeout: Duration) -> Settlement:
        """Keeps them for so many seconds from now."""
        return self._bridge.call(self._messages.extend, visibility_timeout)


class BlockingPriorityGroup:
    """Queues that are received from together: `BlockingPriorityGroup(client, {"orders-high": 8, "orders-low": 1})`."""

    def __init__(self, client: BlockingClient, weights: Mapping[str, int]) -> None:
        self._bridge, twin = client.twin
        self._group = PriorityGroup(twin, weights)

    @property
    def weights(self) -> dict[str, int]:
        """The weights by the names of the queues."""
        return self._group.weights

    def __repr__(self) -> str:
        return repr(self._group)

    def receive(
        self,
        max_messages: int = 10,
        *,
        wait: Duration = 0,
        visibility_timeout: Duration | None = None,
        max_bytes: int | None = None,
    ) -> BlockingGroupMessages:
        """Receives what is there, up to `max_messages` of all queues; with none, waits up to `wait` seconds for some."""
        messages = self._bridge.call(
            self._group.receive,
            max_messages,
            wait=wait,
            visibility_timeout=visibility_timeout,
            max_bytes=max_bytes,
        )
        return BlockingGroupMessages(self._bridge, messages)

    def consume(
        self,
        *,
        batch_messages: int = 10,
        visibility_timeout: Duration | None = None,
        heartbeat: bool = False,
    ) -> BlockingConsumer:
        """One message after the other: `for message in group.consume(): ...`."""
        consumer = self._bridge.call_plain(
            self._group.consume,
            batch_messages=batch_messages,
            visibility_timeout=visibility_timeout,
            heartbeat=heartbeat,
        )
        return BlockingConsumer(self._bridge, consumer)
