"""The native clients of a front end: the requests and subscriptions of each connection, and the cleanup when a client leaves.

Requests arrive decoded, and answers leave as objects. The world around it (sockets, or the simulation) transports both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.subscription import Engine, Replied, Subscription
from penstock.wire import messages
from penstock.wire.later import Later
from penstock.wire.refusals import hello_first
from penstock.wire.send_order import SendOrder

_RECEIVES = messages.Receive | messages.ReceiveAny | messages.Subscribe

Answer = Callable[[int, int, messages.Answer, Buffer], None]
"""Answers a client: its connection, its request, the answer and its body."""


class _Client:
    """One connection."""

    __slots__ = ("greeted", "name", "paused", "subscriptions", "tickets")

    def __init__(self) -> None:
        self.greeted = False
        self.name = ""
        self.paused = False
        self.tickets: dict[int, int] = {}
        """By request id: the tickets of requests to the engine."""
        self.subscriptions: dict[int, Subscription] = {}


class NativeClients:
    """All connections of a front end. Answers for a closed connection are dropped here."""

    def __init__(
        self,
        engine: Engine,
        later: Later,
        answer: Answer,
        welcome: Callable[[], messages.Welcome],
        hold: Callable[[int], None],
    ) -> None:
        self._engine = engine
        self._later = later
        self._tell = answer
        self._welcome = welcome
        self._hold = hold
        """Called with the change in the number of bytes of batches that wait for an answer of a node."""
        self._clients: dict[int, _Client] = {}
        self._order = SendOrder()
        self._ending = 0
        """Subscriptions that were asked to end and have not ended."""
        self._finished: Callable[[], None] | None = None
        """While the front end is stopping: called when everything is answered."""

    def connected(self, connection: int) -> None:
        """A client has connected."""
        self._clients[connection] = _Client()

    def disconnected(self, connection: int) -> None:
        """A client is gone: its pending requests are not needed any more."""
        client = self._clients.pop(connection)
        for ticket in client.tickets.values():
            self._engine.cancel(ticket)
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

    def finish(self, finished: Callable[[], None]) -> None:
        """No more requests arrive: waiting receives end. `finished` is called when everything is answered."""
        self._finished = finished
        for connection, client in self._clients.items():
            for ticket in client.tickets.values():
                self._engine.cancel(ticket)
            for request_id, subscription in list(client.subscriptions.items()):
                client.subscriptions.pop(request_id)
                self._ending += 1
                stopping = messages.Failed(
                    ErrorCode.SHUTTING_DOWN, "the front end is stopping; connect again"
                )
                subscription.end(partial(self._ended, connection, request_id, stopping))
        self._look_whether_all()

    def _ended(self, connection: int, request_id: int, answer: messages.Failed) -> None:
        self._ending -= 1
        self._answer(connection, request_id, answer)
        self._look_whether_all()

    def _look_whether_all(self) -> None:
        if self._ending or any(client.tickets for client in self._clients.values()):
            return
        if self._finished is not None:
            finished, self._finished = self._finished, None
            finished()

    # -- requests --------------------------------------------------------------------------------------------

    def take(self, connection: int, request_id: int, request: messages.Request, body: memoryview) -> None:
        """A client asks for something."""
        client = self._clients.get(connection)
        if client is None:
            return
        try:
            self._take(connection, client, request_id, request, body)
        except PenstockError as error:
            self.refuse(connection, request_id, error)

    def refuse(self, connection: int, request_id: int, error: PenstockError) -> None:
        """Refuses a client's request."""
        self._answer(connection, request_id, messages.Failed(error.code, error.message))

    def _take(
        self, connection: int, client: _Client, request_id: int, request: messages.Request, body: memoryview
    ) -> None:
        if isinstance(request, messages.Hello):
            self._greet(client, request)
            self._answer(connection, request_id, self._welcome())
            return
        if not client.greeted:
            raise hello_first()
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
                self._ask(connection, client, request_id, request, body)

    def _greet(self, client: _Client, request: messages.Hello) -> None:
        if messages.PROTOCOL_VERSION not in request.versions:
            raise PenstockError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the client uses protocol versions {request.versions}, this server uses {messages.PROTOCOL_VERSION}",
            )
        client.greeted = True
        client.name = request.client

    def _ask(
        self, connection: int, client: _Client, request_id: int, request: messages.Request, body: memoryview
    ) -> None:
        if isinstance(request, messages.Send):
            self._order.check(connection, request)
            self._order.taken(connection, request)
        self._hold(len(body))

        def done(outcome: Replied | PenstockError) -> None:
            self._hold(-len(body))
            client.tickets.pop(request_id, None)
            if isinstance(outcome, PenstockError):
                if isinstance(request, messages.Send):
                    self._order.refused(connection, request)
                self.refuse(connection, request_id, outcome)
            elif self._clients.get(connection) is client:
                self._answer(connection, request_id, outcome.answer, outcome.body)
            elif not (isinstance(request, messages.Receive) and request.attempt):
                # A client with an attempt id asks for the same lease again, and may have it on another connection by now.
                self._give_back(outcome.answer)
            self._look_whether_all()

        client.tickets[request_id] = self._engine.ask(request, body, done)

    def _subscribe(
        self, connection: int, client: _Client, request_id: int, request: messages.Subscribe
    ) -> None:
        has_failed = False

        def deliver(delivery: messages.Delivery, body: Buffer) -> None:
            if self._clients.get(connection) is client and not has_failed:
                self._answer(connection, request_id, delivery, body)
            else:
                self._give_back(delivery)

        def failed(error: PenstockError) -> None:
            nonlocal has_failed
            has_failed = True  # the client takes nothing more under this id
            client.subscriptions.pop(request_id, None)
            self.refuse(connection, request_id, error)

        subscription = Subscription(self._engine, self._later, request, deliver, failed)
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
            self._engine.cancel(ticket)
        answer()

    def _give_back(self, answer: messages.Answer) -> None:
        """Messages for a client that is gone are ready again at once, as if they had never been received."""
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
            self._engine.ask(messages.Release(receipts, unreceived=True), b"", _ignored)

    def _answer(self, connection: int, request_id: int, answer: messages.Answer, body: Buffer = b"") -> None:
        if connection in self._clients:
            self._tell(connection, request_id, answer, body)


def _nothing() -> None:
    """No client waits for this answer."""


def _ignored(outcome: Replied | PenstockError) -> None:
    """The lease ends by itself if this did not work."""
