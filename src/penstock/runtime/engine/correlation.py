"""Assigns answers to questions, for many questions on one connection. Answers in, calls out; no sockets."""

from __future__ import annotations

import msgspec

from penstock.frontend.engine import Answered
from penstock.frontend.telling import tell
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.steps.step import Reply
from penstock.wire.credentials import Prove
from penstock.wire.frames import encode_frame
from penstock.wire.messages import Failed, Request, decode_answer
from penstock.wire.refusals import error_of
from penstock.wire.request_ids import RequestIds

_encode = msgspec.msgpack.Encoder().encode


class Correlation:
    """The unanswered questions of one connection. Every `done` is called exactly once."""

    def __init__(self, ids: RequestIds | None = None) -> None:
        self._waiting: dict[int, tuple[Answered, int]] = {}
        self._ids = ids if ids is not None else RequestIds()
        self.outstanding_bytes = 0
        """Of the bodies of questions without an answer."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, ticket: int) -> bool:
        return ticket in self._waiting

    def next_id(self) -> int:
        """A request id that is not in use; an answer to one that is not entered is ignored."""
        return self._ids.next(self._waiting)

    def enter(self, done: Answered, body_bytes: int = 0) -> int:
        """A question is asked; returns its request id."""
        ticket = self.next_id()
        self._waiting[ticket] = (done, body_bytes)
        self.outstanding_bytes += body_bytes
        return ticket

    def ask(self, request: Request | Prove, body: Buffer, done: Answered) -> tuple[int, list[Buffer]]:
        """A question's request id, and its frame to send. Raises where it cannot be encoded; then nothing was asked."""
        head = _encode(request)
        ticket = self.enter(done, len(body))
        return ticket, encode_frame(ticket, head, (body,) if len(body) else ())

    def successor(self) -> Correlation:
        """For the next connection: its tickets are none of this one's."""
        return Correlation(self._ids)

    def answered(self, request_id: int, head: Buffer, body: memoryview) -> None:
        """Calls back for one answer; raises `PenstockError` where it cannot be read, after telling who waits."""
        if request_id not in self._waiting:
            if request_id == 0:
                self._refused(head)
            return
        try:
            answer = decode_answer(head)  # type: ignore[arg-type]  # any buffer will do
        except msgspec.DecodeError as error:
            unreadable = PenstockError(ErrorCode.BAD_FRAME, f"an invalid answer: {error}")
            self._told(request_id, unreadable)
            raise unreadable from None
        self._told(request_id, error_of(answer) if isinstance(answer, Failed) else Reply(answer, body))

    def _told(self, request_id: int, outcome: Reply | PenstockError) -> None:
        waiting = self._waiting.pop(request_id, None)
        if waiting is not None:
            done, body_bytes = waiting
            self.outstanding_bytes -= body_bytes
            tell(done, outcome)

    def _refused(self, head: Buffer) -> None:
        """An error without a request concerns the connection, which then ends; the reason is logged."""
        try:
            answer = decode_answer(head)  # type: ignore[arg-type]  # any buffer will do
        except msgspec.DecodeError:
            return
        if isinstance(answer, Failed):
            raise error_of(answer)

    def lose(self, reason: str) -> None:
        """The connection is gone: everything outstanding fails, done or not."""
        waiting, self._waiting = self._waiting, {}
        self.outstanding_bytes = 0
        for done, _ in waiting.values():
            tell(done, unreachable(reason))


def unreachable(reason: str) -> PenstockError:
    """There is no engine to ask."""
    return PenstockError(ErrorCode.UNREACHABLE, f"the back end cannot be reached: {reason}")
