"""A machine of a simulated cluster: a single machine with, in addition, a node that replicates, streams to others, and pauses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from penstock.backend.node.environment import Environment
from penstock.backend.node.node import Node
from penstock.cluster.layout.entries import NODES, PARTITIONS, decode_node, decode_partition
from penstock.cluster.membership.lives import new_life_ms
from penstock.model.errors import PenstockError
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.simulation.clocks import NodeClock
from penstock.simulation.cluster.local_time import LocalTime
from penstock.simulation.cluster.member import Member
from penstock.simulation.cluster.membership_observer import MembershipObserver
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.observer import Observer
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.driver import SimulatedDriver
from penstock.simulation.machine import Machine
from penstock.simulation.network import Link
from penstock.simulation.observed_store import ObservedStore
from penstock.simulation.trace import Trace
from penstock.storage.options import StorageOptions
from penstock.wire.frames import FrameReader

SECRET = b"cluster secret of 32 bytes......"


class ClusterDriver(SimulatedDriver):
    """Also writes to other nodes, and passes on the node's requests to the layout."""

    machine: ClusterMachine

    def ship(self) -> None:
        """See `Hands`."""
        assert isinstance(self.node, ReplicatedNode)
        self.machine.ship(self.node)

    def _turned(self, node: Node) -> None:
        assert isinstance(node, ReplicatedNode)
        self.machine.node_turned(node)


