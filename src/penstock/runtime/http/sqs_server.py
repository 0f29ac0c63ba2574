"""The SQS front end and all its parts, opened and closed in a fixed order.

Opening:
  1. its socket is bound; the users are known (see `shared`): loopback only, while there are none
  2. the HTTP server listens

Closing:
  1. the listening socket is closed; requests that were read are finished, long polls end
  2. writes of metadata in progress end

A `StartError` says in one sentence what prevents the opening, and what to do.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from pathlib import Path

from penstock.config.address import Address
from penstock.config.frontend import FrontendConfig
from penstock.config.serve import ServeConfig
from penstock.frontend.engine import EngineLink
from penstock.frontend.front_end import FrontEnd
from penstock.frontend.move_tasks.mover import Mover
from penstock.frontend.services import Services
from penstock.frontend.throttle.failed_signatures import limit_of
from penstock.metadata.users.directory import UserDirectory
from penstock.model.limits import SECOND_MS
from penstock.runtime.clocks.clock import WallClock, timer_us, wall_ms
from penstock.runtime.engine.local_link import LocalLink
from penstock.runtime.engine.turn import Turn
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.http.proxies import TrustedProxies
from penstock.runtime.http.server import HttpServer
from penstock.runtime.http.server_state import Handler
from penstock.runtime.http.tls import Tls, TlsError
from penstock.runtime.processes.listening import SettingError, bind, check_users
from penstock.runtime.processes.metadata_registry import MetadataRegistry
from penstock.runtime.processes.move_timer import MoveTimer
from penstock.runtime.processes.shared_services import SharedServices
from penstock.sqs.compatibility import EXTENDED, STRICT

GRACE_SECONDS = 5.0
"""How long requests that were read get to be finished when the server stops."""


SqsServerConfig = ServeConfig | FrontendConfig


class SqsServer:
    """Everything that serves SQS, in one object; made by `open_sqs_server`."""

    def __init__(
        self,
        front: FrontEnd,
        server: HttpServer,
        registry: MetadataRegistry,
        tls: Tls | None,
        address: Address,
        users: UserDirectory,
        moves: MoveTimer,
    ) -> None:
        self._front = front
        self._moves = moves
        self._server = server
        self._registry = registry
        self._tls = tls
        self._users = users
        self.address = address

    @property
    def url(self) -> str:
        """The endpoint for SDKs."""
        return f"{'http' if self._tls is None else 'https'}://{self.address}"

    @property
    def has_users(self) -> bool:
        """Whether requests must be signed by a user; without users any credentials will do."""
        return self._users.has_users()

    def reload_certificate(self) -> None:
        """Takes over a renewed certificate; raises `TlsError` and keeps the old one where that fails."""
        if self._tls is not None:
            self._tls.reload()

    def congestion_changed(self, congested: bool) -> None:
        """The engine has more to write than it may hold, or has caught up."""
        if congested:
            self._server.hold()
        else:
            self._server.resume()

    def drop_all(self) -> None:
        """The engine has failed: nothing may be answered any more."""
        self._server.drop_all()

    async def close(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stops in the order written above; the engine must still be there."""
        self._server.stop_accepting()
        self._moves.close()
        self._front.end_waiting()
        await self._server.close(grace_seconds)
        await self._registry.close()


def bind_sqs_server(config: SqsServerConfig, has_users: bool) -> tuple[socket.socket, Address]:
    """The socket and the address of an SQS server; raises `StartError`."""
    assert config.sqs_listen is not None
    check_users(config.sqs_listen, has_users)
    listener = bind(config.sqs_listen, "--sqs-listen")
    return listener, Address(config.sqs_listen.host, listener.getsockname()[1])


async def open_sqs_server(
    config: SqsServerConfig,
    link: EngineLink,
    clock: WallClock,
    shared: SharedServices,
    bound: tuple[socket.socket, Address],
) -> SqsServer:
    """A listening SQS server; if it raises `StartError`, its socket is closed."""
    assert config.sqs_listen is not None
    turn = link.turn if isinstance(link, LocalLink) else Turn(asyncio.get_running_loop())
    listener, address = bound
    users = shared.users
    try:
        tls = _tls(config)
        registry = MetadataRegistry(shared.mirror)
        services = Services(
            engine=link,
            registry=registry,
            metadata=shared.metadata,
            users=users,
            usage=shared.usage,
            home=shared.home,
            compatibility=STRICT if config.sqs_compatibility == "strict" else EXTENDED,
            address=str(address),
            public_url=config.sqs_public_url.rstrip("/") if config.sqs_public_url else None,
            open_without_users=config.sqs_listen.is_loopback,
            now_ms=clock.now_ms,
            timer_us=timer_us,
            token=secrets.token_bytes,
            later=turn.later,
            wall_ms=wall_ms,
            failed_signatures=limit_of(config.sqs_failed_signatures),
            throttle=shared.throttle,
        )
        front = FrontEnd(services)
        server = HttpServer(_handler(config, front), limits=_limits(config), refuse=front.refuse, turn=turn)
        await server.start(listener, tls.context if tls is not None else None)
    except BaseException:
        listener.close()
        raise
    moves = MoveTimer(services, Mover(secrets.token_hex(8), shared.metadata), clock.now_ms)
    return SqsServer(front, server, registry, tls, address, users, moves)


def _handler(config: SqsServerConfig, front: FrontEnd) -> Handler:
    """The handler of requests; behind proxies it gets the clients' addresses instead of theirs."""
    if config.sqs_trusted_proxies is None:
        return front.handle
    client_of = TrustedProxies(config.sqs_trusted_proxies).client_of
    return lambda request, peer, reply: front.handle(request, client_of(request, peer), reply)


def _tls(config: SqsServerConfig) -> Tls | None:
    if config.sqs_tls_certificate is None or config.sqs_tls_key is None:
        return None
    try:
        return Tls(Path(config.sqs_tls_certificate), Path(config.sqs_tls_key))
    except TlsError as error:
        raise SettingError(str(error)) from None


def _limits(config: SqsServerConfig) -> HttpLimits:
    seconds = config.sqs_request_timeout_ms / SECOND_MS
    return HttpLimits(
        max_connections=config.sqs_max_connections,
        idle_seconds=config.sqs_idle_timeout_ms / SECOND_MS,
        request_seconds=seconds,
        head_seconds=seconds / 2,
    )
