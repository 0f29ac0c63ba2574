"""Front ends behind a balancer, for clients with the library's code: each connection goes to one of them, and they may be
killed.

The product (`routing.native_clients`) decides about connections, subscriptions and the cleanup after a client.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from random import Random
from typing import Protocol

from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.routing.native_clients import NativeClients
from penstock.routing.subscription import Replied
from penstock.simulation.later import Cancellable
from penstock.simulation.network import Link
from penstock.simulation.schedule import Schedule
from penstock.steps.step import Outcome
from penstock.wire import messages
from penstock.wire.frames import FrameReader, encode_frame

_KILLED_SHARE = 0.5
_KILLED_MS = (1_500, 7_000)
_BEHIND_SHARE = 0.1
"""So many connections are not read from for a while."""
_BEHIND_MS = (50, 2_000)


class Told(Protocol):
    """Called with a front end's answer to a request, and whether it may have settled messages a second time."""

    def __call__(self, outcome: Outcome, *, again: bool) -> None: ...


class Routing(Protocol):
    """Routes the requests of one process."""

    def carry_out(self, request: messages.Request, body: bytes, done: Told) -> int:
        """Has a request routed. Returns a number for it."""

    def tell(self, request: messages.Request) -> None:
        """Ends the wait of a request."""

    def stop(self) -> None:
        """The process is killed."""


class Process:
    """One front end: its connected clients, and its router."""

    def __init__(self, routing: Routing, schedule: Schedule, settled_again: set[bytes]) -> None:
        self._routing = routing
        self._schedule = schedule
        self._settled_again = settled_again
        self._clients = NativeClients(self, self._later, self._tell, _welcome, _hold)
        self.links: dict[int, tuple[Link, FrameReader]] = {}
        self.is_up = True

    # -- see `Engine` ----------------------------------------------------------------------------------------

    def ask(
        self, request: messages.Request, body: Buffer, done: Callable[[Replied | PenstockError], None]
    ) -> int:
        """Has a request routed."""

        def ended(outcome: Outcome, *, again: bool) -> None:
            if again and isinstance(request, messages.Delete | messages.Release | messages.Extend):
                self._settled_again.update(receipt.token for receipt in request.receipts)
            self._schedule.after(0, lambda: tell(outcome))

        def tell(outcome: Outcome) -> None:
            if self.is_up:
                done(outcome)

        return self._routing.carry_out(request, bytes(body), ended)

    def cancel(self, ticket: int) -> None:
        """A waiting request need not wait any longer."""
        self._routing.tell(messages.Unsubscribe(ticket))

    def _later(self, seconds: float, action: Callable[[], None]) -> Cancellable:
        later = Cancellable(action)
        self._schedule.after(ceil(1000 * seconds), lambda: later.run() if self.is_up else None)
        return later

    # -- connections -----------------------------------------------------------------------------------------

    def opened(self, link: Link) -> None:
        """A client has connected."""
        self.links[link.number] = (link, FrameReader())
        self._clients.connected(link.number)

    def lost(self, link: Link) -> None:
        """A client is gone."""
        if self.links.pop(link.number, None) is not None:
            self._clients.disconnected(link.number)

    def arrived(self, link: Link, data: bytes) -> None:
        """Bytes of a client."""
        if link.number in self.links:
            for frame in self.links[link.number][1].feed(data):
                request = messages.decode_request(frame.head)
                self._clients.take(link.number, frame.request_id, request, frame.body)

    def behind(self, link: Link, *, is_behind: bool) -> None:
        """Whether a client reads what it is sent."""
        if self.is_up and link.number in self.links:
            change = self._clients.behind if is_behind else self._clients.caught_up
            change(link.number)

    def kill(self) -> None:
        """It dies with all that it remembers."""
        self.is_up = False
        self._routing.stop()
        links, self.links = self.links, {}
        for link, _ in links.values():
            link.server_stopped()

    def _tell(self, connection: int, request_id: int, answer: messages.Answer, body: Buffer) -> None:
        frame = encode_frame(request_id, messages.encode_message(answer), (body,) if len(body) else ())
        self.links[connection][0].to_client(b"".join(frame))


class FrontEnds:
    """Several processes; a new connection goes to any of them."""

    def __init__(
        self,
        start: Callable[[], Routing],
        processes: int,
        schedule: Schedule,
        random: Random,
        is_calm: Callable[[], bool],
    ) -> None:
        self._start = start
        self._schedule = schedule
        self._random = random
        self._is_calm = is_calm
        self.settled_again: set[bytes] = set()
        """Tokens of leases of which something was settled for the second time, perhaps."""
        self.killed = 0
        self._processes = [self._new() for _ in range(processes)]
        self._of: dict[int, Process] = {}
        """By the number of a connection: its process."""
        if random.random() < _KILLED_SHARE:
            schedule.after(random.randint(*_KILLED_MS), self._kill)

    def _new(self) -> Process:
        return Process(self._start(), self._schedule, self.settled_again)

    def accepts(self) -> bool:
        """Whether a front end listens."""
        return True

    def opened(self, link: Link) -> None:
        """A client has connected."""
        process = self._of[link.number] = self._random.choice(self._processes)
        process.opened(link)
        if self._random.random() < _BEHIND_SHARE and not self._is_calm():
            begin_ms, length_ms = self._random.randint(*_BEHIND_MS), self._random.randint(*_BEHIND_MS)
            self._schedule.after(begin_ms, lambda: process.behind(link, is_behind=True))
            self._schedule.after(begin_ms + length_ms, lambda: process.behind(link, is_behind=False))

    def lost(self, link: Link) -> None:
        """A client is gone."""
        self._of.pop(link.number).lost(link)

    def arrived(self, link: Link, data: bytes) -> None:
        """Bytes of a client."""
        self._of[link.number].arrived(link, data)

    def _kill(self) -> None:
        """One process dies; another one takes its place at once."""
        if self._is_calm():
            return
        place = self._random.randrange(len(self._processes))
        dead, self._processes[place] = self._processes[place], self._new()
        dead.kill()
        self.killed += 1
        self._schedule.after(self._random.randint(*_KILLED_MS), self._kill)


def _welcome() -> messages.Welcome:
    return messages.Welcome(messages.PROTOCOL_VERSION, "penstock", "a front end", 0)


def _hold(size: int) -> None:
    """Does nothing: simulated clients send little."""
