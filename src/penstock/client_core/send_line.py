"""The line of batches that a client sends to one queue: their numbers, their order, what is sent again and when.

All batches of a client to a queue are in one line, in the order in which they were given, until they are answered or given
up. A batch that was refused temporarily stays at its place, and the following ones wait with it. Each batch names the one
that it follows, so that a server stores none of them before one that was refused (ADR 30).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from enum import Enum
from random import Random

from penstock.client_core.backoff import Slowdown
from penstock.client_core.call import Call, Unanswered
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Send

NUMBERS_IN_FLIGHT = limits.PRODUCER_BATCHES_REMEMBERED - 24
"""Unanswered batches may span no more numbers than the server remembers, or a repeated one would be refused."""
OUTLIVED_SECONDS = limits.PRODUCER_IDLE_MS / 1000 / 2
"""A batch that may be stored is not sent again after this time: a server forgets a producer that is silent for twice as long, and
would store the batch again. This happens when the computer was asleep."""
PASSING = frozenset(
    {ErrorCode.THROTTLED, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_PRIMARY, ErrorCode.UNREACHABLE}
)
"""Errors while a limit is used up, or a cluster changes. A batch keeps its number, so it is not stored twice."""


class State(Enum):
    """The state of a batch."""

    NEW = "new"
    HELD = "held"
    SENT = "sent"
    ENDED = "ended"


class SendCall(Call):
    """One batch. Its request is made again for each attempt, because it names the batch that it follows."""

    __slots__ = (
        "after",
        "before",
        "behind",
        "due",
        "earlier",
        "first_written",
        "line",
        "looked_again",
        "number",
        "patience_ends",
        "queue_id",
        "serial",
        "state",
        "uncertain",
        "waits_for_before",
        "written",
    )

    waits_out: frozenset[ErrorCode] = frozenset()  # the line decides, for this batch and those behind it

    def __init__(self) -> None:
        super().__init__()
        self.line: SendLine | None = None
        self.state = State.NEW
        self.queue_id = 0
        """The incarnation that the number is of."""
        self.number = 0
        self.earlier: dict[int, int] | None = None
        """Its numbers in other incarnations that it was sent to: it may be stored there under them."""
        self.after = 0
        """The number of the batch that it followed in its last attempt."""
        self.before: SendCall | None = None
        self.behind: SendCall | None = None
        self.serial = 0
        """When it was sent last, among all that were."""
        self.due = 0.0
        """While it is held: from when on it may be sent again."""
        self.patience_ends: float | None = None
        """While there is a problem: when it is given up."""
        self.waits_for_before = False
        """Whether the server wants the batch before it first."""
        self.looked_again = False
        self.first_written: float | None = None
        """By the computer's clock: when it was first written, since a server said that it is not stored."""
        self.written = False
        """Whether it was written to a connection and no answer to that has come."""
        self.uncertain = False
        """Whether an earlier attempt may have stored it, because its outcome is unknown."""

    @abstractmethod
    def head(self, queue_id: int, number: int, after: int) -> Send:
        """The request for this batch."""

    def request(self) -> Send:
        """The request, as it has to be now."""
        assert self.line is not None  # only a line sends it
        self.uncertain = self.uncertain or self.written
        self.written = True
        self.line.sending(self)
        return self.head(self.queue_id, self.number, self.after)

    def writes(self, clock: float) -> None:
        """See `Call`."""
        if self.first_written is None:
            self.first_written = clock

    def has_outlived(self, clock: float) -> bool:
        """See `Call`."""
        return self.first_written is not None and clock - self.first_written > OUTLIVED_SECONDS

    def as_known(self, error: PenstockError, *, refused: bool) -> PenstockError:
        """The error for a batch that is given up. A refusal says nothing about an earlier attempt that may have stored it.

        `refused`: the server refused the last attempt. Otherwise no further attempt is possible, and the outcome of the
        last one is unknown as well.
        """
        if error.code is ErrorCode.UNREACHABLE or not (self.uncertain or (self.written and not refused)):
            return error
        if refused and not (error.retryable or error.sent_again):
            return PenstockError(
                error.code, f"{error.message}. An earlier attempt may or may not have stored the batch"
            )
        return PenstockError(
            ErrorCode.UNREACHABLE, f"the batch may or may not be stored; the last error was: {error}"
        )


