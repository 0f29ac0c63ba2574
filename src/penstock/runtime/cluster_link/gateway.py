"""The native protocol in front of a cluster: clients connect as to a single server, and the link asks the nodes."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from penstock import __version__
from penstock.config.address import Address
from penstock.config.serve import ServeConfig
from penstock.frontend.engine import EngineLink
from penstock.frontend.steps import Reply
from penstock.frontend.telling import tell
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import MEBIBYTE
from penstock.runtime.cluster_link.cluster_link import ClusterLink
from penstock.runtime.cluster_link.subscription import Subscription
from penstock.runtime.listening import bind, check_users
from penstock.runtime.native_entrance import ClusterNames, native_door
from penstock.runtime.native_tls import NativeTls
from penstock.runtime.records import Records
from penstock.runtime.server import Server
from penstock.wire import messages
from penstock.wire.decoding import decode
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.send_order import SendOrder

log = logging.getLogger(__name__)

HELD_BYTES = 32 * MEBIBYTE
"""Of batches that no node has answered yet; beyond, nobody is read from until half of them are answered."""
LAST_ANSWERS_SECONDS = 5.0

_RECEIVES = messages.Receive | messages.ReceiveAny | messages.Subscribe


class _Client:
    """One connection."""

    __slots__ = ("greeted", "name", "paused", "subscriptions", "tickets")

    def __init__(self) -> None:
        self.greeted = False
        self.name = ""
        self.paused = False
        self.tickets: dict[int, int] = {}
        """By request id: what is asked of the link."""
        self.subscriptions: dict[int, Subscription] = {}


class Gateway:
    """See `Handler`: what native clients say goes to the link, and back."""

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
        self._link = link
        self._loop = loop
        self._name = name
        self._now_ms = now_ms
        self._write = write
        self._abort = abort
        self._congestion_changed = congestion_changed
        self._clients: dict[int, _Client] = {}
        self._order = SendOrder()
        self._answers: dict[int, list[Buffer]] = {}
        self._held_bytes = 0
        self._ending = 0
        """Subscriptions that are told to end and have not."""
        self._all_answered: asyncio.Future[None] | None = None
        """While it is stopping: done when there is something to look at."""

    def connected(self, connection: int) -> None:
        """A client has connected."""
        self._clients[connection] = _Client()

    def disconnected(self, connection: int) -> None:
        """A client is gone: what it waited for it needs no more."""
        client = self._clients.pop(connection)
        self._answers.pop(connection, None)
        for ticket in client.tickets.values():
            self._link.cancel(ticket)
        for subscription in client.subscriptions.values():
            subscription.end(_nothing)

    def behind(self, connection: int) -> None:
        """A client does not read what it is sent."""
        client = self._clients[connection]
        client.paused = True
        for subscription in client.subscriptions.values():
            subscription.pause()

    def caught_up(self, connection: int) -> None:
        """A client has read what it was sent."""
        client = self._clients[connection]
        client.paused = False
        for subscription in list(client.subscriptions.values()):
            subscription.resume()

    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
        """Whole frames arrived."""
        client = self._clients.get(connection)
        if client is None:
            return
        for frame in frames:
            try:
                self._take(connection, client, frame)
            except PenstockError as error:
                self._answer(connection, frame.request_id, messages.Failed(error.code, error.message))

    async def finish(self) -> None:
        """Nothing arrives any more: what waits for messages ends its wait. Returns when everything is answered."""
        for connection, client in self._clients.items():
            for ticket in client.tickets.values():
                self._link.cancel(ticket)
            for request_id, subscription in list(client.subscriptions.items()):
                client.subscriptions.pop(request_id)
                self._ending += 1
                stopping = messages.Failed(
                    ErrorCode.SHUTTING_DOWN, "the front end is stopping; connect again"
                )
                subscription.end(partial(self._ended, connection, request_id, stopping))
        await self._wait_for_all()

    async def _wait_for_all(self) -> None:
        while self._ending or any(client.tickets for client in self._clients.values()):
            self._all_answered = self._loop.create_future()
            await self._all_answered
        self._write_answers()

    def _ended(self, connection: int, request_id: int, answer: messages.Failed) -> None:
        self._ending -= 1
        self._answer(connection, request_id, answer)
        self._look_whether_all()

    def _look_whether_all(self) -> None:
        if self._all_answered is not None and not self._all_answered.done():
            self._all_answered.set_result(None)

    # -- requests --------------------------------------------------------------------------------------------

    def _take(self, connection: int, client: _Client, frame: Frame) -> None:
        request = decode(frame)
        request_id = frame.request_id
        if isinstance(request, messages.Hello):
            self._answer(connection, request_id, self._welcome(client, request))
            return
        if not client.greeted:
            raise PenstockError(ErrorCode.BAD_REQUEST, "say hello first")
        if isinstance(request, _RECEIVES) and not request.consumer:  # nodes know only this front end by name
            request = msgspec.structs.replace(request, consumer=client.name)
        match request:
            case messages.Subscribe():
                self._subscribe(connection, client, request_id, request)
            case messages.AddCredit():
                subscription = client.subscriptions.get(request.subscription)
                if subscription is not None:
                    subscription.add_credit(request.messages)
            case messages.Unsubscribe():
                self._unsubscribe(connection, client, request_id, request.subscription)
            case _:
                self._ask(connection, client, request_id, request, frame.body)

    def _welcome(self, client: _Client, request: messages.Hello) -> messages.Welcome:
        if messages.PROTOCOL_VERSION not in request.versions:
            raise PenstockError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the client speaks protocol {request.versions}, this server {messages.PROTOCOL_VERSION}",
            )
        client.greeted = True
        client.name = request.client
        return messages.Welcome(
            messages.PROTOCOL_VERSION, f"penstock {__version__}", self._name, self._now_ms()
        )

    def _ask(
        self, connection: int, client: _Client, request_id: int, request: messages.Request, body: memoryview
    ) -> None:
        if isinstance(request, messages.Send):
            self._order.check(connection, request)
            self._order.taken(connection, request)
        self._hold(len(body))

        def done(outcome: Reply | PenstockError) -> None:
            self._hold(-len(body))
            client.tickets.pop(request_id, None)
            if isinstance(outcome, PenstockError):
                if isinstance(request, messages.Send):
                    self._order.refused(connection, request)
                self._answer(connection, request_id, messages.Failed(outcome.code, outcome.message))
            elif self._clients.get(connection) is client:
                self._answer(connection, request_id, outcome.answer, outcome.body)
            elif not (isinstance(request, messages.Receive) and request.attempt):
                # Who has an attempt id asks for the same lease again, and may have it on another connection by now.
                self._give_back(outcome.answer)
            self._look_whether_all()

        client.tickets[request_id] = self._link.ask(request, body, done)

    def _subscribe(
        self, connection: int, client: _Client, request_id: int, request: messages.Subscribe
    ) -> None:
        def deliver(delivery: messages.Delivery, body: memoryview) -> None:
            if self._clients.get(connection) is client:
                self._answer(connection, request_id, delivery, body)
            else:
                self._give_back(delivery)

        def failed(error: PenstockError) -> None:
            client.subscriptions.pop(request_id, None)
            self._answer(connection, request_id, messages.Failed(error.code, error.message))

        subscription = Subscription(self._link, self._loop, request, deliver, failed)
        client.subscriptions[request_id] = subscription
        if client.paused:
            subscription.pause()
        subscription.go_on()

    def _unsubscribe(self, connection: int, client: _Client, request_id: int, ended: int) -> None:
        answer = partial(self._answer, connection, request_id, messages.Done())
        subscription = client.subscriptions.pop(ended, None)
        if subscription is not None:
            subscription.end(answer)
            return
        ticket = client.tickets.get(ended)
        if ticket is not None:
            self._link.cancel(ticket)
        answer()

    def _give_back(self, answer: messages.Answer) -> None:
        """Messages for somebody who has gone are ready again at once, and as if they had never been received."""
        match answer:
            case messages.Delivery():
                given = [(answer.token, answer.batches)]
            case messages.GroupDelivery():
                given = [(one.token, one.batches) for one in answer.deliveries]
            case _:
                return
        receipts = [
            messages.Receipt(token, [(batch.first, batch.count) for batch in batches])
            for token, batches in given
            if batches
        ]
        if receipts:
            self._link.ask(messages.Release(receipts, unreceived=True), b"", _ignored)

    # -- answers ---------------------------------------------------------------------------------------------

    def _answer(self, connection: int, request_id: int, answer: messages.Answer, body: Buffer = b"") -> None:
        if connection not in self._clients:
            return
        try:
            head = messages.encode_message(answer)
        except Exception as error:  # the client is told, else it would wait for ever
            log.exception("an answer cannot be encoded: this is a defect of Penstock; please report it")
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
                log.exception(
                    "answers could not be written: this is a defect of Penstock; please report it. "
                    "The connection is closed, so that its client asks again"
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
        """Reads nothing more, finishes what was read, and lets go of all clients."""
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
    records: Records,
    failed_signatures: int | None,
    name: str,
    now_ms: Callable[[], int],
    tls: NativeTls | None = None,
    trusted_proxies: Sequence[str] | None = None,
    max_connections: int = ServeConfig.max_connections,
) -> NativeGateway:
    """A gateway that listens; raises `StartError`, and lets go of its socket then."""
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
    door = native_door(server, records, names, address, failed_signatures, now_ms)
    gateway = Gateway(link, loop, name, now_ms, door.write, server.abort, server.congestion_changed)
    door.inside, door.learner = gateway, link
    try:
        await server.start(door, listener)
    except BaseException:
        listener.close()
        raise
    return NativeGateway(gateway, server, address)


def _nothing() -> None:
    """Nobody waits for it."""


def _ignored(outcome: Reply | PenstockError) -> None:
    """The lease ends by itself if this did not work."""
