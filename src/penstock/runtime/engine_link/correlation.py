"""Which answer belongs to which question, for many questions on one connection. Bytes in, calls out; no sockets."""

from __future__ import annotations

import msgspec

from penstock.frontend.engine import Answered
from penstock.frontend.steps import Reply
from penstock.frontend.telling import tell
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.credentials import Prove
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.messages import Failed, Request, decode_answer

LARGEST_ID = 0xFFFF_FFFF
_encode = msgspec.msgpack.Encoder().encode


class Correlation:
    """The questions of one connection that have no answer yet. Every `done` is called exactly once."""

    def __init__(self, last_id: int = 0) -> None:
        self._waiting: dict[int, tuple[Answered, int]] = {}
        self._last_id = last_id
        self._reader = FrameReader()
        self.outstanding_bytes = 0
        """Of the bodies of questions without an answer."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, ticket: int) -> bool:
        return ticket in self._waiting

    def next_id(self) -> int:
        """A request id that is not in use; an answer to one that is not entered is ignored."""
        number = self._last_id + 1
        while number in self._waiting or number > LARGEST_ID:
            number = number + 1 if number < LARGEST_ID else 1
        self._last_id = number
        return number

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
        return Correlation(self._last_id)

    def feed(self, data: bytes) -> None:
        """Takes what arrived, and calls back for every answer that is whole; raises what is no protocol."""
        for request_id, head, body in self._reader.feed(data):
            self.answered(request_id, head, body)

    def answered(self, request_id: int, head: Buffer, body: memoryview) -> None:
        """Calls back for one answer; raises `PenstockError` where it cannot be read, after telling who waits."""
        waiting = self._waiting.pop(request_id, None)
        if waiting is None:
            if request_id == 0:
                self._refused(head)
            return
        done, body_bytes = waiting
        self.outstanding_bytes -= body_bytes
        try:
            answer = decode_answer(head)  # type: ignore[arg-type]  # any buffer will do
        except msgspec.DecodeError as error:
            unreadable = PenstockError(ErrorCode.BAD_FRAME, f"an answer that is none: {error}")
            tell(done, unreadable)
            raise unreadable from None
        tell(done, error_of(answer) if isinstance(answer, Failed) else Reply(answer, body))

    def _refused(self, head: Buffer) -> None:
        """What concerns no request concerns the connection, which ends then; it is to be known why."""
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


def error_of(answer: Failed) -> PenstockError:
    """What the engine said; a code that this front end is too old to know becomes `internal`."""
    try:
        return PenstockError(ErrorCode(answer.code), answer.message)
    except ValueError:
        return PenstockError(ErrorCode.INTERNAL, f"{answer.message} (unknown error code {answer.code!r})")


def unreachable(reason: str) -> PenstockError:
    """There is no engine to ask."""
    return PenstockError(ErrorCode.UNREACHABLE, f"the back end cannot be reached: {reason}")