class SendLine:
    """The unanswered batches of a client to a queue. The caller sends what `ready` returns, in that order."""

    def __init__(self, timeout: float, dice: Random) -> None:
        self.timeout = timeout
        self._dice = dice
        self._queue_id = 0
        """The present incarnation; 0: it has to be looked up."""
        self._is_looked_up = False
        """Whether the queue is being looked up now."""
        self._number = 0
        """The last number given, for any incarnation. No number is given twice: a late answer about an old incarnation may
        come after the next one is known, and a batch with a known number counts as stored.
        """
        self._first: SendCall | None = None
        self._last: SendCall | None = None
        self._held = 0
        self._troubled = 0
        """How many held batches were refused, or follow a refused one."""
        self._serial = 0

    @property
    def waits(self) -> bool:
        """Whether any batch is held."""
        return self._held > 0

    def renew(self, queue_id: int) -> None:
        """The incarnation that the queue has now, as far as is known."""
        self._queue_id = queue_id
        self._is_looked_up = False

    # -- events ----------------------------------------------------------------------------------------------

    def add(self, call: SendCall, now: float) -> bool:
        """One more batch; whether it is sent now. If not, it is held until `ready` gives it."""
        last = self._last
        call.line, call.before = self, last
        if last is None:
            self._first = call
        else:
            last.behind = call
        self._last = call
        if not self._held and (last is None or last.queue_id == self._queue_id) and self._numbers(call):
            self._sends(call)
            return True
        self._holds(call, now, trouble=self._troubled > 0)
        return False

    def ended(self, call: SendCall) -> None:
        """A batch is stored, has failed permanently, or is not wanted any more."""
        if call.state is State.ENDED or call.line is not self:
            return
        self._let_go(call)
        call.state = State.ENDED
        before, behind = call.before, call.behind
        if before is None:
            self._first = behind
        else:
            before.behind = behind
        if behind is None:
            self._last = before
        else:
            behind.before = before
        call.before = call.behind = None

    def refused(self, call: SendCall, error: PenstockError, now: float) -> bool:
        """The server refused a batch, or the link gave it up: whether it is sent again. If not, `ended` follows."""
        if call.state is not State.SENT or isinstance(error, Unanswered) or call.abandoned():
            return False
        call.written = False
        call.uncertain = call.uncertain or error.code is ErrorCode.UNREACHABLE
        if not call.uncertain:
            call.first_written = None
        if error.code is ErrorCode.OUT_OF_ORDER and call.after:
            self._holds(call, now)
            call.waits_for_before = True
            return True
        if error.code is ErrorCode.QUEUE_NOT_FOUND:
            if call.looked_again:
                return False
            call.looked_again = True
            self._holds(call, now)
            if call.queue_id == self._queue_id:
                self._queue_id = 0
            return True
        is_passing = error.code in PASSING or error.code is ErrorCode.OUT_OF_ORDER
        if not is_passing and not (call.uncertain and error.retryable):
            return False  # else its caller would take it for refused, and it may be stored
        if call.slowdown is None:
            ends = call.patience_ends if call.patience_ends is not None else now + self.timeout
            call.slowdown = Slowdown(ends, self._dice)
        pause = call.slowdown.pause(now)
        if pause is None:
            return False
        self._holds(call, now, pause)
        return True

    def fail_held(self) -> list[SendCall]:
        """Held batches cannot be sent: the queue does not exist, or the link has ended. These have failed."""
        self._is_looked_up = False
        failed = [call for call in self.unanswered() if call.state is State.HELD]
        for call in failed:
            self.ended(call)
        return failed

    # -- what to do ------------------------------------------------------------------------------------------

    def ready(self, now: float) -> list[SendCall]:
        """Batches to send now, in this order, without those that are not wanted any more."""
        sent: list[SendCall] = []
        before: SendCall | None = None
        for call in self.unanswered() if self._held else ():
            if call.state is State.HELD:
                if call.abandoned():
                    self.ended(call)
                    continue
                if now < call.due or not self._may_follow(call, before) or not self._numbers(call):
                    break
                self._sends(call)
                sent.append(call)
            before = call
        return sent

    def next_at(self, now: float) -> float | None:
        """When `ready` may have something though nothing happens before; None: only then."""
        for call in self.unanswered() if self._held else ():
            if call.state is State.HELD:
                return call.due if call.due > now else None
        return None

    def must_be_looked_up(self) -> bool:
        """Whether batches wait for the queue's incarnation. The caller then looks it up, and calls `renew` or `fail_held`."""
        if not self._held or self._queue_id or self._is_looked_up:
            return False
        self._is_looked_up = True
        return True

    def unanswered(self) -> Iterator[SendCall]:
        """All batches in line, in their order."""
        call = self._first
        while call is not None:
            behind = call.behind
            yield call
            call = behind

    def sending(self, call: SendCall) -> None:
        """A batch is written to a connection, for the first time or again: it follows the one before it, if there is one."""
        self._serial += 1
        call.serial = self._serial
        before = call.before
        call.after = before.number if before is not None and before.queue_id == call.queue_id else 0

    # -- inside ----------------------------------------------------------------------------------------------

    def _may_follow(self, call: SendCall, before: SendCall | None) -> bool:
        """Whether a batch may be sent behind one that is sent already."""
        if before is None:
            return True
        if before.queue_id != self._queue_id:
            return False  # it was sent to the incarnation before, and may come back
        # The server refused this one because of the one before it: that is sent again first, or has its answer.
        return not call.waits_for_before or before.serial > call.serial

    def _numbers(self, call: SendCall) -> bool:
        """Gives a batch its number, if it has none of this incarnation; False: there is none for it now."""
        if not self._queue_id:
            return False
        if call.queue_id == self._queue_id:
            return True
        number = call.earlier.get(self._queue_id) if call.earlier is not None else None
        if number is None:
            oldest = next((one.number for one in self.unanswered() if one.queue_id == self._queue_id), None)
            if oldest is not None and self._number + 1 - oldest >= NUMBERS_IN_FLIGHT:
                return False
            self._number = number = self._number + 1
        if call.queue_id:
            call.earlier = {**(call.earlier or {}), call.queue_id: call.number}
        call.queue_id, call.number = self._queue_id, number
        return True

    def _sends(self, call: SendCall) -> None:
        self._let_go(call)
        call.state = State.SENT
        call.waits_for_before = False
        self._serial += 1
        call.serial = self._serial

    def _holds(self, call: SendCall, now: float, pause: float = 0.0, *, trouble: bool = True) -> None:
        call.state = State.HELD
        call.due = now + pause
        if trouble and call.patience_ends is None:
            call.patience_ends = now + self.timeout
        self._held += 1
        self._troubled += call.patience_ends is not None

    def _let_go(self, call: SendCall) -> None:
        if call.state is State.HELD:
            self._held -= 1
            self._troubled -= call.patience_ends is not None
