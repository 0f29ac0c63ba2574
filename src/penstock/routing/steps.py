"""What the router asks of the world while it works on a request, as values that it yields.

Routing a request is a generator: it yields a step, is sent the outcome (or has it thrown in), and returns the reply. So
the same code runs over sockets, in the simulation, and in tests without either.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.send_turns import Turn
from penstock.wire.messages import Answer, Request

Result = TypeVar("Result")
Given = TypeVar("Given", bound=Answer)

PATIENCE_MS = 8_000
"""How long a request waits for a partition to have a primary that serves, before the client is told to try again."""
GLANCE_MS = 1_000
"""The same for what had better be answered in part than late."""


class Reply(NamedTuple):
    """The answer of a node, or the one made of several; never `Failed`."""

    answer: Answer
    body: Buffer = b""


Outcome = Reply | PenstockError


class Ask(NamedTuple):
    """A request to whoever leads a partition; its outcome is a `Reply`, or a `PenstockError` that is thrown in."""

    partition: int
    request: Request
    body: Buffer = b""
    patience_ms: int = PATIENCE_MS


class AskAll(NamedTuple):
    """Several at the same time; the outcome is a list of their outcomes, in order, errors among them.

    In `turn`, where there is one: `out-of-order` is thrown in where a send that this one follows has failed.
    """

    asks: Sequence[Ask]
    turn: Turn | None = None


class AskFirst(NamedTuple):
    """Several at the same time, until one has something: (its place, its `Reply`), or None where none had.

    Those that still wait are ended; what arrives too late is given back. Raises where all fail.
    """

    asks: Sequence[Ask]
    has_something: Callable[[Reply], bool]
    give_back: Callable[[int, Reply], Ask]


class AskAnyNode(NamedTuple):
    """A request that every node can answer; its outcome is as for `Ask`."""

    request: Request


class Look(NamedTuple):
    """A look at the store itself; its outcome is what stands under the key, which the map knows then too."""

    key: str


class Stored(NamedTuple):
    """What stands under a key, and its version: ABSENT (0) and nothing where there is none."""

    value: bytes | None
    version: int


class Put(NamedTuple):
    """A write to the store; its outcome is the new version, or a `ConflictError` that is thrown in."""

    key: str
    value: bytes
    version: int


class Remove(NamedTuple):
    """A removal from the store on condition of the version; its outcome is None, or a `ConflictError`."""

    key: str
    version: int


class Until(NamedTuple):
    """Waits until something holds of the map; the outcome is whether it does, False after so long."""

    holds: Callable[[], bool]
    wait_ms: int


class ConflictError(Exception):
    """The entry is no longer the one that was read; the map knows what stands there now."""


Step = Ask | AskAll | AskFirst | AskAnyNode | Look | Put | Remove | Until
Steps = Generator[Step, Any, Result]


def ask(question: Ask | AskAnyNode, kind: type[Given]) -> Steps[tuple[Given, Buffer]]:
    """The answer to a question, which is of this kind, and its body."""
    reply: Reply = yield question
    return expected(reply, kind), reply.body


def ask_all(asks: Sequence[Ask], kind: type[Given], turn: Turn | None = None) -> Steps[list[Given]]:
    """The answers to all questions, asked in turn; raises where one has none."""
    outcomes: list[Outcome] = yield AskAll(asks, turn)
    return [expected(raised(outcome), kind) for outcome in outcomes]


def raised(outcome: Outcome) -> Reply:
    """The reply; raises what is none."""
    if isinstance(outcome, PenstockError):
        raise outcome
    return outcome


def expected(reply: Reply, kind: type[Given]) -> Given:
    """The answer, which is of this kind."""
    answer = reply.answer
    if not isinstance(answer, kind):
        raise PenstockError(
            ErrorCode.INTERNAL, f"a node answered with {type(answer).__name__}, not {kind.__name__}"
        )
    return answer
