"""A node as a member of the cluster: the state machines of `cluster/membership`, carried out over the simulated store.

One member is one life of a process. All its input passes through its machine, which may pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.decoder import drained_in, nodes_in, partitions_in
from penstock.cluster.layout.entries import NodeEntry, Position, encode
from penstock.cluster.membership import node_layout, node_lease
from penstock.cluster.membership.node_layout import NodeLayout
from penstock.cluster.membership.node_lease import NodeLease
from penstock.cluster.membership.shutdown import Shutdown
from penstock.cluster.membership.store_requests import Ask, Outcome, Put, Request, Unknown
from penstock.metadata.store.interface import Change
from penstock.model.records import KINDS
from penstock.replication.cluster_interface import Proposal
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.simulation.cluster.alarm import Alarm
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.mirror import SimulatedMirror
from penstock.simulation.cluster.simulated_manager import ManagerObserver, SimulatedManager
from penstock.simulation.schedule import Times
from penstock.simulation.trace import Trace


class Host(Protocol):
    """The machine, for the member on it."""

    name: str
    hidden: dict[str, bytes | None]
    """By key: what this node hears in place of what the store has."""

    def do(self, call: Callable[[], None]) -> None:
        """Does something, when the machine is not paused."""

    def call_node(self, call: Callable[[ReplicatedNode], None]) -> None:
        """Calls the node, and handles the results."""

    def about_to_ask(self) -> None:
        """The process is about to ask the store; the machine may pause before the request leaves."""

    def about_to_write(self) -> None:
        """The same, for a write of the layout."""


class Member:
    """Keeps one node in the store and gives it the layout."""

    def __init__(
        self,
        host: Host,
        store: SimulatedMetadata,
        times: Times,
        trace: Trace,
        started_ms: int,
        observer: ManagerObserver,
    ) -> None:
        self._host = host
        self._store = store
        self._times = times
        self._trace = trace
        self._observer = observer
        self._name = name = host.name
        self.ended = False
        self._has_joined = False
        self.manager: SimulatedManager | None = None
        entry = NodeEntry(node=name, zone=name, native=name, peers=name, started_ms=started_ms, records=KINDS)
        self._lease = NodeLease(entry, times.now_ms)
        self._layout = NodeLayout(name, times.now_ms)
        self._shutdown: Shutdown | None = None
        self._left: Callable[[], None] = lambda: None
        self._lease_alarm = Alarm(times, self._lease.next_ms, lambda: self._do(self._tick_lease))
        self._layout_alarm = Alarm(times, self._layout.next_ms, lambda: self._do(self._tick_layout))
        self.mirror = SimulatedMirror(store, name, times, self._do)
        self.mirror.about_to_ask = host.about_to_write
        self.mirror.ready.append(self._join)
        self.mirror.start()

    def end(self) -> None:
        """The process is gone."""
        self.ended = True
        self.mirror.end()

    def _do(self, call: Callable[[], None]) -> None:
        self._host.do(lambda: None if self.ended else call())

    def _join(self) -> None:
        """The metadata is known: the node gets the layout, and registers."""
        self._has_joined = True
        for prefix in node_layout.FOLLOWED:
            for entry in sorted(self.mirror.cache.list(prefix)):
                self._changed(Change(*entry))
            self.mirror.cache.listen(prefix, self._changed)
        self.mirror.cache.settled_listeners.append(self._settled)
        self._settled(self.mirror.cache.settled)
        self._tick_layout()
        self._tick_lease()

    def _ask(self, request: Request, done: Callable[[Outcome], None]) -> None:
        self._host.about_to_ask()
        self._do(
            lambda: self._store.request(self._name, request, lambda outcome: self._do(lambda: done(outcome)))
        )

    # -- the lease -------------------------------------------------------------------------------------------

    def _tick_lease(self) -> None:
        self._keep(self._lease.tick(self._times.now_ms))

    def _keep(self, effects: Iterable[node_lease.Effect]) -> None:
        for effect in effects:
            if self.ended:  # in the middle of what it does
                return
            match effect:
                case Ask(number, request):
                    self._ask(request, lambda outcome, number=number: self._answered(number, outcome))  # type: ignore[misc]  # a lambda with its own value
                case node_lease.CountOn(until_ms):
                    self._host.call_node(
                        lambda node, until_ms=until_ms: node.replication.lease_renewed(
                            until_ms, self._times.now_ms
                        )  # type: ignore[misc]  # a lambda with its own value
                    )
                case node_lease.NewLife(started_ms):
                    self._host.call_node(
                        lambda node, started_ms=started_ms: node.replication.new_life(
                            started_ms, self._times.now_ms
                        )  # type: ignore[misc]  # a lambda with its own value
                    )
                case node_lease.Registered():
                    self.manager = SimulatedManager(
                        self._name,
                        self.mirror,
                        self._times,
                        self._trace,
                        self._do,
                        self._ask,
                        self._observer,
                    )
                case node_lease.Note(sentence):
                    self._trace.add(self._name, sentence)
        self._lease_alarm.set()

    def _answered(self, number: int, outcome: Outcome) -> None:
        self._keep(self._lease.answered(number, outcome, self._times.now_ms))
        self._look_whether_leaving_is_said(outcome)

    # -- the layout ------------------------------------------------------------------------------------------

    def hear_again(self, key: str) -> None:
        """What is heard of an entry is another thing now, though the store has the same."""
        cache = self.mirror.cache

        def hear() -> None:
            found = cache.get(key)
            self._changed(Change(*found) if found is not None else Change(key, None, cache.settled))

        if self._has_joined:
            self._do(hear)

    def _changed(self, change: Change) -> None:
        now_ms = self._times.now_ms
        value = self._host.hidden.get(change.key, change.value) if change.value is not None else None
        self._follow(self._layout.changed(change.key, value, change.version, now_ms))
        if self._shutdown is not None:
            self._shutdown.changed(now_ms)
            self._shutdown_alarm.set()

    def _settled(self, version: int) -> None:
        self._follow(self._layout.settled(version))

    def _tick_layout(self) -> None:
        self._follow(self._layout.tick(self._times.now_ms))

    def _follow(self, effects: Iterable[node_layout.Effect]) -> None:
        for effect in effects:
            if self.ended:  # in the middle of what it does
                return
            match effect:
                case node_layout.OwnEntryHeard(value, version):
                    self._keep(self._lease.heard(value, version, self._times.now_ms))
                case node_layout.SayPositions(asked):
                    self._say_positions(asked)
                case node_layout.Unreadable(sentence):
                    self._trace.add(self._name, sentence)
                case _:
                    self._host.call_node(lambda node, effect=effect: self._tell(node, effect))  # type: ignore[misc]  # a lambda with its own value
        self._layout_alarm.set()

    def _tell(self, node: ReplicatedNode, effect: node_layout.Effect) -> None:
        now_ms = self._times.now_ms
        match effect:
            case node_layout.ApplyNodes(nodes):
                node.replication.apply_nodes(nodes, now_ms)
            case node_layout.ApplyEntry(entry, version):
                node.replication.apply_layout([(entry, version)], now_ms)
            case node_layout.EntryGone(partition, unreadable):
                node.replication.partition_gone(partition, now_ms, unreadable=unreadable)
            case node_layout.QueueNamed(name, queue_id):
                node.replication.queue_named(name, queue_id, now_ms)
            case node_layout.ProposalFailed(partition):
                node.replication.proposal_failed(partition, now_ms)
            case _:
                pass  # not for the node

    def _say_positions(self, asked: list[int]) -> None:
        found: list[dict[int, Position]] = []
        self._host.call_node(lambda node: found.append(node.replication.positions(asked)))
        for positions in found:
            self._keep(self._lease.say_positions(positions, self._times.now_ms))

    def propose(self, proposal: Proposal) -> None:
        """The node wants an entry to be another one."""
        partition = proposal.entry.partition
        self.mirror.carry_out(
            Put(layout.partition_key(partition), encode(proposal.entry), proposal.version),
            lambda outcome: self._follow(self._layout.proposed(partition, outcome)),
        )

    # -- leaving ---------------------------------------------------------------------------------------------

    @property
    def is_leaving(self) -> bool:
        """Whether the process is about to stop."""
        return self._shutdown is not None

    def leave(self, left: Callable[[], None]) -> None:
        """Hands over what the node leads, gives the lease back, and says so."""
        now_ms = self._times.now_ms
        self._left = left
        self._shutdown = shutdown = Shutdown(self._name, now_ms)
        self._shutdown_alarm = Alarm(self._times, shutdown.next_ms, lambda: self._do(self._tick_shutdown))
        if self.manager is not None:
            self.manager.resign()
        self._keep(self._lease.say_leaving(now_ms))
        if not self._lease.is_registered:
            shutdown.leaving_said(now_ms)
        self._shutdown_alarm.set()

    def _look_whether_leaving_is_said(self, outcome: Outcome) -> None:
        shutdown, now_ms = self._shutdown, self._times.now_ms
        if shutdown is None:
            return
        if self._lease.leaving_is_said:
            shutdown.leaving_said(now_ms)
        elif isinstance(outcome, Unknown):
            shutdown.leaving_said(now_ms, outcome.why)
        self._shutdown_alarm.set()

    def _tick_shutdown(self) -> None:
        shutdown, cache = self._shutdown, self.mirror.cache
        assert shutdown is not None
        partitions = partitions_in(sorted(cache.list(layout.PARTITIONS)))
        living = {node.node: node for node in nodes_in(sorted(cache.list(layout.NODES)))}
        drained = drained_in(sorted(cache.list(layout.DRAINS)))
        for entry, version in shutdown.tick(self._times.now_ms, partitions, living, drained):
            self._hand_over(shutdown, entry.partition, encode(entry), version)
        if shutdown.is_over:
            self._trace.add(self._name, f"leaves: {shutdown.failure or 'everything is handed over'}")
            self._keep(self._lease.leave())
            self._left()
        else:
            self._shutdown_alarm.set()

    def _hand_over(self, shutdown: Shutdown, partition: int, value: bytes, version: int) -> None:
        def written(outcome: Outcome) -> None:
            shutdown.written(partition, outcome, self._times.now_ms)
            self._shutdown_alarm.set()

        self.mirror.carry_out(Put(layout.partition_key(partition), value, version), written)
