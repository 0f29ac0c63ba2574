"""One request in the line of its partition, and the effects that the line requests (`partition_line.py`)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from penstock.cluster.layout.serving import Leader
from penstock.model.errors import PenstockError
from penstock.routing.attempts import WAITING, Attempts
from penstock.steps.step import Ask, Outcome
from penstock.wire.messages import Request, Send

Done = Callable[[Outcome], None]


class State(Enum):
    """The state of a request."""

    NEW = "new"
    WAITS = "waits"
    UNDER_WAY = "under way"
    ENDED = "ended"


class Call(Attempts):
    """One request, from its arrival to its end."""

    __slots__ = (
        "after",
        "ask",
        "attempt",
        "before",
        "behind",
        "broken",
        "cancelled",
        "done",
        "give_up",
        "is_send",
        "last_refusal",
        "leader",
        "number",
        "place",
        "producer",
        "reason",
        "refused",
        "retry_at",
        "serial",
        "state",
        "ticket",
        "wait_end",
        "waits_for_before",
        "wire",
    )

    def __init__(self, ask: Ask, done: Done, now: float) -> None:
        super().__init__()
        self.ask = ask
        self.done = done
        self.ticket: Any = None
        """Of the runner of the line: how to cancel the last attempt."""
        self.state = State.NEW
        self.attempt = 0
        self.place = 0
        """Its place among all requests that were ever in the line."""
        self.serial = 0
        """The place of its last attempt among all attempts."""
        self.give_up = float("inf")
        """When it times out; it has no timeout while there is no problem."""
        self.leader: Leader | None = None
        """The node that was asked last."""
        self.wire = 0
        """Over which of the connections to its address."""
        self.reason = ""
        self.last_refusal: PenstockError | None = None
        """The node's last answer, if it is more specific than "no node can be asked"."""
        self.refused = 0
        """How often in a row the same leader did not take it."""
        self.retry_at = 0.0
        self.before: Call | None = None
        self.behind: Call | None = None
        """Of a send: the sends of the same producer in the line before and after it, by their numbers."""
        self.waits_for_before = False
        """Whether the node wants the send before it first."""
        self.broken = False
        """Whether a send before it, which it follows, was refused: it must not be stored before their client knows that."""
        request = ask.request
        self.is_send = isinstance(request, Send)
        self.producer, self.number, self.after = (
            (request.producer, request.number, request.after) if isinstance(request, Send) else (0, 0, 0)
        )
        self.cancelled = False
        """Whether its client has stopped waiting: then it is not sent again."""
        self.wait_end = now + request.wait_ms / 1000 if isinstance(request, WAITING) else 0.0

    def follows(self) -> int:
        """The number of the batch that it must be stored after: the last before it that is unanswered; 0: none."""
        before = self.predecessor() if self.after else None
        return before.number if before is not None else 0

    def predecessor(self) -> Call | None:
        """The send after which it must be stored: the last earlier one of its producer with a lower number.

        A later send with a lower number is a copy, sent over another connection, of a batch that has its answer.
        """
        before = self.before
        while before is not None and (before.number >= self.number or before.place > self.place):
            before = before.before
        return before

    @property
    def route(self) -> Route:
        """The node asked last, and the connection to its address."""
        return self.leader, self.wire


Route = tuple[Leader | None, int]


class Transmit(NamedTuple):
    """Write the request to the connection to the leader; report its answer, or its loss, with `attempt`."""

    call: Call
    attempt: int
    leader: Leader
    request: Request


class Cancel(NamedTuple):
    """Tell the node that the request need not wait any longer."""

    call: Call


class Finish(NamedTuple):
    """Report the outcome to the caller."""

    call: Call
    outcome: Outcome


class LookUp(NamedTuple):
    """Refresh a key of the map from the store; then call `looked_up`, also if the store does not answer."""

    partition: int
    key: str


Effect = Transmit | Cancel | Finish | LookUp
