"""Runs the line of batches to one queue: carries out its decisions with a link, a timer, and a lookup of the queue."""

from __future__ import annotations

from abc import ABC, abstractmethod

from penstock.client_core.call import unexpected
from penstock.client_core.send_line import SendCall, SendLine
from penstock.model.errors import PenstockError
from penstock.wire.messages import Answer, SendResult


class QueueSender(ABC):
    """The batches of a client to one queue."""

    def __init__(self, line: SendLine) -> None:
        self.line = line

    # -- what a client's runtime does ------------------------------------------------------------------------

    @abstractmethod
    def now(self) -> float:
        """The time, in seconds."""

    @abstractmethod
    def transmit(self, call: SendCall) -> None:
        """Sends a batch over the link, now or when there is a connection; raises where the link is closed."""

    @abstractmethod
    def wake_at(self, at: float | None) -> None:
        """Calls `go_on` then; None: there is nothing to wait for."""

    @abstractmethod
    def look_up(self) -> None:
        """Looks the queue up by its name: `found` or `not_found` follows."""

    # -- events ----------------------------------------------------------------------------------------------

    def submit(self, call: SenderBatch) -> None:
        """One more batch, behind all that were submitted before."""
        if self.line.add(call, self.now()):
            self._transmit(call)
        else:
            self.go_on()

    def ended(self, call: SenderBatch) -> None:
        """A batch is stored, has failed, or is not wanted any more."""
        self.line.ended(call)
        if self.line.waits:
            self.go_on()

    def refused(self, call: SenderBatch, error: PenstockError) -> bool:
        """Whether a batch that was refused is sent again; if not, it has failed."""
        if not self.line.refused(call, error, self.now()):
            return False
        self.go_on()
        return True

    def found(self, queue_id: int) -> None:
        """The queue has this incarnation."""
        self.line.renew(queue_id)
        if self.line.waits:
            self.go_on()

    def not_found(self, error: PenstockError) -> None:
        """The queue does not exist, cannot be looked up, or the link has ended: waiting batches have failed."""
        for call in self.line.fail_held():
            call.cut_off(error)

    def go_on(self) -> None:
        """Sends what may be sent now; if the queue's incarnation is not known, it is looked up first."""
        if self.line.must_be_looked_up():
            self.look_up()
        now = self.now()  # one time for both, so that both agree on what is due
        for call in self.line.ready(now):
            self._transmit(call)
        self.wake_at(self.line.next_at(now))

    def _transmit(self, call: SendCall) -> None:
        try:
            self.transmit(call)
        except PenstockError as error:
            self.line.ended(call)
            call.cut_off(error)


class SenderBatch(SendCall):
    """A batch that a sender sees through, to its result or its error."""

    __slots__ = ("error", "result", "sender")

    def __init__(self) -> None:
        super().__init__()
        self.sender: QueueSender | None = None
        self.result: SendResult | None = None
        self.error: PenstockError | None = None

    @property
    def done(self) -> bool:
        """Whether it is stored or has failed."""
        return self.result is not None or self.error is not None

    def submit(self, sender: QueueSender) -> None:
        """Sends it."""
        self.sender = sender
        sender.submit(self)

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """Stored."""
        if isinstance(answer, SendResult):
            self.result = answer
            self._end()
        else:
            self.give_up(unexpected(answer))

    def fail(self, error: PenstockError) -> None:
        """Refused: the sender says whether it is sent again."""
        if self.sender is None or not self.sender.refused(self, error):
            self.give_up(self.as_known(error, refused=True))

    def cut_off(self, error: PenstockError) -> None:
        """It cannot be sent any more, and no answer to it can come."""
        self.give_up(self.as_known(error, refused=False))

    def give_up(self, error: PenstockError) -> None:
        """It has failed permanently."""
        self.error = error
        self._end()

    def dropped(self) -> None:
        """No caller waits for it, and the link has forgotten it."""
        if self.sender is not None:
            self.sender.ended(self)

    def _end(self) -> None:
        self.body = ()  # the bytes are not needed any more
        if self.sender is not None:
            self.sender.ended(self)
        self.settled()

    @abstractmethod
    def settled(self) -> None:
        """It is stored or has failed."""
