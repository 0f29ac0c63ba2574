"""How a producer gathers messages into batches, how many batches it sends at once, and what it holds back.

It holds at most `in_flight` batches and `in_flight_bytes` that the server has not answered, plus the batch being gathered.
Failures are kept until they are reported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Generic, NamedTuple, TypeVar

from penstock.client_core.queue_sender import SenderBatch
from penstock.model.errors import PenstockError

TIMER_SLACK_SECONDS = 0.0005
"""A batch that is due this soon is sent now: another timer would cost more than it gains."""


class GatheredBatch(SenderBatch):
    """A batch of a producer: gathered, then on its way, then stored or failed."""

    __slots__ = ("bytes", "due", "messages")

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Any] = []
        self.bytes = 0
        self.due = 0.0
        """When it is sent though it is not full."""


class FailedBatch(NamedTuple):
    """Messages that were not stored, and the reason."""

    error: PenstockError
    messages: list[Any]


Batch = TypeVar("Batch", bound=GatheredBatch)


class Gathering(ABC, Generic[Batch]):
    """The state of a producer. A runtime gives it batches to fill, a timer, and a sender to the queue."""

    __slots__ = (
        "_backlog",
        "_batch_bytes",
        "_batch_messages",
        "_closed",
        "_failures",
        "_flying",
        "_flying_bytes",
        "_held",
        "_in_flight",
        "_in_flight_bytes",
        "_linger",
        "_open",
        "_timer_is_set",
    )

    def __init__(
        self, batch_messages: int, batch_bytes: int, linger: float, in_flight: int, in_flight_bytes: int
    ) -> None:
        self._batch_messages = batch_messages
        self._batch_bytes = batch_bytes
        self._linger = linger
        self._in_flight = in_flight
        self._in_flight_bytes = in_flight_bytes
        self._open = self._new_batch()
        self._backlog: deque[Batch] = deque()
        self._flying: dict[Batch, None] = {}
        self._flying_bytes = 0
        self._failures: list[FailedBatch] = []
        self._timer_is_set = False
        self._closed = False
        self._held = False
        """Whether senders must first wait, or get a report of a failure."""

    # -- what a runtime does ---------------------------------------------------------------------------------

    @abstractmethod
    def _new_batch(self) -> Batch:
        """An empty batch."""

    @abstractmethod
    def _now(self) -> float:
        """The time, in seconds."""

    @abstractmethod
    def _set_timer(self, at: float) -> None:
        """Calls `_lingered` then."""

    @abstractmethod
    def _may_launch(self, batch: Batch) -> bool:
        """Whether all is known that is needed to send a batch; if not, sees to it, and calls `_pump` then."""

    @abstractmethod
    def _launch(self, batch: Batch) -> None:
        """Sends a batch; `_finished` follows."""

    @abstractmethod
    def _admit(self) -> None:
        """Waiting senders check again whether they may send, or must get a report."""

    # -- events ----------------------------------------------------------------------------------------------

    def _put(self, message: object, size: int) -> tuple[Batch, int]:
        """Takes a message; its batch, and its place there."""
        batch = self._open
        if batch.bytes + size > self._batch_bytes and batch.messages:
            self._seal()
            batch = self._open
        messages = batch.messages
        messages.append(message)
        self._taken(batch, 1)
        batch.bytes += size
        count = len(messages)
        if count >= self._batch_messages:
            self._seal()
        elif count == 1:
            self._start_linger(batch)
        return batch, count - 1

    def _taken(self, batch: Batch, messages: int) -> None:
        """So many messages were put into a batch just now."""

    def _put_all(self, messages: list[Any], size: int) -> None:
        """Takes messages that fit into the batch which is being gathered."""
        batch = self._open
        begun = bool(batch.messages)
        batch.messages += messages
        self._taken(batch, len(messages))
        batch.bytes += size
        if len(batch.messages) >= self._batch_messages:
            self._seal()
        elif not begun:
            self._start_linger(batch)

    def _start_linger(self, batch: Batch) -> None:
        """One timer serves all batches, one after the other: most are full before it fires."""
        batch.due = self._now() + self._linger
        if not self._timer_is_set:
            self._timer_is_set = True
            self._set_timer(batch.due)

    def _lingered(self) -> None:
        """The timer fired."""
        self._timer_is_set = False
        batch = self._open
        if not batch.messages:
            return
        if batch.due > self._now() + TIMER_SLACK_SECONDS:
            self._timer_is_set = True
            self._set_timer(batch.due)
        else:
            self._seal()

    def _seal(self) -> None:
        """The batch that is being gathered is to be sent."""
        self._backlog.append(self._open)
        self._open = self._new_batch()
        self._pump()

    def _pump(self) -> None:
        """Sends waiting batches while they fit into what may be on its way."""
        while self._backlog and self._has_room(self._backlog[0]) and self._may_launch(self._backlog[0]):
            batch = self._backlog.popleft()
            self._flying[batch] = None
            self._flying_bytes += batch.bytes
            self._launch(batch)
        self._hold()

    def _has_room(self, batch: Batch) -> bool:
        if not self._flying:
            return True
        return (
            len(self._flying) < self._in_flight and self._flying_bytes + batch.bytes <= self._in_flight_bytes
        )

    def _fail_backlog(self, error: PenstockError) -> None:
        """Waiting batches cannot be sent."""
        failed, self._backlog = self._backlog, deque()
        for batch in failed:
            batch.give_up(error)

    def _finished(self, batch: Batch) -> None:
        """A batch is stored, or has failed permanently."""
        if batch in self._flying:
            del self._flying[batch]
            self._flying_bytes -= batch.bytes
        if batch.error is not None:
            self._failures.append(FailedBatch(batch.error, batch.messages))
        self._pump()

    def _hold(self) -> None:
        """Decides whether senders have to wait first; those who wait look again."""
        self._held = self._closed or bool(self._backlog or self._failures)
        if self._closed or self._failures or not self._backlog:
            self._admit()

    def take_failures(self) -> list[FailedBatch]:
        """Returns and forgets the failures since the last report."""
        failures, self._failures = self._failures, []
        self._hold()
        return failures
