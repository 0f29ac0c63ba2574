"""A simulated client: connects, greets, sends frames and matches answers to requests. It has no other state.

It uses real frames and the real reader, so the wire format is simulated too. Like the client library it reconnects when it
is next used.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from penstock.simulation.network import Link, Network
from penstock.simulation.tasks import Reply
from penstock.simulation.trace import Trace
from penstock.wire import messages
from penstock.wire.frames import FrameReader, encode_frame

_REFUSED_MS = 40
"""How long it takes to notice that no server listens."""


class Impatient(NamedTuple):
    """Asks like its client, and after a while cancels its request at the node."""

    client: SimulatedClient
    after_ms: int

    def ask(
        self, request: messages.Request, body: bytes, timeout_ms: int, done: Callable[[Reply | None], None]
    ) -> None:
        """Sends a request, and later what cancels it."""
        self.client.ask(request, body, timeout_ms, done)
        cancel = messages.Unsubscribe(self.client.last_request)
        self.client.after(self.after_ms, lambda: self.client.tell(cancel))


class SimulatedClient:
    """One client with at most one connection."""

    def __init__(self, name: str, network: Network, random: Random, trace: Trace) -> None:
        self.name = name
        self._network = network
        self._random = random
        self._trace = trace
        self._link: Link | None = None
        self._reader = FrameReader()
        self._next_request = 1
        self._waiting: dict[int, Callable[[Reply | None], None]] = {}
        self._subscriptions: dict[int, Callable[[Reply | None], None]] = {}

    def ask(
        self, request: messages.Request, body: bytes, timeout_ms: int, done: Callable[[Reply | None], None]
    ) -> None:
        """Sends a request; `done` gets its answer, or None if none comes."""
        request_id = self._send(request, body)
        if request_id is None:
            self._network.schedule.after(_REFUSED_MS, lambda: done(None))
            return
        self._waiting[request_id] = done
        self._network.schedule.after(timeout_ms, lambda: self._timed_out(request_id))

    @property
    def incarnation(self) -> int:
        """The number of its connection; 0: there is none."""
        return self._link.number if self._link is not None else 0

    def dial(self) -> None:
        """Connects, if that is possible."""
        self._connected()

    @property
    def last_request(self) -> int:
        """The id of the last request sent."""
        return self._next_request - 1

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Does something later."""
        self._network.schedule.after(delay_ms, action)

    def subscribe(self, request: messages.Subscribe, arrived: Callable[[Reply | None], None]) -> int | None:
        """Sends a subscription; every delivery goes to `arrived`, and None once the connection is lost."""
        request_id = self._send(request, b"")
        if request_id is not None:
            self._subscriptions[request_id] = arrived
        return request_id

    def tell(self, request: messages.Request) -> None:
        """Sends what is not answered."""
        if self._link is not None:
            self._send(request, b"")

    def forget(self, subscription: int) -> None:
        """Deliveries of a subscription are not wanted any more."""
        self._subscriptions.pop(subscription, None)

    def disconnect(self) -> None:
        """Closes the connection, if there is one."""
        if self._link is not None:
            self._link.close()

    def send_raw(self, data: bytes) -> None:
        """Sends any bytes; the server must handle them."""
        if self._connected() is not None and self._link is not None:
            self._link.to_server(data)

    # -- inside ----------------------------------------------------------------------------------------------

    def _send(self, request: messages.Request, body: bytes) -> int | None:
        link = self._connected()
        if link is None:
            return None
        request_id = self._next_request
        self._next_request += 1
        frame = encode_frame(request_id, messages.encode_message(request), (body,) if body else ())
        link.to_server(b"".join(frame))
        return request_id

    def _connected(self) -> Link | None:
        if self._link is None:
            link: Link | None = None

            def lost() -> None:
                if link is not None:
                    self._lost(link)

            self._reader = FrameReader()
            link = self._link = self._network.connect(self._arrived, lost)
            if link is not None:
                hello = messages.encode_message(messages.Hello([messages.PROTOCOL_VERSION], self.name))
                link.to_server(b"".join(encode_frame(self._next_request, hello)))
                self._next_request += 1
        return self._link

    def _arrived(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            reply = Reply(messages.decode_answer(frame.head), frame.body)
            done = self._waiting.pop(frame.request_id, None)
            if done is not None:
                done(reply)
            elif (subscribed := self._subscriptions.get(frame.request_id)) is not None:
                subscribed(reply)

    def _timed_out(self, request_id: int) -> None:
        if request_id in self._waiting:
            self._trace.add(self.name, "gave up waiting")
            done = self._waiting.pop(request_id)
            self.disconnect()
            done(None)

    def _lost(self, link: Link) -> None:
        if link is not self._link:
            return
        self._link = None
        waiting, self._waiting = self._waiting, {}
        subscriptions, self._subscriptions = self._subscriptions, {}
        for done in [*waiting.values(), *subscriptions.values()]:
            done(None)
