"""The interface of the engine for the front end, wherever the engine runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.steps.step import Reply
from penstock.wire.messages import Request

Answered = Callable[[Reply | PenstockError], None]


class EngineLink(Protocol):
    """A link to the engine that many requests share."""

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        """Sends a native request; `done` is called once, later, never from within. Returns a ticket.

        `stands_for` so many requests of clients: whether one is alone decides how it is written to disk.
        """
        ...

    def cancel(self, ticket: int) -> None:
        """A receive that waits need not wait any longer; its `done` is still called."""
        ...
