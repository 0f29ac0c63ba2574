"""The native protocol in front of a cluster: clients connect as to a single server, and the link asks the nodes."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Sequence

from penstock import __version__
from penstock.config.address import Address
from penstock.config.serve import ServeConfig
from penstock.frontend.engine import EngineLink
from penstock.frontend.telling import tell
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import MEBIBYTE
from penstock.routing.native_clients import NativeClients
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.runtime.native.entrance import ClusterNames, make_native_guard
from penstock.runtime.native.server import Server
from penstock.runtime.native.tls import NativeTls
from penstock.runtime.processes.listening import bind, check_users
from penstock.runtime.processes.shared_services import SharedServices
from penstock.wire import messages
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.messages import request_of

logger = logging.getLogger(__name__)

HELD_BYTES = 32 * MEBIBYTE
"""The maximum bytes of batches that no node has answered yet; above it, clients are not read from until half of them are
answered.
"""
LAST_ANSWERS_SECONDS = 5.0


class Gateway:
    """See `Handler`: passes frames of native clients to the link, and answers back. `routing.native_clients` decides."""

    def __init__(
        self,
        link: EngineLink,
        loop: asyncio.AbstractEventLoop,
        name: str,
        now_ms: Callable[[], int],
        write: Callable[[int, list[Buffer]], None],
        abort: Callable[[int], None],
        congestion_changed: Callable[[bool], None],
    ) -> None:
        self.congested = False
        self._loop = loop
        self._name = name
        self._now_ms = now_ms
        self._write = write
        self._abort = abort
        self._congestion_changed = congestion_changed
        self._clients = NativeClients(link, loop.call_later, self._answer, self._welcome, self._hold)
        self._answers: dict[int, list[Buffer]] = {}
        self._held_bytes = 0

    def connected(self, connection: int) -> None:
        """A client has connected."""
        self._clients.connected(connection)

    def disconnected(self, connection: int) -> None:
        """A client is gone: its pending requests are not needed any more."""
        self._answers.pop(connection, None)
        self._clients.disconnected(connection)

    def behind(self, connection: int) -> None:
        """A client does not read what it is sent."""
        self._clients.behind(connection)

    def caught_up(self, connection: int) -> None:
        """A client has read what it was sent."""
        self._clients.caught_up(connection)

    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
        """Whole frames arrived."""
        for frame in frames:
            try:
                request = request_of(frame)
            except PenstockError as error:
                self._clients.refuse(connection, frame.request_id, error)
            else:
                self._clients.take(connection, frame.request_id, request, frame.body)

    async def finish(self) -> None:
        """No more requests arrive: waiting receives end. Returns when everything is answered."""
        all_answered: asyncio.Future[None] = self._loop.create_future()

        def finished() -> None:
            if not all_answered.done():  # the caller may have stopped waiting
                all_answered.set_result(None)

        self._clients.finish(finished)
        await all_answered
        self._write_answers()

    def _welcome(self) -> messages.Welcome:
        return messages.Welcome(
            messages.PROTOCOL_VERSION, f"penstock {__version__}", self._name, self._now_ms()
        )

    # -- answers ---------------------------------------------------------------------------------------------

    def _answer(self, connection: int, request_id: int, answer: messages.Answer, body: Buffer) -> None:
        try:
            head = messages.encode_message(answer)
        except Exception as error:  # the client gets an error, otherwise it would wait forever
            logger.exception("could not encode an answer: this is a defect of Penstock; please report it")
            message = f"a defect of the front end: {type(error).__name__}: {error}"
            head, body = messages.encode_message(messages.Failed(ErrorCode.INTERNAL, message)), b""
        if not self._answers:
            self._loop.call_soon(self._write_answers)
        frame = encode_frame(request_id, head, (body,) if len(body) else ())
        self._answers.setdefault(connection, []).extend(frame)

    def _write_answers(self) -> None:
        answers, self._answers = self._answers, {}
        for connection, buffers in answers.items():
            try:
                self._write(connection, buffers)
            except Exception:
                logger.exception(
                    "could not write answers: this is a defect of Penstock; please report it. The connection "
                    "is closed, so that its client asks again"
                )
                tell(self._abort, connection)

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        if not self.congested and self._held_bytes > HELD_BYTES:
            self.congested = True
            self._congestion_changed(True)
        elif self.congested and self._held_bytes <= HELD_BYTES // 2:
            self.congested = False
            self._congestion_changed(False)


class NativeGateway:
    """A gateway and the server in front of it; made by `open_gateway`."""

    def __init__(self, gateway: Gateway, server: Server, address: Address) -> None:
        self._gateway = gateway
        self._server = server
        self.address = address

    async def close(self) -> None:
        """Stops reading, finishes the requests that were read, and disconnects all clients."""
        self._server.stop_accepting()
        try:
            async with asyncio.timeout(LAST_ANSWERS_SECONDS):
                await self._gateway.finish()
        except TimeoutError:
            pass  # clients ask again elsewhere
        await self._server.close(LAST_ANSWERS_SECONDS)


def bind_gateway(listen: Address, has_users: bool) -> tuple[socket.socket, Address]:
    """The socket of a gateway, and where it is; raises `StartError`."""
    check_users(listen, has_users)
    listener = bind(listen, "--native-listen")
    return listener, Address(listen.host, listener.getsockname()[1])


async def open_gateway(
    bound: tuple[socket.socket, Address],
    link: ClusterLink,
    shared: SharedServices,
    failed_signatures: int | None,
    name: str,
    now_ms: Callable[[], int],
    tls: NativeTls | None = None,
    trusted_proxies: Sequence[str] | None = None,
    max_connections: int = ServeConfig.max_connections,
) -> NativeGateway:
    """A listening gateway; if it raises `StartError`, its socket is closed."""
    listener, address = bound
    server = Server(
        max_connections=max_connections,
        write_buffer_bytes=ServeConfig.write_buffer_bytes,
        hello_timeout_ms=ServeConfig.hello_timeout_ms,
        tls=tls,
        trusted_proxies=trusted_proxies,
    )
    loop = asyncio.get_running_loop()
    names = ClusterNames(link.map)
    guard = make_native_guard(server, shared, names, address, failed_signatures, now_ms)
    gateway = Gateway(link, loop, name, now_ms, guard.write, server.abort, server.congestion_changed)
    guard.inside, guard.learner = gateway, link
    try:
        await server.start(guard, listener)
    except BaseException:
        listener.close()
        raise
    return NativeGateway(gateway, server, address)
