"""Which metadata servers a request is sent to, one after the other, how long each may take, and when the search ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

SHORTEST_SHARE_SECONDS = 1.0
PAUSE_SECONDS = 0.05
"""Between two rounds through all servers, none of which could answer."""
MAP_PAUSE_SECONDS = 1.0
"""How long the list of servers is left alone after it could not be followed."""


class Failure(Enum):
    """Why a server has not answered."""

    NOT_DONE = "certainly nothing was done"
    STRANGER = "it does not trust this process, or this process does not trust it"
    PERHAPS_DONE = "the outcome is unknown"
    WITHOUT_STORE = "it is there and its store is not"


class Try(NamedTuple):
    """Ask this server next, for so long."""

    address: str
    seconds: float


class Rest(NamedTuple):
    """Wait for so long."""

    seconds: float


class End(Enum):
    """The search has ended, for this reason."""

    OUT_OF_TIME = "no server answered in time"
    REFUSED = "all servers refuse this process, and always will"
    NO_STORE = "all servers are there and none has its store"
    UNCERTAIN = "the outcome is unknown, and it must not be done twice"


Move = Try | Rest | End


class ServerSearch:
    """The search for one server that answers a request. It takes about `seconds`."""

    def __init__(self, seconds: float, now: float, *, again: bool, first: bool = False) -> None:
        """`again`: the request may be repeated. `first`: no server was asked before."""
        self._seconds = seconds
        self._deadline = now + seconds
        self.again = again
        self._first = first
        self._round: Sequence[str] = ()
        self._left: deque[str] = deque()
        """Those of the round that were not asked yet."""
        self._failures: dict[str, Failure] = {}
        self._end: End | None = None

    def next(self, now: float, order: Callable[[], Sequence[str]]) -> Move:
        """The next action; `order` is the order of servers for a new round."""
        if not self._left and self._end is None:
            if self._round:
                return self._after_round(now)
            self._round = order()
            self._left.extend(self._round)
        left = self._deadline - now
        if self._end is None and left <= 0:
            self._end = End.OUT_OF_TIME
        if self._end is not None:
            return self._end
        # A request that may be repeated leaves time to ask the others too.
        share = max(self._seconds / len(self._round), SHORTEST_SHARE_SECONDS) if self.again else left
        return Try(self._left.popleft(), min(share, left))

    def failed(self, address: str, failure: Failure) -> None:
        """A server has not answered."""
        self._failures[address] = failure
        if not self.again and failure is Failure.PERHAPS_DONE:
            self._end = End.UNCERTAIN
        elif not self.again and failure is Failure.WITHOUT_STORE:
            self._end = End.NO_STORE

    def _after_round(self, now: float) -> Move:
        failures = {self._failures.get(address) for address in self._round}
        self._round = ()
        if self.again and self._first and failures == {Failure.STRANGER}:
            self._end = End.REFUSED
        elif self.again and failures == {Failure.WITHOUT_STORE}:
            self._end = End.NO_STORE  # waiting longer is the caller's to decide
        if self._end is not None:
            return self._end
        return Rest(min(PAUSE_SECONDS, max(self._deadline - now, 0)))
