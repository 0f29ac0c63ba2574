"""A separate front end: the SQS server in one process, its node in another."""

from __future__ import annotations

import asyncio

from penstock.config.frontend import FrontendConfig
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.cluster.tls import ClusterTls
from penstock.runtime.engine.tcp_link import TcpLink
from penstock.runtime.http.sqs_server import SqsServer, bind_sqs_server, open_sqs_server
from penstock.runtime.monitoring.front_end import FrontEndSight
from penstock.runtime.monitoring.monitoring import Monitoring, open_monitoring
from penstock.runtime.native.tls import NativeTls, trusted_backend
from penstock.runtime.processes.shared_services import SharedServices, open_shared_services
from penstock.wire.credentials import LINK_KEY, Credentials

FIRST_CONTACT_SECONDS = 2.0
"""How long the start waits for the back end; without it requests are answered with 503 until it is found."""


class RemoteFrontEnd:
    """Everything of `penstock frontend`; made by `open_front_end`."""

    failure: BaseException | None = None
    """It cannot fail permanently: it waits for missing processes."""
    cluster_tls: ClusterTls | None = None
    """It is in no cluster."""
    native_tls: NativeTls | None = None
    """Native clients connect to the server."""
    partner_threads: tuple[int, ...] = ()
    """Next to all it does is done by the event loop's thread."""

    def __init__(
        self,
        sqs_server: SqsServer,
        link: TcpLink,
        shared: SharedServices,
        config: FrontendConfig,
        monitoring: Monitoring | None,
    ) -> None:
        self.monitoring = monitoring
        self.sqs_server = sqs_server
        self.backend = config.backend
        self._link = link
        self._shared = shared
        self._closed = asyncio.Event()

    @property
    def connected(self) -> bool:
        """Whether the back end is there right now."""
        return self._link.connected

    async def ended(self) -> None:
        """Returns when it was closed."""
        await self._closed.wait()

    async def close(self) -> None:
        """Finishes requests in progress, then disconnects from the back end."""
        if self.monitoring is not None:
            await self.monitoring.close()
        await self.sqs_server.close()
        await self._shared.close()
        await self._link.close()
        self._closed.set()


async def open_front_end(config: FrontendConfig) -> RemoteFrontEnd:
    """A front end that listens; raises `StartError`."""
    tls = trusted_backend(config)
    shared = await open_shared_services(config)
    # The back end is shown that we have its master key: to it a front end is no user, and what it asks was asked here.
    credentials = Credentials(LINK_KEY, shared.link_secret)
    link = TcpLink(config.backend, asyncio.get_running_loop(), credentials=credentials, tls=tls)
    link.start()
    try:
        async with asyncio.timeout(FIRST_CONTACT_SECONDS):
            await link.found()
    except TimeoutError:
        pass  # the link has logged this, and continues to try
    clock, monitoring = WallClock(), None
    try:
        bound = bind_sqs_server(config, shared.users.has_users())
        shared.begin_usage(str(bound[1]), link)
        sight = FrontEndSight(str(bound[1]), clock.now_ms(), link, shared.usage_totals)
        monitoring = await open_monitoring(config, sight)
        sqs_server = await open_sqs_server(config, link, clock, shared, bound)
    except BaseException:
        if monitoring is not None:
            await monitoring.close()
        await shared.close()
        await link.close()
        raise
    return RemoteFrontEnd(sqs_server, link, shared, config, monitoring)
