"""Requests whose answer resolves a future."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.client_core.call import Call, unexpected
from penstock.model.errors import PenstockError
from penstock.wire.messages import Answer

T = TypeVar("T")
A = TypeVar("A")


class FutureCall(Call, Generic[T]):
    """A call that resolves a future, directly from the received bytes."""

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


def expecting(kind: type[A]) -> Callable[[FutureCall[A], Answer, memoryview], A]:
    """A converter that takes the answer as it is, if it is of the kind that the request asks for."""

    def convert(_call: FutureCall[A], answer: Answer, _body: memoryview) -> A:
        if isinstance(answer, kind):
            return answer
        raise unexpected(answer)

    return convert
