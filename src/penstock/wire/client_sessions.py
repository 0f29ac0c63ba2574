"""All connections of one server of the native protocol: which are accepted, which are closed for others, and their shared
state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from penstock.wire.client_session import ClientSession, SessionTerms, Socket
from penstock.wire.fair_turns import FairTurns
from penstock.wire.later import Later
from penstock.wire.session_sides import Complain, Handler
from penstock.wire.strangers import Strangers


class ClientSessions(Generic[Socket]):
    """See `Sessions`; begins with `start`."""

    def __init__(
        self,
        terms: SessionTerms,
        later: Later,
        complain: Complain,
        new_nonce: Callable[[], bytes],
        now_us: Callable[[], int],
    ) -> None:
        self.terms = terms
        self.later = later
        self.complain = complain
        self.new_nonce = new_nonce
        self.connections: dict[int, ClientSession[Socket]] = {}
        """By number: all that are open."""
        self.strangers: Strangers[ClientSession[Socket]] = Strangers(terms.max_connections)
        """Those of them that have not shown yet who they are."""
        self.turned_away = 0
        """Connections that are refused and may still read why."""
        self.held: dict[ClientSession[Socket], None] = {}
        """Connections with bytes that wait until the node is no longer congested, in the order in which they began to."""
        self.unfinished: dict[ClientSession[Socket], None] = {}
        """Connections with a frame that is not whole, the one that has been arriving for longest first."""
        self.partial_bytes = 0
        """The bytes of incomplete frames."""
        self.is_accepting = False
        self.emptied: Callable[[], None] = _nothing
        """Called when the last connection is closed."""
        self.turns: FairTurns[ClientSession[Socket]] = FairTurns(
            now_us, lambda call: later(0, call), lambda: self.handler.congested
        )
        self._handler: Handler | None = None
        self._next_connection = 1

    @property
    def handler(self) -> Handler:
        """The handler of requests."""
        assert self._handler is not None, "the server is not started"
        return self._handler

    def start(self, handler: Handler) -> None:
        """Connections are taken from now on."""
        self._handler = handler
        self.is_accepting = True

    def admit(self, session: ClientSession[Socket]) -> int | None:
        """The number of a new connection, or None where there is no room for it."""
        if not self.is_accepting:
            return None
        if len(self.connections) >= self.terms.max_connections:
            oldest = self.strangers.oldest
            if oldest is None:
                return None
            self.complain(
                "many",
                "closed the connection from %(address)s, which sent no hello, to make room for new ones",
                address=oldest.socket.peer,
            )
            oldest.give_way()
        number = self._next_connection
        self._next_connection += 1
        self.connections[number] = session
        self.strangers.enter(session)
        self.handler.connected(number)
        return number

    def forget(self, session: ClientSession[Socket], number: int) -> None:
        """A connection is closed."""
        del self.connections[number]
        self.strangers.leave(session)
        self.held.pop(session, None)
        self.handler.disconnected(number)
        if not self.connections:
            self.emptied()

    def congestion_changed(self, congested: bool) -> None:
        """Continues reading where it was paused; pauses begin as bytes arrive."""
        if not congested:
            self.turns.go_on()
            held, self.held = self.held, {}
            for session in held:
                session.go_on()

    def stop(self) -> None:
        """Accepts no connections and no input; answers still leave."""
        self.is_accepting = False
        for session in self.connections.values():
            session.stop()


def _nothing() -> None:
    """Does nothing."""