class ClusterMachine(Machine):
    """One computer of several."""

    def __init__(
        self,
        name: str,
        metadata: SimulatedMetadata,
        time: LocalTime,
        random: Random,
        trace: Trace,
        disk: SimulatedDisk,
        options: StorageOptions,
        clock: NodeClock,
        observer: Observer,
        members: MembershipObserver,
    ) -> None:
        super().__init__(time, random, trace, disk, options, clock)
        self.name = name
        self.time = time
        self._metadata = metadata
        self.pauses_before_asking_ms: list[int] = []
        """How long the machine pauses when the process is about to ask the store next for a lease or an office."""
        self.pauses_before_writing_ms: list[int] = []
        """The same before it writes the layout, as the manager or for a partition."""
        self.hidden: dict[str, bytes | None] = {}
        """By key of the layout: what the node hears in place of what the store has, also when it starts (`hide`)."""
        self.node_started: list[Callable[[str, ReplicatedNode], None]] = [members.started]
        """Called for every life of the node, before it does anything."""
        self.turned: list[Callable[[ReplicatedNode], None]] = []
        """Called after each turn of the node."""
        self._members = members
        self.member: Member | None = None
        self._observer = observer
        self.on_append = partial(observer.appended, name)
        self._streams: dict[str, tuple[FrameReader, Callable[[bytes], None], Link]] = {}
        self._peer_links: dict[str, Link] = {}
        """By machine: the connection, also while the process has not noticed it yet."""

    @property
    def replicated(self) -> ReplicatedNode | None:
        """The node, while it serves."""
        node = self.node
        assert node is None or isinstance(node, ReplicatedNode)
        return node

    def boot(self) -> bool:
        """Starts the process, which then looks for its place in the cluster."""
        if not self._metadata.reaches(self.name):
            self._trace.add(self.name, "did not start: cannot read the cluster's layout")
            return False
        if not super().boot():
            return False
        node = self.replicated
        assert node is not None
        self._observer.started(self.name, node)
        for started in self.node_started:
            started(self.name, node)
        self.member = Member(
            self, self._metadata, self._schedule, self._trace, node.replication.started_ms, self._members
        )
        return True

    def _stands_still(self) -> None:
        self._members.stood_still(self.name, self._schedule.now_ms, self._metadata.version)
        self._observer.stood_still(self.name, self._schedule.now_ms)

    def _make_node(self, store: ObservedStore, environment: Environment) -> Node:
        now_ms = self._schedule.now_ms
        entries = sorted(self._metadata.entries.items())
        nodes = [decode_node(stored.value) for key, stored in entries if key.startswith(NODES)]
        partitions = [decode_partition(stored.value) for key, stored in entries if key.startswith(PARTITIONS)]
        return ReplicatedNode(
            store,
            environment,
            now_ms,
            name=self.name,
            secret=SECRET,
            started_ms=new_life_ms(self.name, now_ms, nodes, partitions),
            max_unflushed_bytes=self.max_unflushed_bytes,
        )

    def _make_driver(self, node: Node, store: ObservedStore) -> SimulatedDriver:
        driver = ClusterDriver(self, node, store, self._schedule, self._random, self._trace)
        driver.machine = self
        return driver

    def _end(self, *, power: bool) -> None:
        if self.member is not None:
            self.member.end()
            self.member = None
        self._streams = {}
        links, self._peer_links = self._peer_links, {}
        for link in links.values():
            link.break_off()
        super()._end(power=power)

    @property
    def is_leaving(self) -> bool:
        """Whether the process is about to stop."""
        return self.member is not None and self.member.is_leaving

    def stop(self) -> None:
        """A clean stop: the node hands over what it leads first."""
        member = self.member
        if member is None or self._in_turn:
            super().stop()
        elif not member.is_leaving:
            self._trace.add(self.name, "is told to stop")
            member.leave(super().stop)

    # -- pauses ----------------------------------------------------------------------------------------------

    def about_to_ask(self) -> None:
        """The process is about to ask the store; the machine may pause before the request leaves."""
        self._stand_still(self.pauses_before_asking_ms)

    def about_to_write(self) -> None:
        """The same, for a write of the layout."""
        self._stand_still(self.pauses_before_writing_ms)

    def _stand_still(self, pauses_ms: list[int]) -> None:
        if pauses_ms and not self._paused:
            self._schedule.after(pauses_ms.pop(), self.resume)
            self.pause()

    # -- the cluster -----------------------------------------------------------------------------------------

    def hide(self, key: str, value: bytes | None) -> None:
        """From now on the node hears this of an entry."""
        self.hidden[key] = value
        self._hear_again(key)

    def show(self, key: str) -> None:
        """It hears of the entry as it is."""
        del self.hidden[key]
        self._hear_again(key)

    def _hear_again(self, key: str) -> None:
        if self.member is not None:
            self.member.hear_again(key)

    def call_node(self, call: Callable[[ReplicatedNode], None]) -> None:
        """Calls the node, and handles the results."""

        def run(node: Node) -> None:
            assert isinstance(node, ReplicatedNode)
            call(node)

        if self._driver is not None:
            self._driver.call(run)
        if self._driver is not None:
            self._driver.wake()

    def ship(self, node: ReplicatedNode) -> None:
        """Sends the node's messages for others."""
        self.at("peers")
        for name, buffers in node.replication.take_peer_output():
            stream = self._streams.get(name)
            if stream is not None:
                stream[1](b"".join(buffers))
        for proposal in node.replication.take_proposals(self._schedule.now_ms):
            self.at("proposal")
            if self.member is not None:
                self.member.propose(proposal)

    def node_turned(self, node: ReplicatedNode) -> None:
        """Calls the observers of a turn."""
        self._observer.turned(self.name, self.starts, node)
        for call in self.turned:
            call(node)

    def peer_opened(self, name: str, write: Callable[[bytes], None], link: Link) -> None:
        """There is a stream to another machine."""

        def open_it() -> None:
            if self.is_up:
                self._streams[name] = (FrameReader(), write, link)
                self.call_node(lambda node: node.replication.peer_connected(name, self._schedule.now_ms))

        self._peer_links[name] = link
        self.do(open_it)

    def peer_arrived(self, name: str, data: bytes, link: Link) -> None:
        """Another machine says something."""

        def take() -> None:
            stream = self._streams.get(name)
            if stream is not None and stream[2] is link:
                self.call_node(lambda node: self._take_frames(node, name, stream[0], data, link))

        self.do(take)

    def _take_frames(
        self, node: ReplicatedNode, name: str, reader: FrameReader, data: bytes, link: Link
    ) -> None:
        try:
            for frame in reader.feed(data):
                node.replication.peer_frame(name, frame, self._schedule.now_ms)
                if self._driver is not None:
                    self._driver.came(1)
        except PenstockError as error:
            self._trace.add(self.name, f"cuts the stream to {name}: {error.message}")
            link.break_off()

    def peer_lost(self, name: str, link: Link) -> None:
        """The stream is gone."""

        def lose() -> None:
            stream = self._streams.get(name)
            if stream is not None and stream[2] is link:
                del self._streams[name]
                self.call_node(lambda node: node.replication.peer_disconnected(name, self._schedule.now_ms))

        self.do(lose)
