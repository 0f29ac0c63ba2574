"""Common parts of processing a request: steps with outcomes of a known kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.steps.step import Ask, AskAll, Outcome, Put, Remove, Reply, Steps, Turn
from penstock.wire.messages import Answer, Delivery, Receipt, Release, Request

Given = TypeVar("Given", bound=Answer)


def ask(request: Request, kind: type[Given], body: Buffer = b"") -> Steps[Given]:
    """The answer of the engine to a request, which is of this kind."""
    reply: Reply = yield Ask(request, body)
    return expected(reply, kind)


def answer_to(question: Ask, kind: type[Given]) -> Steps[tuple[Given, Buffer]]:
    """The answer to a question, which is of this kind, and its body."""
    reply: Reply = yield question
    return expected(reply, kind), reply.body


def ask_all(asks: Sequence[Ask], kind: type[Given], turn: Turn | None = None) -> Steps[list[Given]]:
    """The answers to all requests, asked in turn; raises where one has none."""
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
        raise wrong_answer(answer, kind)
    return answer


def wrong_answer(answer: object, kind: type[object]) -> PenstockError:
    """The engine may be another process, and of another version: its answers can be of a kind that was not asked for."""
    return PenstockError(
        ErrorCode.INTERNAL, f"the engine answered with {type(answer).__name__}, not {kind.__name__}"
    )


def put(key: str, value: bytes, version: int | None = None) -> Steps[int]:
    """Writes to the store; the new version."""
    new_version: int = yield Put(key, value, version)
    return new_version


def remove(key: str, version: int | None = None) -> Steps[None]:
    """Removes from the store."""
    yield Remove(key, version)


def has_messages(reply: Reply) -> bool:
    """Whether there is anything in a delivery."""
    return isinstance(reply.answer, Delivery) and bool(reply.answer.batches)


def give_back(partition: int, reply: Reply) -> Ask | None:
    """Messages that came too late are ready again at once, as if they had never been received."""
    given = reply.answer
    if not isinstance(given, Delivery) or not given.batches:
        return None
    runs = [(batch.first, batch.count) for batch in given.batches]
    return Ask(Release([Receipt(given.token, runs)], unreceived=True), b"", partition)
