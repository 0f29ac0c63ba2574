"""Made from `penstock.client.client` by `make blocking`: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self, Unpack

from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.queue import BlockingQueue
from penstock.client.blocking.sequencer import BlockingClientSequencer
from penstock.client.client import Client
from penstock.client.produce.clock import ClockStatus
from penstock.client.queue_options import QueueOptions
from penstock.ordering.timestamp_id import TimestampId
from penstock.wire.messages import NodeDescription, QueueDescription


class BlockingClient:
    """A connection to a server that reconnects by itself; made by `penstock.connect_blocking()`. Use it from any thread."""

    def __init__(self, bridge: Bridge, client: Client) -> None:
        self._bridge = bridge
        self._client = client

    @property
    def sequencer(self) -> BlockingClientSequencer:
        """Timestamp ids made here, by the server's time: `client.sequencer.take(10)`."""
        return BlockingClientSequencer(self._bridge, self._client.sequencer)

    def close(self) -> None:
        """Flushes producers, ends consumers, closes the connection. `with` does it by itself."""
        if self._bridge.stopped:
            return
        try:
            self._bridge.call(self._client.close)
        finally:
            self._bridge.stop()

    def queue(self, name: str) -> BlockingQueue:
        """A handle on a queue; the server is asked on first use."""
        return BlockingQueue(self._bridge, self._bridge.call_plain(self._client.queue, name))

    def create_queue(self, name: str, **options: Unpack[QueueOptions]) -> BlockingQueue:
        """Creates a queue, or finds the one that has the same settings. See `QueueOptions`."""
        return BlockingQueue(self._bridge, self._bridge.run(self._client.create_queue(name, **options)))

    def alter_queue(self, name: str, **options: Unpack[QueueOptions]) -> QueueDescription:
        """Changes settings of a queue; those not named stay as they are."""
        return self._bridge.run(self._client.alter_queue(name, **options))

    def delete_queue(self, name: str) -> None:
        """Deletes a queue and what is in it."""
        self._bridge.call(self._client.delete_queue, name)

    def describe_queue(self, name: str) -> QueueDescription:
        """Settings and statistics of a queue, as of now."""
        return self._bridge.call(self._client.describe_queue, name)

    def list_queues(self, prefix: str = "") -> Iterator[QueueDescription]:
        """All queues whose name begins with `prefix`, by name."""
        for page in self._bridge.each(self._client.queue_pages(prefix)):
            yield from page.queues

    def describe_node(self) -> NodeDescription:
        """The server itself: disk, memory, what is wrong."""
        return self._bridge.call(self._client.describe_node)

    def clock(self) -> ClockStatus:
        """The server's time, how far this computer's clock is from it, and how far that may be off."""
        return self._bridge.call(self._client.clock)

    def timestamp_id(self) -> TimestampId:
        """A new timestamp id, made here: greater than all that this client made before. See `sequencer`."""
        return self._bridge.call(self._client.timestamp_id)

    def timestamp_ids(self, count: int = 1) -> list[TimestampId]:
        """New timestamp ids, made here, all of one time. See `sequencer`."""
        return self._bridge.call(self._client.timestamp_ids, count)

    def take_ids(self, count: int = 1) -> list[TimestampId]:
        """New timestamp ids from the server's sequencer, for programs without a clock of their own."""
        return self._bridge.call(self._client.take_ids, count)

    @property
    def twin(self) -> tuple[Bridge, Client]:
        """The asynchronous client that does the work, and the way to it."""
        return self._bridge, self._client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
