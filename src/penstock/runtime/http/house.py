"""What all connections of a server share: its handler, its limits, and how much room is left."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from penstock.runtime.http.answers import plain_refusal
from penstock.runtime.http.deadlines import Deadlines, Waiter
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.http.refusal import Refusal
from penstock.sqs.http import HttpRequest, HttpResponse, Peer

log = logging.getLogger(__name__)

REFUSED_CONNECTIONS = 256
"""So many connections beyond the limit are told why they are refused; further ones are just closed."""
OVERLOADED = "The server holds as many requests as it can; try again in a moment."

Handler = Callable[[HttpRequest, Peer, Callable[[HttpResponse], None]], Callable[[], None] | None]
"""Handles a request: calls the third argument once, at once or later, and returns how to cancel it or None.

The cancel is called when the client goes away before the answer; whatever is replied after that is ignored.
"""
Refuse = Callable[[int, str], HttpResponse]
"""Makes the answer for a status and a sentence where the request never reaches the handler."""


class Guest(Waiter, Protocol):
    """A connection, as far as its server knows it."""

    def go_on(self) -> None: ...
    def wind_down(self) -> None: ...


class House:
    """Where connections come and go."""

    def __init__(self, handler: Handler, limits: HttpLimits, refuse: Refuse | None) -> None:
        self.handler = handler
        self.limits = limits
        self._refuse = refuse
        self.deadlines = Deadlines(limits)
        self.connections: set[Guest] = set()
        self.held: set[Guest] = set()
        """Connections with requests that wait until the server is held no more."""
        self.holding = False
        self.stopping = False
        self.buffered_bytes = 0
        self.date_line = ""

    def admit(self, connection: Guest) -> Refusal | None:
        """Counts a new connection; the refusal where there is no room for it."""
        open_connections = len(self.connections)
        if open_connections >= self.limits.max_connections + REFUSED_CONNECTIONS:
            connection.abort()
            return None
        self.connections.add(connection)
        if self.stopping:
            return Refusal(503, "This server is stopping.")
        if open_connections < self.limits.max_connections:
            return None
        log.warning("refused a connection: %d are open", open_connections)
        return Refusal(
            503, f"This server takes {self.limits.max_connections} connections and has no room for another."
        )

    def forget(self, connection: Guest) -> None:
        """A connection is closed."""
        self.deadlines.forget(connection)
        self.connections.discard(connection)
        self.held.discard(connection)

    def refusal(self, status: int, sentence: str) -> HttpResponse:
        """The answer to a request that the handler does not see."""
        if self._refuse is not None:
            try:
                return self._refuse(status, sentence)
            except Exception:
                log.exception("a refusal could not be dressed")
        return plain_refusal(status, sentence)
