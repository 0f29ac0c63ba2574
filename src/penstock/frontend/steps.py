"""What an action asks of the world while it runs, as values that it yields.

An action is a generator: it yields a step, is sent the outcome (or has it thrown in), and returns its result.
So the same code runs over a real engine, over TCP, and in tests without either.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from penstock.metadata.store.interface import StoreUnavailableError
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Answer, Receipt, Request

Result = TypeVar("Result")
Given = TypeVar("Given", bound=Answer)


class Ask(msgspec.Struct, frozen=True):
    """A native request; its outcome is a `Reply`, or a `PenstockError` that is thrown in."""

    request: Request
    body: Buffer = b""


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


class Reply(NamedTuple):
    """The engine's answer, never `Failed`."""

    answer: Answer
    body: memoryview


class PutEntry(NamedTuple):
    """A write of metadata; its outcome is the new version, or a `VersionConflictError` that is thrown in.

    Whoever carries it out has told the cache before the outcome is known here: of the write, or, after a conflict,
    of the entry as it stands in the store. So an action that looks again sees what it lost against.
    """

    key: str
    value: bytes
    version: int | None = None


class DeleteEntry(NamedTuple):
    """A removal of metadata; its outcome is None, or a `VersionConflictError` that is thrown in."""

    key: str
    version: int | None = None


class RefreshEntry(NamedTuple):
    """A look at the store itself: afterwards the cache knows what stands there. Its outcome is None."""

    key: str


MetadataStep = PutEntry | DeleteEntry | RefreshEntry
Step = Ask | SendUnbound | DeleteTogether | MetadataStep
Steps = Generator[Step, Any, Result]


def ask(request: Request, kind: type[Given], body: Buffer = b"") -> Steps[Given]:
    """The answer to a native request, which is of this kind."""
    reply: Reply = yield Ask(request, body)
    if not isinstance(reply.answer, kind):
        raise wrong_answer(reply.answer, kind)
    return reply.answer


def wrong_answer(answer: object, expected: type[object]) -> PenstockError:
    """The engine may be another process, and of another version: what it answers is not ours to promise."""
    return PenstockError(
        ErrorCode.INTERNAL, f"the engine answered with {type(answer).__name__}, not {expected.__name__}"
    )


def put(key: str, value: bytes, version: int | None = None) -> Steps[int]:
    """Writes metadata; the new version."""
    new_version: int = yield PutEntry(key, value, version)
    return new_version


def refresh(key: str) -> Steps[None]:
    """Sees to it that the cache knows what stands under a key, as far as the store can be reached."""
    try:
        yield RefreshEntry(key)
    except StoreUnavailableError:
        pass  # what is known has to do


def delete(key: str, version: int | None = None) -> Steps[None]:
    """Removes metadata."""
    yield DeleteEntry(key, version)
