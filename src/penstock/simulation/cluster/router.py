"""Clients of a cluster: each asks the node that leads by the layout, and looks again when it was the wrong one.

What a node says that leads no more means nothing certain: the request may have been carried out and be part of what the next
primary has. So it is no answer, as when the connection was lost; only what may be asked twice is asked again at once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from random import Random

from penstock.cluster import layout
from penstock.cluster.layout import PartitionEntry
from penstock.model.errors import ErrorCode
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.cluster.metadata import SimulatedMetadata, StoredChange
from penstock.simulation.network import Network
from penstock.simulation.tasks import Reply
from penstock.simulation.trace import Trace
from penstock.simulation.workload.stage import Stage
from penstock.wire import messages

_QUEUE_OF_TOKEN = struct.Struct("<Q")
_NOT_HERE = (
    ErrorCode.NOT_PRIMARY,
    ErrorCode.QUEUE_DAMAGED,
    ErrorCode.QUEUE_NOT_FOUND,
    ErrorCode.UNREACHABLE,  # it was written and may be committed by the next primary, or not
)
"""Said by nodes that cannot answer for the partition; another one can, or will."""
_AGAIN = (messages.Send, messages.DescribeQueue, messages.Peek)
_AGAIN_MS = 60
_NOBODY_MS = 40
_STRAY_SHARE = 0.03

Done = Callable[[Reply | None], None]


class Routes:
    """The layout as one client has heard of it; it may be out of reach of the store for a while, and out of date."""

    def __init__(self, who: str, metadata: SimulatedMetadata, fabric: Fabric, random: Random) -> None:
        self.partitions: dict[int, PartitionEntry] = {}
        self._fabric = fabric
        self._random = random
        metadata.watch(who, self._heard)

    def _heard(self, change: StoredChange) -> None:
        if change.key.startswith(layout.PARTITIONS):
            number = int(change.key.removeprefix(layout.PARTITIONS))
            if change.value is None:
                self.partitions.pop(number, None)
            else:
                self.partitions[number] = layout.decode_partition(change.value)

    def node_for(self, partition: int | None) -> str | None:
        """Whom to ask; now and then somebody who is out of date asks anybody."""
        if not self._fabric.calm and self._random.random() < _STRAY_SHARE:
            return self._random.choice(list(self._fabric.clients))
        entry = self.partitions.get(partition) if partition is not None else None
        return entry.primary if entry is not None else None

    def partition_of(self, request: messages.Request) -> int | None:
        """The partition that a request is about."""
        match request:
            case messages.Send() | messages.Receive() | messages.Peek():
                return request.queue_id
            case messages.Delete() | messages.Release() | messages.Extend():
                (queue_id,) = _QUEUE_OF_TOKEN.unpack_from(request.receipts[0].token)
                # A forged token may name a queue that is not there: anybody may refuse it.
                return int(queue_id) if queue_id in self.partitions else min(self.partitions, default=None)
            case messages.DescribeQueue():
                found = [entry for entry in self.partitions.values() if entry.queue == request.name]
                return found[0].partition if found else None
            case _:
                raise AssertionError(f"no client of the simulation asks {type(request).__name__}")


class RoutingClient(SimulatedClient):
    """One client with a connection to each node that it needs."""

    def __init__(
        self, name: str, networks: Mapping[str, Network], routes: Routes, random: Random, trace: Trace
    ) -> None:
        super().__init__(name, next(iter(networks.values())), random, trace)
        self._routes = routes
        self._inner = {
            node: SimulatedClient(name, network, random, trace) for node, network in networks.items()
        }
        self._asked: dict[int, tuple[str, int]] = {}
        self._number = 0

    def ask(self, request: messages.Request, body: bytes, timeout_ms: int, done: Done) -> None:
        """Asks whoever leads; `done` gets the answer, or None where there is none that is certain."""
        self._number += 1
        if isinstance(request, messages.ListQueues):
            self._list(sorted(self._routes.partitions), [], done)
        else:
            self._ask(request, body, timeout_ms, done, again=isinstance(request, _AGAIN))

    def _ask(
        self, request: messages.Request, body: bytes, timeout_ms: int, done: Done, *, again: bool
    ) -> None:
        node = self._routes.node_for(self._routes.partition_of(request))
        if node is None:
            self.after(_NOBODY_MS, lambda: done(None))
            return

        def answered(reply: Reply | None) -> None:
            answer = reply.answer if reply is not None else None
            if not isinstance(answer, messages.Failed) or answer.code not in _NOT_HERE:
                done(reply)
            elif again:
                self.after(_AGAIN_MS, lambda: self._ask(request, body, timeout_ms, done, again=False))
            else:
                done(None)

        inner = self._inner[node]
        inner.ask(request, body, timeout_ms, answered)
        self._asked[self._number] = (node, inner.last_request)

    def _list(self, left: list[int], found: list[messages.QueueDescription], done: Done) -> None:
        """Every queue, each described by its primary."""
        if not left:
            done(Reply(messages.QueueList(found, False), memoryview(b"")))
            return
        name = self._routes.partitions[left[0]].queue

        def described(reply: Reply | None) -> None:
            if reply is None or not isinstance(reply.answer, messages.QueueDescription):
                done(None)
            else:
                self._list(left[1:], [*found, reply.answer], done)

        self._ask(messages.DescribeQueue(name), b"", 3_000, described, again=True)

    @property
    def last_request(self) -> int:
        """A number for the last request, as this client counts them."""
        return self._number

    def tell(self, request: messages.Request) -> None:
        """Ends the wait of a request, at the node that was asked."""
        assert isinstance(request, messages.Unsubscribe)
        node, number = self._asked.get(request.subscription, (None, 0))
        if node is not None:
            self._inner[node].tell(messages.Unsubscribe(number))

    def disconnect(self) -> None:
        """Breaks all its connections."""
        for inner in self._inner.values():
            inner.disconnect()

    def send_raw(self, data: bytes) -> None:
        """Sends bytes as they are to some node."""
        self._inner[self._random.choice(sorted(self._inner))].send_raw(data)


class ClusterStage(Stage):
    """The stage of a cluster: its clients find their way."""

    fabric: Fabric
    metadata: SimulatedMetadata

    def client(self, name: str) -> SimulatedClient:
        """A new client."""
        networks = self.fabric.clients
        routes = Routes(name, self.metadata, self.fabric, self.random)
        client = RoutingClient(name, networks, routes, self.random, self.trace)
        self.fabric.client_names.append(name)
        self.clients.append(client)
        return client
