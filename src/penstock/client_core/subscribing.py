"""A subscription of a consumer: messages pushed within the credit that the server gets, kept until they are wanted.

It decides which messages are handed out and which have waited too long, when the server gets more credit, what is
requested on a new connection, what a refusal means, and what is returned in the end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from penstock.client_core.call import Stream
from penstock.client_core.credit import Credit
from penstock.client_core.lease import Lease
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import AddCredit, Delivery, Subscribe


class ConsumerTerms(NamedTuple):
    """What a consumer asks for."""

    credit: int
    batch_messages: int
    visibility_timeout_ms: int | None
    heartbeat: bool

    def check(self) -> None:
        """Raises with the argument that cannot be."""
        if self.credit < 1:
            raise _refused(f"credit is {self.credit}: allow the server at least 1 message")
        if not 1 <= self.batch_messages <= limits.RECEIVE_MESSAGES:
            raise _refused(f"batch_messages is {self.batch_messages}: use 1 to {limits.RECEIVE_MESSAGES}")


class PushedMessage(Protocol):
    """The interface of a message."""

    @property
    def sequence(self) -> int:
        """Its number."""
        ...


Message = TypeVar("Message", bound=PushedMessage)
MessageOut = TypeVar("MessageOut", bound=PushedMessage, covariant=True)


class PushedMessages(Protocol[MessageOut]):
    """The interface of a delivery."""

    @property
    def lease(self) -> Lease:
        """Their lease."""
        ...

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[MessageOut]: ...


class Subscribing(Stream, Generic[Message]):
    """The state of one push consumer: deliveries come in from the link, and go out one by one or message by message."""

    __slots__ = (
        "_buffer",
        "_credit",
        "_current",
        "_current_lease",
        "_error",
        "_place",
        "_queue_id",
        "_terms",
        "closed",
    )

    def __init__(self, terms: ConsumerTerms) -> None:
        super().__init__()
        terms.check()
        self._terms = terms
        self._queue_id = 0
        self._buffer: deque[PushedMessages[Message]] = deque()
        self._credit = Credit(terms.credit)
        self._current: list[Message] = []
        self._current_lease: Lease | None = None
        self._place = 0
        """The delivery that is handed out message by message, and how far that has come."""
        self._error: PenstockError | None = None
        self.closed = False
        """Whether it has ended, or is about to."""

    # -- what its world does ---------------------------------------------------------------------------------

    @abstractmethod
    def _now(self) -> float:
        """The time, in seconds."""

    @abstractmethod
    def _open(self) -> None:
        """Has the link open the subscription."""

    @abstractmethod
    def _post(self, credit: AddCredit) -> None:
        """Sends to the server, if there is a connection."""

    @abstractmethod
    def _received(self, delivery: Delivery, body: memoryview) -> PushedMessages[Message]:
        """A delivery as its user sees it; its lease is kept alive from now on, where the consumer wants that."""

    @abstractmethod
    def _look_again(self, error: PenstockError) -> None:
        """The queue is gone: finds out whether it was made again, and calls `found_again`."""

    @abstractmethod
    def _wake(self, waiters: int) -> None:
        """There is something for so many of those who wait."""

    @abstractmethod
    def _wake_all(self) -> None:
        """It has ended."""

    # -- taking ----------------------------------------------------------------------------------------------

    def begin(self, queue_id: int, visibility_timeout_ms: int) -> None:
        """Opens it; `visibility_timeout_ms` is what the queue says where the terms say nothing."""
        self._queue_id = queue_id
        if not self._terms.heartbeat:
            self._credit.lease_seconds = visibility_timeout_ms / 1000
        if not self.closed:
            self._open()

    def is_open(self) -> bool:
        """Whether there is any use in waiting for messages; raises what ended it, once everything is handed out."""
        if self._error is not None and not self._buffer and self._place >= len(self._current):
            raise self._error
        return not self.closed

    def next_at_hand(self) -> PushedMessages[Message] | None:
        """The first buffered delivery whose lease is not over."""
        while self._buffer:
            delivery = self._buffer.popleft()
            self._credit.left(len(delivery))
            if not self._is_over(delivery.lease):
                return delivery
            self.handed_out(len(delivery))
        return None

    def next_message_at_hand(self) -> Message | None:
        """The first message whose lease is not over; it counts as handed out."""
        while True:
            if self._place < len(self._current):
                assert self._current_lease is not None
                if not self._is_over(self._current_lease):
                    self._place += 1
                    self.handed_out(1)
                    return self._current[self._place - 1]
                self.handed_out(len(self._current) - self._place)
            delivery = self.next_at_hand()
            # Messages that are handed out are not held here: a lease that no object holds any more is not extended.
            self._current, self._place = [] if delivery is None else list(delivery), 0
            self._current_lease = None if delivery is None else delivery.lease
            if delivery is None:
                return None
            self._wake(len(delivery) - 1)

    def handed_out(self, messages: int) -> None:
        """The user has them; half the used credit is given again."""
        if given := self._credit.handed_out(messages):
            self._post(AddCredit(self.request_id, given))

    def _is_over(self, lease: Lease) -> bool:
        """Whether the lease ended while the messages waited here: the server hands them out again."""
        return self._credit.is_over(lease.arrived, self._now())

    # -- the link's side -------------------------------------------------------------------------------------

    def opening(self) -> Subscribe:
        """Asks for as much as there is room for beside what waits here already."""
        terms = self._terms
        return Subscribe(
            self._queue_id,
            self._credit.opening(),
            terms.batch_messages,
            terms.visibility_timeout_ms,
        )

    def delivered(self, delivery: Delivery, body: memoryview) -> None:
        """Keeps messages until they are asked for."""
        if not delivery.batches:
            return
        messages = self._received(delivery, body)
        self._buffer.append(messages)
        self._credit.delivered(len(messages))
        if not self.closed:
            self._wake(1)

    def failed(self, error: PenstockError) -> None:
        """Checks whether the queue was created again; otherwise waiting callers get the error."""
        if error.code is ErrorCode.QUEUE_NOT_FOUND and not self.closed:
            self._look_again(error)
        else:
            self.end(error)

    def found_again(self, queue_id: int | None, error: PenstockError) -> None:
        """The queue was made again under another id; None: it was not, and `error` ends the subscription."""
        if queue_id is None:
            self.end(error)
        elif not self.closed:
            self._queue_id = queue_id
            self._open()

    def end(self, error: PenstockError) -> None:
        """Nothing more comes, for this reason."""
        self._error = error
        self._wake_all()

    # -- ending ----------------------------------------------------------------------------------------------

    def left_over(self) -> tuple[list[Lease], list[tuple[Lease, int]]]:
        """Messages to return because they were not taken: whole deliveries, and the rest of the one that was being handed out."""
        lease, left = self._current_lease, self._current[self._place :]
        messages = [(lease, message.sequence) for message in left] if lease is not None else []
        leases = [delivery.lease for delivery in self._buffer]
        self._current, self._current_lease, self._place = [], None, 0
        self._buffer.clear()
        self._credit.left(self._credit.buffered)
        return leases, messages


def _refused(message: str) -> PenstockError:
    return PenstockError(ErrorCode.BAD_REQUEST, message)
