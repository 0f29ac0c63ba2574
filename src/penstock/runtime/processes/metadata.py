"""`penstock metadata` as a service: its connection to etcd, its server, its name."""

from __future__ import annotations

import asyncio
import os
import socket
from functools import partial
from pathlib import Path

from penstock.cluster.layout.decoder import nodes_in
from penstock.cluster.layout.entries import NODES
from penstock.config.metadata_server import MetadataServerConfig
from penstock.metadata.remote.settings import MetadataUrlError, read_secret
from penstock.metadata.server.server import MetadataServer, ServerSettings
from penstock.metadata.store.etcd import EtcdStore
from penstock.metadata.store.etcd_settings import EtcdUrlError, parse_etcd_url
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.runtime.cluster import streams as cluster_streams
from penstock.runtime.cluster.reachability import check_reachability
from penstock.runtime.cluster.store_guard import warn_of_unguarded_store
from penstock.runtime.cluster.streams import dial
from penstock.runtime.cluster.tls import ClusterTls, cluster_tls
from penstock.runtime.http.sqs_server import SqsServer
from penstock.runtime.http.tls import TlsError
from penstock.runtime.native.tls import NativeTls
from penstock.runtime.processes.listening import SettingError, StartError, bind

FIRST_CONTACT_SECONDS = 2.0
"""How long the start waits for etcd; after that the server starts, answers with an error, and continues to try."""


class MetadataProcess:
    """Everything of `penstock metadata`; made by `open_metadata_service`."""

    failure: BaseException | None = None
    """It cannot fail permanently: it waits for missing processes."""
    sqs_server: SqsServer | None = None
    partner_threads: tuple[int, ...] = ()
    native_tls: NativeTls | None = None
    """It has no native clients."""
    cluster_tls: ClusterTls | None = None
    """The TLS for other processes of its cluster."""

    def __init__(self, server: MetadataServer, store: EtcdStore, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self._server = server
        self._store = store
        self._closed = asyncio.Event()

    @property
    def following(self) -> bool:
        """Whether it receives changes from etcd now."""
        return self._server.follower.following

    async def ended(self) -> None:
        """Returns when it was closed."""
        await self._closed.wait()

    async def close(self) -> None:
        """Takes the server off the map, ends its connections, and disconnects from etcd."""
        await self._server.close()
        await self._store.close()
        self._closed.set()


async def open_metadata_service(config: MetadataServerConfig) -> MetadataProcess:
    """A metadata server that listens; raises `StartError`."""
    if config.cluster_metadata is None:
        raise SettingError("a metadata server needs its etcd: name it with --etcd etcd://HOST:PORT")
    if config.cluster_secret_file is None:
        raise SettingError(
            "a metadata server needs the cluster's secret: name its file with --secret-file FILE"
        )
    listen = config.metadata_listen
    if config.metadata_advertise is None and listen.host in ("0.0.0.0", "::"):
        raise SettingError(
            f"other processes cannot reach {listen}: set --advertise HOST:PORT to the address of this server"
        )
    try:
        etcd = parse_etcd_url(config.cluster_metadata)
        secret = read_secret(Path(config.cluster_secret_file))
        tls = cluster_tls(config)
    except (EtcdUrlError, MetadataUrlError, TlsError) as error:
        raise SettingError(str(error)) from None
    name = config.cluster_name or f"metadata-{socket.gethostname()}-{os.getpid()}"
    settings = ServerSettings(
        name=name,
        secret=secret,
        organisation=config.metadata_organisation,
        copies=config.metadata_copies,
        cache_bytes=config.metadata_cache_bytes,
        max_connections=config.metadata_max_connections,
    )
    listener = bind(listen, "--listen")
    store = EtcdStore(etcd)
    server = MetadataServer(
        store,
        settings,
        dial=partial(dial, tls=tls),
        listen=partial(cluster_streams.listen, tls=tls, service="the metadata server"),
    )
    advertised = str(config.metadata_advertise) if config.metadata_advertise is not None else None
    address = await server.start(listener, advertised)
    assert server.registration is not None
    try:
        async with asyncio.timeout(FIRST_CONTACT_SECONDS):
            await server.follower.ready.wait()
            await server.registration.registered.wait()
            await _check_reachability(store, secret, tls)
    except TimeoutError:
        pass  # the server has logged this, and continues to try
    except StartError:
        await server.close()
        await store.close()
        raise
    await warn_of_unguarded_store(config.cluster_metadata, tls)
    service = MetadataProcess(server, store, name, address)
    service.cluster_tls = tls
    return service


async def _check_reachability(store: EtcdStore, secret: bytes, tls: ClusterTls | None) -> None:
    try:
        nodes = await store.list(NODES)
    except StoreUnavailableError:
        return  # nobody can be asked
    await check_reachability(list(nodes_in(nodes.entries)), secret, tls)
