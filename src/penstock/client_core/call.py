"""Requests that wait for an answer, and subscriptions: the interface that the link needs of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from penstock.client_core.backoff import Slowdown
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Answer, Delivery, Request, Subscribe

THROTTLED = frozenset({ErrorCode.THROTTLED})


class Unanswered(PenstockError):
    """The link gives a request up: no server has answered it. A front end that reports this about a node uses another text."""

    def __init__(self, why: str) -> None:
        super().__init__(ErrorCode.UNREACHABLE, f"{why}. The request may or may not have been carried out")


class Call(ABC):
    """One request and its one answer."""

    __slots__ = ("body", "deadline", "message", "resend", "resent", "slowdown")

    waits_out: frozenset[ErrorCode] = THROTTLED
    """Refusals after which the same is asked again, after a pause: nothing was done."""

    def __init__(self, *, resend: bool = True) -> None:
        self.message: Request | None = None
        self.body: Sequence[Buffer] = ()
        self.resend = resend
        """Whether it may be sent again when the connection broke before the answer."""
        self.resent = 0
        """How often it was: then the server may have carried it out before."""
        self.deadline: float | None = None
        """While there is no connection: when to give up."""
        self.slowdown: Slowdown | None = None
        """Since it was refused so."""

    def request(self) -> Request:
        """The request to send, now or again."""
        assert self.message is not None  # a call is given its message when it is started
        return self.message

    def writes(self, clock: float) -> None:  # noqa: B027  # most calls may be asked again however late
        """It is written to a connection, for the first time or again, when the computer's clock shows this (in seconds)."""

    def has_outlived(self, clock: float) -> bool:
        """Whether it must not be asked again: a server may have forgotten by now that it carried it out."""
        return False

    @abstractmethod
    def succeed(self, answer: Answer, body: memoryview) -> None:
        """The answer came."""

    @abstractmethod
    def fail(self, error: PenstockError) -> None:
        """The server refused, or could not be reached."""

    def cut_off(self, error: PenstockError) -> None:
        """The link has ended, or can never be made: no answer will come."""
        self.fail(error)

    def abandoned(self) -> bool:
        """Whether the caller no longer waits, so that the request need not be sent again."""
        return False

    def dropped(self) -> None:  # noqa: B027  # most calls leave nothing behind
        """It was abandoned, and is forgotten without an answer."""


class Stream(ABC):
    """A subscription: one request, any number of deliveries, opened again on every new connection."""

    __slots__ = ("deadline", "request_id", "slowdown")

    def __init__(self) -> None:
        self.request_id = 0
        self.slowdown: Slowdown | None = None
        """Since a limit refused it."""
        self.deadline: float | None = None

    @abstractmethod
    def opening(self) -> Subscribe:
        """The request for a new connection, given what has arrived so far."""

    @abstractmethod
    def delivered(self, delivery: Delivery, body: memoryview) -> None:
        """Messages arrived."""

    @abstractmethod
    def failed(self, error: PenstockError) -> None:
        """The server ended it, or could not be reached; nothing follows."""


def unexpected(answer: Answer) -> PenstockError:
    """The server answered with something that does not answer the request."""
    return PenstockError(
        ErrorCode.INTERNAL,
        f"the server answered with {type(answer).__name__}, which does not answer the request",
    )
