"""Requests that wait for an answer: how each kind takes its answer, its failure, and a broken connection."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.client.backoff import Slowdown
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Answer, Delivery, Subscribe

T = TypeVar("T")
A = TypeVar("A")


class Call(ABC):
    """One request and its one answer."""

    __slots__ = ("deadline", "frame", "resend", "resent", "slowdown")

    def __init__(self, *, resend: bool = True) -> None:
        self.frame: list[Buffer] = []
        self.resend = resend
        """Whether it may be sent again when the connection broke before the answer."""
        self.resent = 0
        """How often it was: then the server may have carried it out before."""
        self.deadline: float | None = None
        """While there is no connection: when to give up."""
        self.slowdown: Slowdown | None = None
        """Since a limit refused it."""

    @abstractmethod
    def succeed(self, answer: Answer, body: memoryview) -> None:
        """The answer came."""

    @abstractmethod
    def fail(self, error: PenstockError) -> None:
        """The server refused, or could not be reached."""

    def abandoned(self) -> bool:
        """Whether nobody waits for the answer any more, so that it need not be asked again."""
        return False


class FutureCall(Call, Generic[T]):
    """A call that resolves a future, straight from the bytes that arrived."""

    __slots__ = ("convert", "future", "unclaimed")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        convert: Callable[[FutureCall[T], Answer, memoryview], T],
        *,
        resend: bool = True,
        unclaimed: Callable[[T], None] | None = None,
    ) -> None:
        super().__init__(resend=resend)
        self.future: asyncio.Future[T] = loop.create_future()
        self.convert = convert
        self.unclaimed = unclaimed
        """Takes the result when the waiting task was cancelled."""

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """Resolves the future with the converted answer."""
        try:
            result = self.convert(self, answer, body)
        except PenstockError as error:
            self.fail(error)
            return
        if not self.future.done():
            self.future.set_result(result)
        elif self.unclaimed is not None:
            self.unclaimed(result)

    def fail(self, error: PenstockError) -> None:
        """Resolves the future with the error."""
        if not self.future.done():
            self.future.set_exception(error)

    def abandoned(self) -> bool:
        """Whether the waiting task was cancelled."""
        return self.future.cancelled()


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
        """What to ask for on a new connection, given what has arrived so far."""

    @abstractmethod
    def delivered(self, delivery: Delivery, body: memoryview) -> None:
        """Messages arrived."""

    @abstractmethod
    def failed(self, error: PenstockError) -> None:
        """The server ended it, or could not be reached; nothing follows."""


def expecting(kind: type[A]) -> Callable[[FutureCall[A], Answer, memoryview], A]:
    """A converter that takes the answer as it is, if it is of the kind that the request asks for."""

    def convert(_call: FutureCall[A], answer: Answer, _body: memoryview) -> A:
        if isinstance(answer, kind):
            return answer
        raise unexpected(answer)

    return convert


def unexpected(answer: Answer) -> PenstockError:
    """The server answered with something that does not answer the request."""
    return PenstockError(
        ErrorCode.INTERNAL,
        f"the server answered with {type(answer).__name__}, which does not answer the request",
    )
