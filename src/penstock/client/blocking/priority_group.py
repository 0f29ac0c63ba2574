"""Made from `penstock.client.consume.group_messages`, `penstock.client.consume.priority_group` by `make blocking`: do not edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.client import BlockingClient
from penstock.client.blocking.consumer import BlockingConsumer
from penstock.client.blocking.delivered import BlockingDeliveredMessages, BlockingMessage, blocking
from penstock.client.blocking.queue import BlockingQueue
from penstock.client.consume.group_messages import GroupMessages
from penstock.client.consume.priority_group import PriorityGroup
from penstock.client.duration import Duration
from penstock.client.settle.settlement import Settlement


class BlockingGroupMessages(Sequence[BlockingMessage]):
    """Messages of several queues, the greatest weight first; each knows its queue (`message.queue_name`).

    The batch calls settle all messages that are not settled yet, in every queue.
    """

    __slots__ = ("_bridge", "_messages")

    def __init__(self, bridge: Bridge, messages: GroupMessages) -> None:
        self._bridge = bridge
        self._messages = messages

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

    @property
    def deliveries(self) -> list[BlockingDeliveredMessages]:
        """The delivery of each queue."""
        return [BlockingDeliveredMessages(self._bridge, one) for one in self._messages.deliveries]

    def bodies(self) -> list[bytes]:
        """All bodies, in order: the quickest way to them."""
        return self._messages.bodies()

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
    """Queues that are received from together: `BlockingPriorityGroup(client, {"orders-high": 8, "orders-low": 1})`.

    While all of them have messages, each delivers in proportion to its weight, and each delivers in every round, so the
    lowest never starves. A queue without messages leaves its share to the others. All consumers of the same queues with
    the same weights share the turns, which the server keeps.
    """

    def __init__(self, client: BlockingClient, weights: Mapping[str, int]) -> None:
        self._bridge, twin = client.twin
        self._group = self._bridge.call_plain(PriorityGroup, twin, weights)

    @property
    def weights(self) -> dict[str, int]:
        """The weights by the names of the queues."""
        return self._group.weights

    @property
    def queues(self) -> dict[str, BlockingQueue]:
        """The queues by their names: send to them as to any other."""
        return {name: BlockingQueue(self._bridge, one) for name, one in self._group.queues.items()}

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
        """Receives what is there, up to `max_messages` of all queues; with none, waits up to `wait` seconds for some.

        The arguments are those of `queue.receive`; `visibility_timeout` None is each queue's own.
        """
        return BlockingGroupMessages(
            self._bridge,
            self._bridge.call(
                self._group.receive,
                max_messages,
                wait=wait,
                visibility_timeout=visibility_timeout,
                max_bytes=max_bytes,
            ),
        )

    def consume(
        self, *, batch_messages: int = 10, visibility_timeout: Duration | None = None, heartbeat: bool = False
    ) -> BlockingConsumer:
        """One message after the other: `for message in group.consume(): ...`.

        Up to `batch_messages` are received at a time: the fewer, the sooner a message of a high priority is next.
        With `heartbeat`, leases are extended for as long as messages are being worked on.
        """
        return BlockingConsumer(
            self._bridge,
            self._bridge.call_plain(
                self._group.consume,
                batch_messages=batch_messages,
                visibility_timeout=visibility_timeout,
                heartbeat=heartbeat,
            ),
        )
