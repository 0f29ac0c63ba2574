"""A client's sends and a server, without sockets: connections break, requests are refused, and the test says when."""

from __future__ import annotations

from collections import deque
from random import Random

from penstock.client_core.call import Call
from penstock.client_core.link_table import Again, FinalRefusal, LinkTable
from penstock.client_core.queue_sender import QueueSender, SenderBatch
from penstock.client_core.send_line import SendCall, SendLine
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Answer, Failed, Send, SendResult
from penstock.wire.send_order import SendOrder

PRODUCER = 7
TIMEOUT = 5.0


class Batch(SenderBatch):
    """A batch; `label` is what is stored."""

    __slots__ = ("label", "outcomes", "wanted")

    def __init__(self, label: int) -> None:
        super().__init__()
        self.label = label
        self.outcomes = 0
        self.wanted = True

    def head(self, queue_id: int, number: int, after: int) -> Send:
        return Send(queue_id, PRODUCER, number, after=after)

    def abandoned(self) -> bool:
        return not self.wanted

    def settled(self) -> None:
        self.outcomes += 1


class Connection:
    """What is under way, in both directions."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.requests: deque[tuple[int, Send, int]] = deque()
        """(request id, request, label)."""
        self.answers: deque[tuple[int, Answer]] = deque()


class SendingWorld(QueueSender):
    """One queue, its sender, the link's table, and a server with a log."""

    def __init__(self) -> None:
        super().__init__(SendLine(TIMEOUT, Random(1)))
        self.table = LinkTable(TIMEOUT, Random(2))
        self.time = 0.0
        self.asleep = 0.0
        """For how long the computer was asleep: its clock goes on, and the client's time does not."""
        self.wake: float | None = None
        self.connection: Connection | None = None
        self.old: list[Connection] = []
        self.queue_id = 1
        """The incarnation that the server has; 0: none."""
        self.log: list[tuple[int, int]] = []
        """(queue id, label), in the order stored."""
        self.numbers: set[tuple[int, int]] = set()
        self.refusals: deque[ErrorCode] = deque()
        self.order = SendOrder()
        self.lookups = 0
        self.sent: list[Send] = []
        self._connections = 0
        self._later: list[tuple[float, Connection, int, Call]] = []
        self.found(1)

    # -- the client's side -----------------------------------------------------------------------------------

    def now(self) -> float:
        return self.time

    def transmit(self, call: SendCall) -> None:
        request_id = self.table.enter(call, self.time, connected=self.connection is not None)
        self._write(request_id, call)

    def _write(self, request_id: int, call: Call) -> None:
        if self.connection is not None:
            assert isinstance(call, Batch)
            request = call.request()
            call.writes(self.time + self.asleep)
            self.sent.append(request)
            self.connection.requests.append((request_id, request, call.label))

    def wake_at(self, at: float | None) -> None:
        self.wake = at

    def look_up(self) -> None:
        self.lookups += 1

    def answer_lookup(self) -> None:
        """The server says which incarnation there is."""
        if self.lookups:
            self.lookups = 0
            if self.queue_id:
                self.found(self.queue_id)
            else:
                self.not_found(PenstockError(ErrorCode.QUEUE_NOT_FOUND, "there is none"))

    def connect(self) -> None:
        """There is a connection, if there was none."""
        if self.connection is None:
            self._connections += 1
            self.connection = Connection(self._connections)
            for request_id, call in self.table.connected(self.time + self.asleep):
                assert isinstance(call, Call)
                self._write(request_id, call)

    def lose(self) -> None:
        """The connection is gone. What had left may still be read by the server."""
        if self.connection is not None:
            self.old.append(self.connection)
            self.connection = None
            self.table.connection_lost(self.time, "it broke")

    def hear(self) -> None:
        """One answer arrives."""
        if self.connection is None or not self.connection.answers:
            return
        connection = self.connection
        request_id, answer = connection.answers.popleft()
        call = self.table.calls.get(request_id)
        if isinstance(answer, Failed):
            match self.table.refused(request_id, answer, self.time):
                case FinalRefusal(whom, error):
                    assert isinstance(whom, Call)
                    whom.fail(error)
                case Again(whom, seconds):
                    assert isinstance(whom, Call)
                    self._later.append((self.time + seconds, connection, request_id, whom))
                case _:
                    self.lose()
        elif call is not None:
            del self.table.calls[request_id]
            call.succeed(answer, memoryview(b""))

    def wait(self, seconds: float) -> None:
        """Time passes."""
        end = self.time + seconds
        while self.wake is not None and self.wake <= end:
            self.time = max(self.time, self.wake)
            self.wake = None
            self.go_on()
        self.time = end
        if self.connection is None:
            self.table.give_up(self.time, "nobody is there")
        assert not self._later, "sends wait in their line, not in the link"

    # -- the server's side -----------------------------------------------------------------------------------

    def read(self, connection: Connection | None) -> None:
        """The server reads one request."""
        if connection is None or not connection.requests:
            return
        request_id, request, label = connection.requests.popleft()
        connection.answers.append((request_id, self._carried_out(connection, request, label)))

    def _carried_out(self, connection: Connection, request: Send, label: int) -> Answer:
        if self.refusals and self.refusals[0] is ErrorCode.THROTTLED:  # by the guard, which remembers nothing
            return Failed(self.refusals.popleft(), "slow down")
        if request.queue_id != self.queue_id:
            return Failed(ErrorCode.QUEUE_NOT_FOUND, "another one")
        try:
            self.order.check(connection.number, request)
            if self.refusals:
                error = PenstockError(self.refusals.popleft(), "not now")
                if not error.sent_again:
                    self.order.taken(connection.number, request)
                raise error
        except PenstockError as error:
            return Failed(error.code, error.message)
        self.order.taken(connection.number, request)
        if (request.queue_id, request.number) not in self.numbers:
            self.numbers.add((request.queue_id, request.number))
            self.log.append((request.queue_id, label))
        return SendResult([(request.number, 1)], [], 1)

    def serve(self) -> None:
        """Everything under way is read and answered."""
        while self.connection is not None and (self.connection.requests or self.connection.answers):
            self.read(self.connection)
            self.hear()
