"""A node's place in the cluster, the twin of `runtime.peers`: its lease, the layout it hears of, what it asks for.

One member is one life of a process. Everything it hears passes through its machine, which may stand still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.backend.replication.layout_view import Proposal
from penstock.backend.replication.replicated_node import ReplicatedNode
from penstock.cluster import layout
from penstock.cluster.layout import NodeEntry, PartitionEntry, Position, PositionsEntry, encode
from penstock.cluster.positions import asked_of
from penstock.simulation.cluster.metadata import SimulatedMetadata, StoredChange
from penstock.simulation.cluster.office import Office
from penstock.simulation.schedule import Times
from penstock.simulation.trace import Trace

LEASE_MS = 2_000
_RENEW_MS = 500
_MARGIN_MS = 200
_RETRY_MS = 200
_LOOK_MS = 200


class Host(Protocol):
    """The machine, as the member of the cluster on it sees it."""

    name: str

    def do(self, call: Callable[[], None]) -> None:
        """Does something, when the machine does not stand still."""

    def call_node(self, call: Callable[[ReplicatedNode], None]) -> None:
        """Lets the node do something, and looks what comes of it."""


class Member:
    """Keeps one node in the store and tells it of the layout."""

    def __init__(
        self,
        host: Host,
        node: ReplicatedNode,
        store: SimulatedMetadata,
        schedule: Times,
        trace: Trace,
        started_ms: int,
    ) -> None:
        self._host = host
        self._node = node
        self._store = store
        self._schedule = schedule
        self._trace = trace
        self.started_ms = started_ms
        self.ended = False
        self._registered = False
        self._lease: int | None = None
        self._nodes: dict[str, NodeEntry] = {}
        self._partitions: dict[int, PartitionEntry] = {}
        self._positions: dict[int, Position] = {}
        self._said: PositionsEntry | None = None
        self.office = Office(host.name, store, schedule, trace, self._later)
        self._watch = store.watch(host.name, lambda change: self._do(lambda: self._heard(change)))
        self._keep_alive()
        self._look_at_positions()

    def end(self) -> None:
        """The process is gone."""
        self.ended = self._watch.ended = True

    def _do(self, call: Callable[[], None]) -> None:
        self._host.do(lambda: None if self.ended else call())

    def _later(self, delay_ms: int, call: Callable[[], None]) -> None:
        self._schedule.after(delay_ms, lambda: self._do(call))

    # -- the lease -------------------------------------------------------------------------------------------

    def _keep_alive(self) -> None:
        began_ms = self._schedule.now_ms
        name, lease = self._host.name, self._lease
        if lease is None:
            self._store.ask(
                name,
                lambda: self._store.grant(LEASE_MS),
                lambda new: self._do(lambda: self._granted(new, began_ms)),
            )
            return

        def renewed(alive: bool | None) -> None:
            if alive:
                self._count_on(began_ms)
            elif alive is False:
                self._trace.add(name, "its lease has ended")
                self._lease = None
            self._later(_RENEW_MS if alive else _RETRY_MS, self._keep_alive)

        self._store.ask(
            name, lambda: self._store.renew(lease), lambda alive: self._do(lambda: renewed(alive))
        )

    def _granted(self, lease: int | None, began_ms: int) -> None:
        if lease is None:
            self._later(_RETRY_MS, self._keep_alive)
            return
        if self._registered:
            # Everybody who looks must see that it was gone.
            self.started_ms = max(self._schedule.now_ms, self.started_ms + 1)
            self._host.call_node(lambda node: node.new_life(self.started_ms, self._schedule.now_ms))
        name = self._host.name
        entry = NodeEntry(node=name, zone=name, native=name, peers=name, started_ms=self.started_ms)

        def written(done: bool | None) -> None:
            if done:
                self._lease, self._said, self._registered = lease, None, True
                self._count_on(began_ms)
            self._later(_RENEW_MS if done else _RETRY_MS, self._keep_alive)

        self._store.ask(
            name,
            lambda: self._store.put(layout.node_key(name), encode(entry), None, lease),
            lambda done: self._do(lambda: written(done)),
        )

    def _count_on(self, began_ms: int) -> None:
        until_ms = began_ms + LEASE_MS - _MARGIN_MS
        self._host.call_node(lambda node: node.lease_renewed(until_ms, self._schedule.now_ms))

    # -- the layout ------------------------------------------------------------------------------------------

    def _heard(self, change: StoredChange) -> None:
        now_ms = self._schedule.now_ms
        self.office.heard(change)
        if change.key.startswith(layout.NODES):
            name = change.key.removeprefix(layout.NODES)
            if change.value is None:
                self._nodes.pop(name, None)
            else:
                self._nodes[name] = layout.decode_node(change.value)
            self._host.call_node(lambda node: node.apply_nodes(self._nodes))
            self._say_positions()
        elif change.key.startswith(layout.PARTITIONS):
            number = int(change.key.removeprefix(layout.PARTITIONS))
            if change.value is None:
                self._partitions.pop(number, None)
                self._host.call_node(lambda node: node.partition_gone(number, now_ms))
                return
            entry = self._partitions[number] = layout.decode_partition(change.value)
            self._host.call_node(lambda node: node.apply_layout([(entry, change.version)], now_ms))
            self._say_positions()

    def propose(self, proposal: Proposal) -> None:
        """The node wants an entry to be another one."""
        partition = proposal.entry.partition
        key, value = layout.partition_key(partition), encode(proposal.entry)

        def failed(done: bool | None) -> None:
            if done is None:
                self._host.call_node(lambda node: node.proposal_failed(partition, self._schedule.now_ms))

        self._store.ask(
            self._host.name,
            lambda: self._store.put(key, value, proposal.version),
            lambda done: self._do(lambda: failed(done)),
        )

    # -- positions -------------------------------------------------------------------------------------------

    def _look_at_positions(self) -> None:
        self._say_positions()
        self._later(_LOOK_MS, self._look_at_positions)

    def _say_positions(self) -> None:
        if self.ended:  # in the middle of what it heard
            return
        asked = asked_of(self._host.name, self._partitions.values(), self._nodes)
        self._host.call_node(lambda node: self._note(node.positions(asked)))

    def _note(self, positions: dict[int, Position]) -> None:
        name, lease = self._host.name, self._lease
        entry = PositionsEntry(node=name, started_ms=self.started_ms, positions=positions)
        if lease is None or entry == self._said or (self._said is None and not positions):
            return
        self._said = entry

        def written(done: bool | None) -> None:
            if not done and self._said is entry:
                self._said = None

        self._store.ask(
            name,
            lambda: self._store.put(layout.positions_key(name), encode(entry), None, lease),
            lambda done: self._do(lambda: written(done)),
        )
