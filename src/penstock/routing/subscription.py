"""A subscription of a native client to a queue of a cluster: consecutive receives within the credit.

While no messages come, it is one receive that waits at all partitions. While batches come full, several are in progress.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.later import Later, Timer
from penstock.wire.messages import Answer, Delivery, Receive, Request, Subscribe

WAIT_MS = 20_000
PAUSE_SECONDS = 0.2
"""After an error that may pass."""
AT_ONCE = 16
"""How many receives are on their way at most where each comes back full. With few of them every lease and every delete is
a round of its own through three disks; with many they share rounds."""
AHEAD_BYTES = 16 * limits.MEBIBYTE
"""What is on its way should not be much more than this: a front end holds it until the client takes it."""

Deliver = Callable[[Delivery, Buffer], None]


class Replied(Protocol):
    """An answer and its body."""

    @property
    def answer(self) -> Answer:
        """Never `Failed`."""
        ...

    @property
    def body(self) -> Buffer:
        """The body of the answer."""
        ...


class Engine(Protocol):
    """Answers requests: the nodes of a cluster."""

    def ask(self, request: Request, body: Buffer, done: Callable[[Replied | PenstockError], None]) -> int:
        """Sends a request; `done` is called once, later, never from within. Returns a ticket."""
        ...

    def cancel(self, ticket: int) -> None:
        """A receive that waits need not wait any longer; its `done` is still called."""
        ...


class Subscription:
    """Sends a client messages within its credit, until it is ended or fails."""

    def __init__(
        self,
        engine: Engine,
        later: Later,
        request: Subscribe,
        deliver: Deliver,
        failed: Callable[[PenstockError], None],
    ) -> None:
        _check(request)
        self._engine = engine
        self._later = later
        self._request = request
        self._deliver = deliver
        self._failed = failed
        self._credit = request.credit
        """Messages that the client may get and that were not requested yet."""
        self._under_way: dict[int, int] = {}
        """By ticket: how many messages were asked for."""
        self._at_once = 1
        self._paused = False
        self._ended: Callable[[], None] | None = None
        self._over = False
        self._timer: Timer | None = None

    def add_credit(self, messages: int) -> None:
        """The client takes more."""
        if 0 < messages <= limits.QUEUE_MESSAGES_MAX:
            self._credit += messages
            self.go_on()

    def pause(self) -> None:
        """The client does not read: nothing more is asked for."""
        self._paused = True

    def resume(self) -> None:
        """The client reads again."""
        self._paused = False
        self.go_on()

    def end(self, ended: Callable[[], None]) -> None:
        """Asks for nothing more; `ended` is called when nothing can come any more."""
        self._over = True
        self._ended = ended
        if self._timer is not None:
            self._timer.cancel()
        for ticket in list(self._under_way):
            self._engine.cancel(ticket)
        self._finish()

    def go_on(self) -> None:
        """Asks for as much as may be on its way."""
        while (
            self._credit > 0
            and len(self._under_way) < self._at_once
            and self._timer is None
            and not (self._paused or self._over)
        ):
            self._ask(min(self._credit, self._request.batch_messages))

    def _ask(self, messages: int) -> None:
        request = self._request
        self._credit -= messages
        ticket = 0

        def done(outcome: Replied | PenstockError) -> None:
            del self._under_way[ticket]
            self._answered(messages, outcome)

        receive = Receive(
            request.queue_id,
            messages,
            WAIT_MS,
            request.visibility_timeout_ms,
            consumer=request.consumer,
        )
        ticket = self._engine.ask(receive, b"", done)
        self._under_way[ticket] = messages

    def _answered(self, messages: int, outcome: Replied | PenstockError) -> None:
        if isinstance(outcome, PenstockError):
            self._refused(messages, outcome)
        elif not isinstance(outcome.answer, Delivery):
            self._refused(messages, _wrong(outcome.answer))
        else:
            delivery = outcome.answer
            count = sum(batch.count for batch in delivery.batches)
            self._credit += messages - count
            self._allow(receives_at_once(self._at_once, len(outcome.body), full=count >= messages))
            if count:
                self._deliver(delivery, outcome.body)
        self.go_on()
        self._finish()

    def _refused(self, messages: int, error: PenstockError) -> None:
        self._credit += messages
        if not self._over and not error.retryable:
            self._over = True
            for ticket in list(self._under_way):
                self._engine.cancel(ticket)
            self._failed(error)
        elif not self._over and self._timer is None:
            self._timer = self._later(PAUSE_SECONDS, self._try_again)

    def _allow(self, at_once: int) -> None:
        """Limits the receives in progress. Those beyond it are cancelled: if few messages come, each would wait at the node."""
        if at_once < self._at_once:
            for ticket in list(self._under_way)[at_once:]:
                self._engine.cancel(ticket)
        self._at_once = at_once

    def _try_again(self) -> None:
        self._timer = None
        self.go_on()

    def _finish(self) -> None:
        if self._ended is not None and not self._under_way:
            ended, self._ended = self._ended, None
            ended()


def _wrong(answer: Answer) -> PenstockError:
    return PenstockError(
        ErrorCode.INTERNAL, f"a node answered with {type(answer).__name__}, not {Delivery.__name__}"
    )


def _check(request: Subscribe) -> None:
    if not 0 <= request.credit <= limits.QUEUE_MESSAGES_MAX:
        raise PenstockError(ErrorCode.BAD_REQUEST, "credit must not be negative")
    if not 1 <= request.batch_messages <= limits.RECEIVE_MESSAGES:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"ask for 1 to {limits.RECEIVE_MESSAGES} messages, not {request.batch_messages}",
        )
    if request.visibility_timeout_ms == 0:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            "a subscription with a visibility timeout of 0 would be sent the same messages forever",
        )


def receives_at_once(now: int, delivery_bytes: int, *, full: bool) -> int:
    """How many receives may be on their way after a delivery: twice as many as now if it was full, else half as many."""
    most = min(AT_ONCE, AHEAD_BYTES // max(1, delivery_bytes))
    return max(1, min(2 * now, most) if full else now // 2)
