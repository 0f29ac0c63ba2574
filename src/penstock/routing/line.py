"""The line of one partition: all its requests that have not ended, in the order of arrival."""

from __future__ import annotations

from collections import deque

from penstock.cluster.layout.serving import Leader
from penstock.routing.attempts import NOT_TWICE
from penstock.routing.line_call import Call, Route, State

NEVER = float("inf")


class Line:
    """The requests that wait, and the ones in transit."""

    __slots__ = (
        "_entered",
        "_mixed",
        "_tails",
        "abandons",
        "calls",
        "parked",
        "parked_sends",
        "partition",
        "pushed_at",
        "routes",
        "wake_at",
    )

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.calls: dict[Call, None] = {}
        self._entered = 0
        self.parked = 0
        """How many wait."""
        self.parked_sends = 0
        self.routes: dict[Route, int] = {}
        """How many sends are under way to whom."""
        self.wake_at = NEVER
        self.pushed_at = NEVER
        """For when a timer was asked for."""
        self.abandons: deque[tuple[float, Leader]] = deque()
        """(when, leader): from when on answers of the leaders before this one are no longer waited for."""
        self._tails: dict[int, Call] = {}
        """By producer: its send with the highest number."""
        self._mixed: set[int] = set()
        """Producers whose sends did not arrive in the order of their numbers, each once."""

    def enter(self, call: Call) -> None:
        """A request joins at the end."""
        self.calls[call] = None
        self._entered += 1
        call.place = self._entered
        if not call.producer:
            return
        before, behind = self._tails.get(call.producer), None
        while before is not None and before.number > call.number:  # one that was refused is sent again
            before, behind = before.before, before
        call.before, call.behind = before, behind
        if before is not None:
            before.behind = call
        if behind is not None:
            behind.before = call
        else:
            self._tails[call.producer] = call
        if behind is not None or (before is not None and before.number == call.number):
            self._mixed.add(call.producer)

    def followers(self, call: Call) -> list[Call]:
        """The sends that must not be stored without this one: the next of its producer, and earlier ones of which it is a
        copy.
        """
        found: list[Call] = []
        behind = call.behind
        while behind is not None:
            if behind.after and (behind.before is call or behind.predecessor() is call):
                found.append(behind)
            # In order, each send follows the one before it; checking all of them would be slow if many wait.
            behind = behind.behind if call.producer in self._mixed else None
        return found

    def parks(self, call: Call) -> None:
        """It waits, at its place."""
        self.landed(call)
        call.state = State.WAITS
        self.parked += 1
        self.parked_sends += call.is_send

    def flies(self, call: Call) -> None:
        """It is under way, on the route that it says."""
        self.landed(call)
        call.state = State.UNDER_WAY
        if call.is_send:
            self.routes[call.route] = self.routes.get(call.route, 0) + 1

    def landed(self, call: Call) -> None:
        """It is neither under way nor waiting."""
        if call.state is State.UNDER_WAY and call.is_send:
            self.routes[call.route] -= 1
            if not self.routes[call.route]:
                del self.routes[call.route]
        elif call.state is State.WAITS:
            self.parked -= 1
            self.parked_sends -= call.is_send
        call.state = State.NEW

    def leave(self, call: Call) -> None:
        """It has ended."""
        self.landed(call)
        call.state = State.ENDED
        del self.calls[call]
        before, behind = call.before, call.behind
        if behind is not None:
            behind.before = before
        elif call.producer and before is not None:
            self._tails[call.producer] = before
        elif call.producer:
            del self._tails[call.producer]
            self._mixed.discard(call.producer)
        if before is not None:
            before.behind = behind
        call.before = call.behind = None

    def holds_back(self, route: Route) -> bool:
        """Whether a send that comes now has to wait for others."""
        if self.parked_sends:
            return True
        return bool(self.routes) and (len(self.routes) > 1 or route not in self.routes)

    def asked_before(self, leader: Leader) -> list[Call]:
        """Requests to an earlier leader that are unanswered and may be sent to another."""
        return [
            call
            for call in self.calls
            if call.state is State.UNDER_WAY
            and call.leader is not None
            and call.leader.was_before(leader)
            and not isinstance(call.ask.request, NOT_TWICE)
        ]

    def next_at(self) -> float:
        """When there is something to do."""
        return min(self.wake_at, self.abandons[0][0]) if self.abandons else self.wake_at
