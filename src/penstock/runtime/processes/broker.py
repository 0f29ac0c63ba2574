"""A broker: a node over a real directory, its driver, its server and its SQS server, in a fixed order.

Opening:
  1. its socket is bound, not yet listening: a port in use is found before anything is read. Other machines may reach it only
     if there are users
  2. the directory is locked, the journal is replayed
  3. the driver starts its threads, and the clock its own if a daemon provides the time
  4. users and other metadata are read
  5. the usage record begins; the SQS server opens (see there), and the monitoring server, linked to the node without a
     socket
  6. the server listens, with the native guard behind it: the first request finds everything ready

Closing:
  1. the monitoring and SQS servers close: their requests are finished while the node is still there
  2. the listening socket is closed, requests are no longer read; the usage record is sent to its log
  3. handled requests are flushed and answered; running jobs end
  4. the node is closed: its journal is marked as cleanly closed
  5. answers are sent to clients that read them, then connections are closed
  6. the directory and the metadata are released

A `StartError` says in one sentence what prevents the opening, and what to do.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Callable

from penstock import __version__
from penstock.backend.admin.catalogue import Catalogue
from penstock.backend.node.node import Environment, Node
from penstock.config.address import Address
from penstock.config.engine import EngineOptions
from penstock.config.serve import ServeConfig
from penstock.frontend.native.native_guard import NativeGuard
from penstock.model.batch import Buffer
from penstock.ordering.timestamp_id import draw_process
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.clocks.node_clock import NodeClock, open_clock
from penstock.runtime.cluster.tls import ClusterTls
from penstock.runtime.disk.disk import RealDisk
from penstock.runtime.engine.driver import Driver
from penstock.runtime.engine.local_link import LocalLink
from penstock.runtime.http.sqs_server import GRACE_SECONDS, SqsServer, bind_sqs_server, open_sqs_server
from penstock.runtime.monitoring.monitoring import Monitoring, open_monitoring
from penstock.runtime.monitoring.node import NodeSight
from penstock.runtime.monitoring.process_usage import process_usage
from penstock.runtime.native.entrance import CatalogueNames, make_native_guard
from penstock.runtime.native.server import Server
from penstock.runtime.native.tls import NativeTls, native_certificate, native_url
from penstock.runtime.processes.driven_node import AnyNode, DrivenNode
from penstock.runtime.processes.listening import StartError, bind, check_users
from penstock.runtime.processes.shared_services import SharedServices, open_shared_services
from penstock.storage.disk import DirectoryBusyError, DiskFailedError, DiskFullError
from penstock.storage.errors import StorageError
from penstock.storage.identity import Identity
from penstock.storage.options import StorageOptions
from penstock.storage.store import Store

LAST_ANSWERS_SECONDS = 5.0
"""How long clients get to read their last answers when the server stops."""
THREADS_SECONDS = 10.0


class Broker(DrivenNode[Node, Driver]):
    """Everything that runs, in one object; made by `open_broker`."""

    cluster_tls: ClusterTls | None = None
    """It is in no cluster."""

    def __init__(
        self,
        disk: RealDisk,
        node: Node,
        node_clock: NodeClock,
        driver: Driver,
        server: Server,
        address: Address,
        native_tls: NativeTls | None = None,
    ) -> None:
        super().__init__(node, driver)
        self._disk = disk
        self.native_tls = native_tls
        """The TLS for native clients, if they use TLS."""
        self.link = LocalLink(driver, asyncio.get_running_loop())
        """The way of everything in this process to the node."""
        self._node_clock = node_clock
        self._server = server
        self.shared: SharedServices | None = None
        """Users, and the record of usage."""
        self.sqs_server: SqsServer | None = None
        """The SQS server, unless it is disabled."""
        self.monitoring: Monitoring | None = None
        """The monitoring server, unless it is disabled."""
        self.address = address
        self.directory = str(disk.directory)

    @property
    def url(self) -> str:
        """The URL for `penstock.connect`."""
        return native_url(self.address, self.native_tls)

    async def close(self) -> None:
        """Stops in the order above; a failed broker only releases its resources."""
        if self.monitoring is not None:
            await self.monitoring.close()
        if self.sqs_server is not None:
            await self.sqs_server.close(0.0 if self._driver.failure else GRACE_SECONDS)
        self._server.stop_accepting()
        if self.shared is not None and self._driver.failure is None:
            await self.shared.hand_on()
        self.link.close("the server is stopping")
        await self._driver.close()
        await self._server.close(0.0 if self._driver.failure else LAST_ANSWERS_SECONDS)
        self._driver.join(THREADS_SECONDS)
        self._node_clock.close()
        self._disk.close()
        if self.shared is not None:
            await self.shared.close()


async def open_broker(config: ServeConfig) -> Broker:
    """A broker that listens; raises `StartError`."""
    if not config.listen.is_loopback:
        await _check_users(config)
    tls = native_certificate(config)
    listener = bind(config.listen, "--listen")
    catalogues: list[Catalogue] = []

    def make(store: Store, environment: Environment, now_ms: int) -> Node:
        node = Node(store, environment, now_ms, config.max_unflushed_bytes)
        catalogues.append(node.catalogue)
        return node

    try:
        disk, node, clock, node_clock = open_engine(config, make)
    except BaseException:
        listener.close()
        raise
    server = Server(
        max_connections=config.max_connections,
        write_buffer_bytes=config.write_buffer_bytes,
        hello_timeout_ms=config.hello_timeout_ms,
        tls=tls,
        trusted_proxies=config.native_trusted_proxies,
    )
    loop = asyncio.get_running_loop()
    guards: list[NativeGuard] = []

    def congestion_changed(congested: bool) -> None:
        server.congestion_changed(congested)
        if broker.sqs_server is not None:
            broker.sqs_server.congestion_changed(congested)

    def failed() -> None:
        server.drop_all()
        if broker.sqs_server is not None:
            broker.sqs_server.drop_all()
        broker.link.close("the server has failed")

    def write(connection: int, buffers: list[Buffer]) -> None:
        guards[0].write(connection, buffers)

    driver = Driver(node, clock, loop, write=write, congestion_changed=congestion_changed, failed=failed)
    address = Address(config.listen.host, listener.getsockname()[1])
    broker = Broker(disk, node, node_clock, driver, server, address, tls)
    node_clock.start()
    try:
        shared = broker.shared = await open_shared_services(config)
        link = broker.link
        if config.sqs_listen is not None:
            bound = bind_sqs_server(config, shared.users.has_users())
            shared.begin_usage(str(bound[1]), link)
            broker.sqs_server = await open_sqs_server(config, link, clock, shared, bound)
        else:
            shared.begin_usage(str(address), link)
        broker.monitoring = await open_monitoring(config, NodeSight(link, clock, shared.usage_totals))
        names = CatalogueNames(catalogues[0])
        guard = make_native_guard(
            server, shared, names, config.listen, config.sqs_failed_signatures, clock.now_ms
        )
        guard.inside = driver
        guards.append(guard)
        await server.start(guard, listener)
    except BaseException:
        listener.close()
        await broker.close()
        raise
    return broker


async def _check_users(config: ServeConfig) -> None:
    shared = await open_shared_services(config)
    try:
        check_users(config.listen, shared.users.has_users())
    finally:
        await shared.close()


def open_engine(
    config: EngineOptions, make: Callable[[Store, Environment, int], AnyNode]
) -> tuple[RealDisk, AnyNode, WallClock, NodeClock]:
    """The node over its directory, recovered, with its clocks; raises `StartError`."""
    directory = config.data_directory
    disk: RealDisk | None = None
    try:
        disk = RealDisk(directory)
        clock = WallClock()
        options = StorageOptions(
            durability=config.durability,
            journal_file_bytes=config.journal_file_bytes,
            checkpoint_journal_bytes=config.checkpoint_bytes,
            segment_bytes=config.segment_bytes,
            cache_bytes=config.cache_bytes,
        )
        identity = Identity(f"node-{secrets.token_hex(4)}", secrets.token_bytes(32))
        store = Store.open(disk, options, identity)
        node_clock = open_clock(config.clock_source, config.clock_drift_ppm)
        environment = Environment(
            __version__,
            str(disk.directory),
            process_usage,
            node_clock.interval,
            node_clock.source,
            node_clock.drift_ppm,
            draw_process(random.SystemRandom()),
        )
        node = make(store, environment, clock.now_ms())
        node_clock.begin_after(node.last_stamp_us)
        clock.begin_after(node.opening_report.newest_ms)
        return disk, node, clock, node_clock
    except BaseException as error:
        if disk is not None:
            disk.close()
        sentence = _open_sentence(directory, error)
        if sentence is None:
            raise
        raise StartError(sentence) from error


def _open_sentence(directory: str, error: BaseException) -> str | None:
    match error:
        case DirectoryBusyError():
            return f"{error}: stop that server, or choose another directory with --data"
        case DiskFullError():
            return f"there is no space to start on {directory}: {error}; free some and start again"
        case DiskFailedError():
            return (
                f"cannot use the data directory {directory}: {error}; check that it is a directory this user may "
                "write to, or choose another with --data"
            )
        case StorageError() | FileNotFoundError():
            return f"cannot start on {directory}: {error}"
        case ValueError():
            return f"the storage settings cannot work: {error}"
        case _:
            return None
