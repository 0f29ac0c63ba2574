"""A node of a cluster as a service: its engine, its streams to other nodes, its registration, its manager.

Opening:
  1. addresses, name and secret are checked, all sockets are bound
  2. the directory is locked, the journal is replayed; nothing of it is served yet
  3. the metadata is read, streams to other nodes are accepted, the node registers under its lease
  4. the native protocol listens, and the port for readers with tickets if there is one: clients get `not-primary` until the
     layout says otherwise
  5. the node stands for the office of the cluster's manager

Closing is in the opposite order. First the node hands over what it leads, so that no election is needed, and leaves the
layout, so that others do not wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from functools import partial

from penstock.cluster.layout.decoder import nodes_in, partitions_in
from penstock.cluster.layout.entries import (
    NODES,
    PARTITIONS,
    NodeEntry,
    PartitionEntry,
)
from penstock.cluster.membership.lives import new_life_ms
from penstock.config.address import Address
from penstock.config.node import NodeConfig
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.interface import MetadataStore, StoreUnavailableError
from penstock.model.batch import Buffer
from penstock.model.records import KINDS
from penstock.replication.cluster_interface import ClusterModel
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.runtime.clocks.node_clock import NodeClock
from penstock.runtime.cluster.lifecycle_sender import LifecycleSender
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.runtime.cluster.manager import Manager
from penstock.runtime.cluster.peers.cluster_driver import ClusterDriver
from penstock.runtime.cluster.peers.layout_follower import LayoutFollower
from penstock.runtime.cluster.peers.peer_links import PeerLinks
from penstock.runtime.cluster.peers.registration import Registration
from penstock.runtime.cluster.peers.shutdown import shut_down
from penstock.runtime.cluster.reachability import check_reachability
from penstock.runtime.cluster.reader_record import ReaderRecord
from penstock.runtime.cluster.reader_server import ReaderServer
from penstock.runtime.cluster.store import cluster_certificate, cluster_secret, open_cluster_store
from penstock.runtime.cluster.store_guard import warn_of_unguarded_store
from penstock.runtime.cluster.tls import ClusterTls
from penstock.runtime.disk.disk import RealDisk
from penstock.runtime.engine.local_link import LocalLink
from penstock.runtime.engine.tcp_link import TcpLink
from penstock.runtime.http.sqs_server import SqsServer
from penstock.runtime.monitoring.monitoring import Monitoring, open_monitoring
from penstock.runtime.monitoring.node import NodeSight
from penstock.runtime.native.server import Server
from penstock.runtime.native.tls import NativeTls
from penstock.runtime.processes.broker import LAST_ANSWERS_SECONDS, THREADS_SECONDS, open_engine
from penstock.runtime.processes.driven_node import DrivenNode
from penstock.runtime.processes.listening import SettingError, StartError, bind
from penstock.wire.read_ticket import TicketSeal

logger = logging.getLogger(__name__)

PRODUCER_BITS = 62


class ClusterNode(DrivenNode[ReplicatedNode, ClusterDriver]):
    """Everything of `penstock node run`; made by `open_cluster_node`."""

    sqs_server: SqsServer | None = None
    """It has no SQS server; front ends do."""
    native_tls: NativeTls | None = None
    """It has no native clients; front ends do."""
    cluster_tls: ClusterTls | None = None
    """The TLS for other processes of its cluster."""
    link: LocalLink | None = None
    """The way of its monitoring to the node."""
    readers: ReaderServer | None = None
    """The port on which clients with tickets read logs."""
    reader_address: Address | None = None
    """Its address."""
    reader_record: ReaderRecord | None = None
    """The usage rows of these readers."""

    def __init__(
        self,
        name: str,
        node: ReplicatedNode,
        disk: RealDisk,
        node_clock: NodeClock,
        driver: ClusterDriver,
        server: Server,
        links: PeerLinks,
        store: MetadataStore,
        address: Address,
        peers_address: Address,
    ) -> None:
        super().__init__(node, driver)
        self.name = name
        self.address = address
        self.peers_address = peers_address
        self.directory = str(disk.directory)
        self.monitoring: Monitoring | None = None
        self.registration: Registration | None = None
        self.lifecycle: LifecycleSender | None = None
        """Sends lifecycle rows to their log."""
        self.links = links
        self.mirror = MetadataMirror(store)
        self._disk = disk
        self._node_clock = node_clock
        self._server = server
        self._store = store
        self._follower: LayoutFollower | None = None
        self._manager: Manager | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self, registration: Registration, now_ms: WallNow) -> None:
        """Takes the node's place in the layout."""
        self.registration = registration
        self.mirror.start()
        await self.mirror.ready.wait()
        self._follower = LayoutFollower(
            self.name, self.mirror, self._driver, self.links, registration, now_ms
        )
        self._follower.start()
        self._tasks.append(asyncio.create_task(registration.run(), name="registration"))
        await registration.registered.wait()
        self._manager = Manager(self._store, self.name, now_ms, mirror=self.mirror)
        self._tasks.append(asyncio.create_task(self._manager.run(), name="manager"))

    async def close(self) -> None:
        """Hands over what it leads, leaves the layout, finishes what has begun, and stops."""
        if self._manager is not None:
            self._manager.stop()
        if self.readers is not None:
            self.readers.close()
        if self.reader_record is not None:
            await self.reader_record.close()
        if self.registration is not None and self._driver.failure is None:
            await shut_down(self.name, self.mirror, self.registration)
        if self.monitoring is not None:
            await self.monitoring.close()
        if self.lifecycle is not None:
            await self.lifecycle.close()
        for task in self._tasks:
            if task.get_name() != "manager":
                task.cancel()
        if self.registration is not None:
            await self.registration.leave()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._server.stop_accepting()
        await self._driver.close()
        if self._follower is not None:
            await self._follower.close()
        await self.links.close()
        await self._server.close(0.0 if self._driver.failure else LAST_ANSWERS_SECONDS)
        self._driver.join(THREADS_SECONDS)
        await self.mirror.close()
        await self._store.close()
        self._node_clock.close()
        self._disk.close()


