"""Which client is served next, and when a turn of the event loop is over.

Requests of all clients are handled by one thread. A client that sends many of them at once, or expensive ones, must not hold up the
others. So a turn has a budget, and who waits is served in the order of the time that was spent on each: the client that
has used least comes first (start-time fair queueing). An idle server remembers nothing of it: what a client used
while no other waited is not held against it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

TURN_US = 5_000
"""So long requests are handled before the event loop looks at sockets, flushes and timers again."""
QUANTUM_US = 1_000
"""So long a client is served before the next one, if its requests are short."""
NOTED_US = 1_000
"""Less than this is carried over to the next turn without a look: asking for one costs 0.3 µs."""


class Line(Protocol):
    """The requests of one client, in their order."""

    used_us: int
    """The time that it has used, on the clock of `FairTurns`."""
    is_in_line: bool
    """Whether `FairTurns` knows that it waits."""

    def serve(self, count: int) -> bool:
        """Handles up to so many requests; returns whether further ones can be handled now."""
        ...


AnyLine = TypeVar("AnyLine", bound=Line)


class FairTurns(Generic[AnyLine]):
    """Serves lines: each by its turn, within the budget of a turn of the event loop."""

    def __init__(
        self,
        now_us: Callable[[], int],
        soon: Callable[[Callable[[], None]], object],
        is_held: Callable[[], bool],
    ) -> None:
        """`soon` calls in the next turn; `is_held`: nothing is to be begun for the moment."""
        self.now_us = now_us
        self._soon = soon
        self._is_held = is_held
        self._waiting: list[tuple[int, int, AnyLine]] = []
        """A heap: time used when it came, which came first, the line."""
        self._came = 0
        self._clock_us = 0
        """The time that the line has used which is served, or was served last."""
        self._spent_us = 0
        """In this turn."""
        self._is_serving = False
        self._is_asked = False

    @property
    def has_room(self) -> bool:
        """Whether a request may be handled at once: nothing waits, and the turn is not over."""
        return not self._waiting and self._spent_us < TURN_US and not self._is_serving

    def spent(self, took_us: int) -> None:
        """A request was handled at once."""
        self._spent_us += took_us
        if self._spent_us > NOTED_US:
            self._ask()

    def enter(self, line: AnyLine) -> None:
        """A line has requests that wait."""
        if line.is_in_line:
            return
        self._wait(line)
        if not self._is_serving:
            if self._spent_us < TURN_US:
                self._serve()
            else:
                self._ask()

    def go_on(self) -> None:
        """Nothing is held up any more."""
        if self._waiting:
            self._ask()

    def _wait(self, line: AnyLine) -> None:
        line.is_in_line = True
        line.used_us = max(line.used_us, self._clock_us)
        self._came += 1
        heappush(self._waiting, (line.used_us, self._came, line))

    def _ask(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_asked = False
        self._spent_us = 0
        self._serve()

    def _serve(self) -> None:
        self._is_serving = True
        try:
            while self._waiting and self._spent_us < TURN_US and not self._is_held():
                self._clock_us, _, line = heappop(self._waiting)
                line.is_in_line = False
                if self._serve_line(line):
                    self._wait(line)
                elif not self._waiting:
                    self._clock_us = line.used_us  # nothing waits: nothing is held against this one
        finally:  # also where a handler fails: the others still have their turn
            self._is_serving = False
            if self._waiting:
                if not self._is_held():
                    self._ask()
            elif self._spent_us > NOTED_US:
                self._ask()

    def _serve_line(self, line: AnyLine) -> bool:
        """Serves one line for a quantum; returns whether it has more."""
        count, used_us, goes_on = 1, 0, True
        while goes_on and used_us < QUANTUM_US and self._spent_us < TURN_US and not self._is_held():
            began_us = self.now_us()
            goes_on = line.serve(count)
            took_us = self.now_us() - began_us
            used_us += took_us
            self._spent_us += took_us
            # The clock is not read for each of many short requests; a long one is followed by a look.
            count = 2 * count if 4 * took_us < QUANTUM_US else 1
        line.used_us = self._clock_us + used_us
        return goes_on
