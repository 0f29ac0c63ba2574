"""The blocking client: the calls of `penstock.client.client.Client` without `await`, from any thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self, Unpack

from penstock.client.address import DEFAULT_URL, parse_address
from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.queue import BlockingQueue
from penstock.client.client import Client, connect
from penstock.client.clock import LOCAL_CLOCK, ClockStatus
from penstock.client.duration import Duration
from penstock.client.endpoints import connect_to_any
from penstock.client.queue_options import QueueOptions
from penstock.client.trust import Authority
from penstock.ordering.clock_estimator import DRIFT_PPM
from penstock.ordering.local_clock import LocalClock
from penstock.ordering.timestamp_id import TimestampId
from penstock.wire.messages import NodeDescription, QueueDescription


class BlockingClient:
    """A connection to a server that mends itself; made by `penstock.connect_blocking()`."""

    def __init__(self, bridge: Bridge, client: Client) -> None:
        self._bridge = bridge
        self._client = client

    @property
    def twin(self) -> tuple[Bridge, Client]:
        """The async client that does the work, and the way to it."""
        return self._bridge, self._client

    def close(self) -> None:
        """Flushes producers, ends consumers, closes the connection. `with` does it by itself."""
        if self._bridge.stopped:
            return
        try:
            self._bridge.call(self._client.close)
        finally:
            self._bridge.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def queue(self, name: str) -> BlockingQueue:
        """A handle on a queue; the server is asked on first use."""
        return BlockingQueue(self._bridge, self._client.queue(name))

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
        pages = self._client.queue_pages(prefix)
        while True:
            try:
                page = self._bridge.call(pages.__anext__)
            except StopAsyncIteration:
                return
            yield from page.queues

    def describe_node(self) -> NodeDescription:
        """The server itself: disk, memory, what is wrong."""
        return self._bridge.call(self._client.describe_node)

    def clock(self) -> ClockStatus:
        """The server's time, how far this computer's clock is from it, and how far that may be off."""
        return self._bridge.call(self._client.clock)

    def timestamp_id(self) -> TimestampId:
        """A new timestamp id, made here: greater than all that this client made before."""
        return self._bridge.call(self._client.timestamp_id)

    def timestamp_ids(self, count: int = 1) -> list[TimestampId]:
        """New timestamp ids, made here, all of one time."""
        return self._bridge.call(self._client.sequencer.take, count)

    def take_ids(self, count: int = 1) -> list[TimestampId]:
        """New timestamp ids from the server's sequencer."""
        return self._bridge.call(self._client.take_ids, count)


def connect_blocking(
    url: str = DEFAULT_URL,
    *,
    timeout: Duration = 30.0,
    name: str | None = None,
    local_clock: LocalClock = LOCAL_CLOCK,
    drift_ppm: int = DRIFT_PPM,
    access_key: str | None = None,
    secret_key: str | None = None,
    ca: Authority | None = None,
) -> BlockingClient:
    """Connects to a server: `with penstock.connect_blocking("penstock://127.0.0.1:9326") as client: ...`.

    The arguments are those of `connect`.
    """
    connecting = connect(
        url,
        timeout=timeout,
        name=name,
        local_clock=local_clock,
        drift_ppm=drift_ppm,
        access_key=access_key,
        secret_key=secret_key,
        ca=ca,
    )
    bridge = Bridge()
    try:
        return BlockingClient(bridge, bridge.call(connecting.connect))
    except BaseException:
        bridge.stop()
        raise


def connect_blocking_to_any(
    urls: Sequence[str],
    *,
    timeout: float,
    name: str,
    access_key: str | None = None,
    secret_key: str | None = None,
    ca: Authority | None = None,
    patient: bool = True,
) -> BlockingClient:
    """Connects to the first of several servers that answers; see `penstock.client.endpoints`. `ca` is for those with TLS."""
    endpoints = [
        connect(
            url,
            timeout=timeout,
            name=name,
            access_key=access_key,
            secret_key=secret_key,
            ca=ca if parse_address(url).secure else None,
        )
        for url in urls
    ]
    bridge = Bridge()
    try:
        return BlockingClient(bridge, bridge.run(connect_to_any(endpoints, timeout, patient=patient)))
    except BaseException:
        bridge.stop()
        raise
