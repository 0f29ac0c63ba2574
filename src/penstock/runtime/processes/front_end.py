"""A front end of a cluster: SQS and the native protocol in one process, with the router behind both.

Opening: the metadata is read, the nodes are connected, the SQS server and the gateway listen. Closing is in the opposite
order: requests that were read are finished while the nodes can still be asked.
"""

from __future__ import annotations

import asyncio
import os
import secrets

from penstock.config.address import Address
from penstock.config.frontend import FrontendConfig
from penstock.config.serve import ServeConfig
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.seals.seals import QUEUE_KINDS, front_end_sealers
from penstock.metadata.store.interface import MetadataStore
from penstock.metadata.store.sealed import sealed
from penstock.routing.context import ReadOffer
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.runtime.cluster.link.gateway import NativeGateway, bind_gateway, open_gateway
from penstock.runtime.cluster.reachability import check_reachability
from penstock.runtime.cluster.store import (
    cluster_certificate,
    cluster_secret,
    open_cluster_store,
    telling_of_a_wait,
)
from penstock.runtime.cluster.store_guard import warn_of_unguarded_store
from penstock.runtime.cluster.tls import ClusterTls
from penstock.runtime.engine.tcp_link import TcpLink
from penstock.runtime.http.sqs_server import SqsServer, bind_sqs_server, open_sqs_server
from penstock.runtime.monitoring.front_end import FrontEndSight
from penstock.runtime.monitoring.monitoring import Monitoring, open_monitoring
from penstock.runtime.native.tls import NativeTls, native_certificate, native_url
from penstock.runtime.processes.listening import SettingError
from penstock.runtime.processes.shared_services import SharedServices, shared_services
from penstock.runtime.processes.user_keys import open_user_keys
from penstock.wire.read_ticket import TicketSeal

FIRST_CONTACT_SECONDS = 2.0
"""How long the start waits for a node; without any, requests are answered with 503 until one is found."""
PRODUCER_BITS = 62


class ClusterFrontEnd:
    """Everything of `penstock frontend --cluster`; made by `open_cluster_front_end`."""

    failure: BaseException | None = None
    """It cannot fail permanently: it waits for missing processes."""
    partner_threads: tuple[int, ...] = ()
    """Next to all it does is done by the event loop's thread."""
    native_tls: NativeTls | None = None
    """The TLS for native clients, if they use TLS."""
    cluster_tls: ClusterTls | None = None
    """The TLS for other processes of its cluster."""

    def __init__(
        self,
        link: ClusterLink,
        mirror: MetadataMirror,
        store: MetadataStore,
        shared: SharedServices,
        sqs_server: SqsServer | None,
        gateway: NativeGateway | None,
        monitoring: Monitoring | None,
    ) -> None:
        self.monitoring = monitoring
        self.link = link
        self.sqs_server = sqs_server
        self._mirror = mirror
        self._store = store
        self._shared = shared
        self._gateway = gateway
        self._closed = asyncio.Event()

    @property
    def native_address(self) -> Address | None:
        """The address of the native protocol, if it is enabled."""
        return self._gateway.address if self._gateway is not None else None

    @property
    def native_url(self) -> str | None:
        """The URL for `penstock.connect`, if the native protocol is enabled."""
        return native_url(self._gateway.address, self.native_tls) if self._gateway is not None else None

    @property
    def connected(self) -> bool:
        """Whether any node can be asked right now."""
        return self.link.connected

    @property
    def nodes(self) -> int:
        """How many nodes live, as far as is known."""
        return len(self.link.map.nodes)

    async def ended(self) -> None:
        """Returns when it was closed."""
        await self._closed.wait()

    async def close(self) -> None:
        """Finishes requests in progress, then disconnects from the nodes and the metadata."""
        if self.monitoring is not None:
            await self.monitoring.close()
        if self._gateway is not None:
            await self._gateway.close()
        if self.sqs_server is not None:
            await self.sqs_server.close()
        await self._shared.close()
        await self.link.close()
        await self._mirror.close()
        await self._store.close()
        self._closed.set()


async def open_cluster_front_end(
    config: FrontendConfig,
    store: MetadataStore | None = None,
    *,
    native_connections: int = ServeConfig.max_connections,
) -> ClusterFrontEnd:
    """A front end that listens; raises `StartError`. A `store` that is given is closed with it."""
    if config.cluster_metadata is None:
        raise SettingError(
            "a front end needs the cluster's metadata: name it with --cluster etcd://HOST:PORT"
        )
    if config.cluster_secret_file is None:
        raise SettingError("a front end needs the cluster's secret: name its file with --secret-file FILE")
    secret, tls = cluster_secret(config.cluster_secret_file), cluster_certificate(config)
    clients_tls = native_certificate(config)
    if store is None:
        store = await open_cluster_store(config.cluster_metadata, secret, tls, seals=config.cluster_seals)
        await warn_of_unguarded_store(config.cluster_metadata, tls)
    loop, clock = asyncio.get_running_loop(), WallClock()
    try:
        with telling_of_a_wait(config.cluster_metadata):
            keys = await open_user_keys(config, store)
    except BaseException:
        await store.close()
        raise
    store = sealed(
        store, front_end_sealers(keys.master), QUEUE_KINDS if config.cluster_seals == "optional" else ()
    )
    mirror = MetadataMirror(store)
    mirror.start()
    link: ClusterLink | None = None
    gateway: NativeGateway | None = None
    monitoring: Monitoring | None = None
    shared: SharedServices | None = None
    name = config.cluster_name or f"frontend-{os.getpid()}"
    try:
        with telling_of_a_wait(config.cluster_metadata):
            shared = await shared_services(config, mirror, keys)
        link = ClusterLink(
            mirror,
            loop,
            make_link=lambda address: TcpLink(address, loop, name=name, secret=secret, tls=tls),
            producer=1 + secrets.randbits(PRODUCER_BITS),
            now_ms=clock.now_ms,
            replicas=config.frontend_replicas,
            offer=ReadOffer(
                TicketSeal(secret),
                lambda: tls.authority if tls is not None else "",
                lambda host: tls.name_for_readers(host) if tls is not None else "",
            ),
        )
        await check_reachability(link.map.nodes.values(), secret, tls)
        try:
            async with asyncio.timeout(FIRST_CONTACT_SECONDS):
                await link.found()
        except TimeoutError:
            pass  # the links have logged this, and continue to try
        has_users = shared.users.has_users()
        native = bind_gateway(config.native_listen, has_users) if config.native_listen is not None else None
        sqs = bind_sqs_server(config, has_users) if config.sqs_listen is not None else None
        shared.begin_usage(str(sqs[1] if sqs is not None else native[1] if native else name), link)
        sight = FrontEndSight(name, clock.now_ms(), link, shared.usage_totals)
        monitoring = await open_monitoring(config, sight)
        if native is not None:
            limit = config.sqs_failed_signatures
            proxies = config.native_trusted_proxies
            gateway = await open_gateway(
                native, link, shared, limit, name, clock.now_ms, clients_tls, proxies, native_connections
            )
        sqs_server = await open_sqs_server(config, link, clock, shared, sqs) if sqs is not None else None
    except BaseException:
        if monitoring is not None:
            await monitoring.close()
        if gateway is not None:
            await gateway.close()
        if shared is not None:
            await shared.close()
        if link is not None:
            await link.close()
        await mirror.close()
        await store.close()
        raise
    service = ClusterFrontEnd(link, mirror, store, shared, sqs_server, gateway, monitoring)
    service.cluster_tls, service.native_tls = tls, clients_tls
    return service