WallNow = Callable[[], int]


async def open_cluster_node(config: NodeConfig, store: MetadataStore | None = None) -> ClusterNode:
    """A node that is in the layout and listens; raises `StartError`. A `store` that is given is closed with it."""
    if config.cluster_name is None:
        raise SettingError("a node needs a name that it keeps: give it with --name NAME")
    if config.cluster_secret_file is None:
        raise SettingError("a node needs the cluster's secret: name its file with --secret-file FILE")
    for listen, said, flag in (
        (config.listen, config.cluster_advertise, "--advertise"),
        (config.cluster_peers_listen, config.cluster_peers_advertise, "--peers-advertise"),
        (config.reader_listen, config.reader_advertise, "--reader-advertise"),
    ):
        if listen is not None and said is None and listen.host in ("0.0.0.0", "::"):
            raise SettingError(
                f"other processes cannot reach {listen}: set {flag} HOST:PORT to the address of this node"
            )
    name, secret = config.cluster_name, cluster_secret(config.cluster_secret_file)
    tls = cluster_certificate(config)
    if store is None:
        if config.cluster_metadata is None:
            raise SettingError("a node needs the cluster's metadata: name it with --cluster etcd://HOST:PORT")
        store = await open_cluster_store(config.cluster_metadata, secret, tls, seals=config.cluster_seals)
        await warn_of_unguarded_store(config.cluster_metadata, tls)
    wanted = [(config.listen, "--listen"), (config.cluster_peers_listen, "--peers-listen")]
    if config.reader_listen is not None:
        wanted.append((config.reader_listen, "--reader-listen"))
    listener, peers_listener, *reader_listener = listeners = _bind_all(wanted)
    try:
        known = await _known_entries(store)
        await check_reachability([entry for entry in known[0] if entry.node != name], secret, tls)
        disk, node, clock, node_clock = open_engine(
            config,
            lambda store, environment, now_ms: ReplicatedNode(
                store,
                environment,
                now_ms,
                name=name,
                secret=secret,
                started_ms=new_life_ms(name, now_ms, *known),
                max_unflushed_bytes=config.max_unflushed_bytes,
            ),
        )
    except BaseException:
        for one in listeners:
            one.close()
        await store.close()
        raise
    loop = asyncio.get_running_loop()
    address = Address(config.listen.host, listener.getsockname()[1])
    peers_address = Address(config.cluster_peers_listen.host, peers_listener.getsockname()[1])
    place = str(config.cluster_advertise or address)
    peers_place = str(config.cluster_peers_advertise or peers_address)
    server = Server(
        max_connections=config.max_connections,
        write_buffer_bytes=config.write_buffer_bytes,
        hello_timeout_ms=config.hello_timeout_ms,
        secret=secret,
        place=place,
        tls=tls,
    )

    def write(connection: int, buffers: list[Buffer]) -> None:
        if connection > 0:
            server.write(connection, buffers)
        elif service.readers is not None:
            service.readers.write(connection, buffers)

    def failed() -> None:
        server.drop_all()
        if service.readers is not None:
            service.readers.close()
        if service.link is not None:
            service.link.close("the node has failed")

    replication: ClusterModel = node.replication
    driver = ClusterDriver(
        node,
        replication,
        clock,
        loop,
        write=write,
        congestion_changed=server.congestion_changed,
        failed=failed,
    )
    links = PeerLinks(name, secret, driver, peers_place, tls)
    driver.write_peer = links.write
    service = ClusterNode(name, node, disk, node_clock, driver, server, links, store, address, peers_address)
    service.cluster_tls = tls
    if config.reader_listen is not None:
        service.reader_address = Address(config.reader_listen.host, reader_listener[0].getsockname()[1])
        service.reader_record = ReaderRecord(f"{disk.directory}/usage", name)
        service.readers = ReaderServer(
            driver,
            TicketSeal(secret),
            clock.now_ms,
            hello_timeout_ms=config.hello_timeout_ms,
            write_buffer_bytes=config.write_buffer_bytes,
            record=service.reader_record,
        )

    def make_link() -> ClusterLink:
        return ClusterLink(
            service.mirror,
            loop,
            make_link=lambda address: TcpLink(address, loop, name=name, secret=secret, tls=tls),
            producer=1 + secrets.randbits(PRODUCER_BITS),
            now_ms=clock.now_ms,
        )

    service.lifecycle = LifecycleSender(
        make_link,
        lambda report, stored: driver.tell(partial(replication.lifecycle_reported, report, stored=stored)),
    )
    driver.report = service.lifecycle.send
    node_clock.start()
    try:
        await links.listen(peers_listener)
        await server.start(driver, listener)
        if service.readers is not None:
            await service.readers.listen(reader_listener[0], tls.readers if tls is not None else None)
        entry = NodeEntry(
            node=name,
            zone=config.cluster_zone,
            native=place,
            peers=peers_place,
            reader=str(config.reader_advertise or service.reader_address or ""),
            started_ms=replication.started_ms,
            records=KINDS,
        )
        registration = Registration(
            store,
            entry,
            clock.now_ms,
            lambda until_ms: driver.tell(partial(replication.lease_renewed, until_ms)),
            lambda started_ms: driver.tell(partial(replication.new_life, started_ms)),
        )
        await service.join(registration, clock.now_ms)
        if service.reader_record is not None:
            service.reader_record.start(make_link())
        readers = service.readers
        service.link = LocalLink(driver, loop)
        sight = NodeSight(
            service.link,
            clock,
            usage=service.reader_record.totals if service.reader_record is not None else None,
            readers=(lambda: readers.totals) if readers is not None else None,
        )
        service.monitoring = await open_monitoring(config, sight)
    except BaseException:
        await service.close()
        raise
    return service


def _bind_all(wanted: Sequence[tuple[Address, str]]) -> list[socket.socket]:
    """All sockets or none; raises `StartError`."""
    bound: list[socket.socket] = []
    try:
        for address, flag in wanted:
            bound.append(bind(address, flag))
    except BaseException:
        for one in bound:
            one.close()
        raise
    return bound


async def _known_entries(store: MetadataStore) -> tuple[list[NodeEntry], list[PartitionEntry]]:
    """The present nodes and partitions of the layout; raises `StartError`."""
    try:
        nodes, partitions = await store.list(NODES), await store.list(PARTITIONS)
    except StoreUnavailableError as error:
        raise StartError(f"cannot read the cluster's layout: {error}") from None
    return list(nodes_in(nodes.entries)), [entry for entry, _ in partitions_in(partitions.entries)]
