"""The steps: each is a value that says what is asked for, and what its outcome is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.wire.messages import Answer, Receipt, Request

Result = TypeVar("Result")

PATIENCE_MS = 8_000
"""How long a request waits for a partition to have a primary that serves, before the client is told to try again."""

ANYWHERE = 0
"""Not the id of a partition: the front end asks its engine, and the router any node."""


class Reply(NamedTuple):
    """The answer of a node, or the one made of several; never `Failed`."""

    answer: Answer
    body: Buffer = b""


Outcome = Reply | PenstockError


class Ask(msgspec.Struct, frozen=True):
    """A native request; its outcome is a `Reply`, or a `PenstockError` that is thrown in."""

    request: Request
    body: Buffer = b""
    partition: int = ANYWHERE
    """The partition whose leader is asked."""
    patience_ms: int = PATIENCE_MS
    give_back: GiveBack | None = None
    """What to ask for when an answer comes that no caller waits for any longer."""


GiveBack = Callable[[int, Reply], Ask | None]
"""Gives back what a partition has answered too late; None where there is nothing to give back."""


class AskAll(NamedTuple):
    """Several requests at the same time; the outcome is a list of their outcomes, in order, errors among them.

    In `turn`, where there is one: `out-of-order` is thrown in where a send that this one follows has failed.
    """

    asks: Sequence[Ask]
    turn: Turn | None = None


class AskFirst(NamedTuple):
    """Several requests at the same time, until one has something: (its place, its `Reply`), or None where none had.

    The wait of the others is ended; what arrives too late is given back, as each `Ask` says. Raises where all fail.
    """

    asks: Sequence[Ask]
    has_something: Callable[[Reply], bool]


class SendUnbound(msgspec.Struct, frozen=True):
    """Messages without delay, group, id or priority; they may travel with others of the same turn.

    All of them are stored or none is. The outcome is their sequence numbers in order, or a `PenstockError` that is
    thrown in.
    """

    queue_id: int
    bodies: Sequence[bytes]
    attributes: Sequence[bytes]
    """Of each message; empty = none."""


class DeleteTogether(msgspec.Struct, frozen=True):
    """Receipts of one queue to delete by; they may travel with others of the same turn.

    The outcome is a `Reply` with `Settled` for these receipts alone, or a `PenstockError` that is thrown in.
    """

    queue_id: int
    receipts: Sequence[Receipt]


class Look(NamedTuple):
    """A read of the store itself. The outcome is the `Stored` entry; what is kept in memory knows it then too."""

    key: str


class Stored(NamedTuple):
    """What stands under a key, and its version: ABSENT (0) and nothing where there is none."""

    value: bytes | None
    version: int


class Put(NamedTuple):
    """A write to the store; its outcome is the new version, or a `VersionConflictError` that is thrown in.

    What is kept in memory knows of the write before the outcome is known here, and after a conflict of the entry as
    it stands in the store. So a request that looks again sees what it lost against.
    """

    key: str
    value: bytes
    version: int | None = None
    """The version that the entry must have; None: any."""


class Remove(NamedTuple):
    """A removal from the store; its outcome is None, or a `VersionConflictError` that is thrown in."""

    key: str
    version: int | None = None


class Until(NamedTuple):
    """Waits until something holds of the layout; the outcome is whether it does, False after so long."""

    holds: Callable[[], bool]
    wait_ms: int


class Turn(Protocol):
    """The turn of one send among those of its producer."""

    def enter(self, entered: Callable[[bool], None]) -> None:
        """Calls back when all that came before have been sent or have failed. False: one that it follows has failed."""
        ...

    def leave(self) -> None:
        """It was sent."""
        ...

    def break_off(self) -> None:
        """A share of it has failed."""
        ...


StoreStep = Look | Put | Remove
Single = Ask | SendUnbound | DeleteTogether | StoreStep | Until
"""A step that asks for one thing."""
Step = Single | AskAll | AskFirst
Steps = Generator[Step, Any, Result]
