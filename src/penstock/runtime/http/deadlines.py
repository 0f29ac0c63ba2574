"""The deadlines of all connections: one table for each kind of wait, in order of time, checked by one timer.

A request that arrives in one piece and is answered moves nothing here: its connection stays among the idle ones and only
notes the time. So `idle` is checked more often than its limit, and leaves busy connections alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from penstock.runtime.http.answers import Refusal
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.native.bad_connections import BadConnections

LOOKS_AT_IDLE = 4
"""How often an idle connection is checked before it is closed: it may live a quarter longer than its limit."""


class TimedConnection(Protocol):
    """A connection, as far as its deadlines know it."""

    table: Waiting | None
    """The table in which it waits."""
    gone: bool
    closing: bool
    unread_bytes: int
    """The bytes that its client had not read at the last check."""

    @property
    def address(self) -> str: ...
    @property
    def begun(self) -> bool: ...
    @property
    def late_in_reading(self) -> bool: ...
    @property
    def late_in_sending(self) -> bool: ...
    @property
    def in_head(self) -> bool: ...
    @property
    def used_at(self) -> float: ...
    def measure_unread(self) -> int: ...
    def refuse(self, refusal: Refusal) -> None: ...
    def finish(self, *, linger: bool) -> None: ...
    def abort(self) -> None: ...


class Waiting:
    """Connections with the same kind and length of wait, so that the first one is due first."""

    __slots__ = ("_deadlines", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadlines: dict[TimedConnection, float] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def start(self, waiter: TimedConnection, now: float) -> None:
        """Waits from now on, whether or not it did before."""
        self._deadlines.pop(waiter, None)
        self._deadlines[waiter] = now + self.seconds

    def stop(self, waiter: TimedConnection) -> None:
        """Waits no more."""
        self._deadlines.pop(waiter, None)

    def take_due(self, now: float) -> list[TimedConnection]:
        """Those whose time is over; they wait no more."""
        due = []
        for waiter, deadline in self._deadlines.items():
            if deadline > now:
                break
            due.append(waiter)
        for waiter in due:
            del self._deadlines[waiter]
        return due


class Deadlines:
    """The connections of a server by the kind of wait."""

    def __init__(self, limits: HttpLimits, bad: BadConnections) -> None:
        self._limits = limits
        self._bad = bad
        self.idle: Waiting = Waiting(limits.idle_seconds / LOOKS_AT_IDLE)
        self._heads: Waiting = Waiting(limits.head_seconds)
        # A connection comes here from `_heads` when the time for its head is over, so that both tables stay in
        # the order of their deadlines.
        self._bodies: Waiting = Waiting(max(0.0, limits.request_seconds - limits.head_seconds))
        self._stalled: Waiting = Waiting(limits.stalled_seconds)
        self._lingering: Waiting = Waiting(limits.linger_seconds)
        self.now: Callable[[], float] = time.monotonic
        self.swept_at = 0.0
        """The time of the last look, which is good enough to tell who was busy."""

    # -- called by connections -------------------------------------------------------------------------------

    def settle(self, connection: TimedConnection) -> None:
        """Finds out what a connection waits for, after anything but a whole request and its answer."""
        table = connection.table
        if table is self._lingering:
            return
        if connection.gone:
            self.forget(connection)
        elif connection.closing or connection.late_in_reading:
            if table is not self._stalled:
                connection.unread_bytes = connection.measure_unread()
                self._wait(connection, self._stalled)
        elif connection.late_in_sending:
            if table is not self._heads and table is not self._bodies:
                self._wait(connection, self._heads)
        elif table is not self.idle:
            self._wait(connection, self.idle)

    def next_arrives(self, connection: TimedConnection) -> None:
        """A request is whole and the next has begun: it has a time of its own."""
        if connection.table is self._heads or connection.table is self._bodies:
            self._wait(connection, self._heads)

    def linger(self, connection: TimedConnection) -> None:
        """The client is told to go, and may go on sending for a while."""
        self._wait(connection, self._lingering)

    def forget(self, connection: TimedConnection) -> None:
        """The connection is closed."""
        if connection.table is not None:
            connection.table.stop(connection)
            connection.table = None

    def _wait(self, connection: TimedConnection, table: Waiting) -> None:
        if connection.table is not None:
            connection.table.stop(connection)
        connection.table = table
        table.start(connection, self.now())

    # -- called by the timer ---------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Checks all connections whose time is over."""
        now = self.swept_at = self.now()
        for table in (self.idle, self._heads, self._bodies, self._stalled, self._lingering):
            for connection in table.take_due(now):
                if connection.table is table:  # else closed by the turn of another
                    connection.table = None
                    self._overdue(connection, table, now)

    def _overdue(self, connection: TimedConnection, table: Waiting, now: float) -> None:
        limits = self._limits
        if table is self.idle:
            if connection.begun or now - connection.used_at < limits.idle_seconds:
                self._wait(connection, self.idle)
            else:
                connection.finish(linger=False)
        elif table is self._lingering:
            connection.abort()
        elif table is self._stalled:
            self._look_at_stalled(connection)
        elif table is self._bodies:
            connection.refuse(
                Refusal(408, f"The request did not arrive within {limits.request_seconds:g} s.")
            )
        elif connection.in_head:
            connection.refuse(Refusal(408, f"The headers did not arrive within {limits.head_seconds:g} s."))
        else:
            self._wait(connection, self._bodies)

    def _look_at_stalled(self, connection: TimedConnection) -> None:
        """Disconnects a client that has read nothing since it was looked at last."""
        unread_bytes = connection.measure_unread()
        if 0 < unread_bytes < connection.unread_bytes:
            connection.unread_bytes = unread_bytes
            self._wait(connection, self._stalled)
            return
        if unread_bytes:
            self._bad.tell(
                "unread",
                "closed the connection from %(address)s: it left %(unread_bytes)d bytes unread",
                address=connection.address,
                unread_bytes=unread_bytes,
            )
        connection.abort()
