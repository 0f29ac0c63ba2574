"""Clients on the way of a send (`send_path.py`): producers that run the code of the client library."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Protocol

from penstock.client_core.link_table import FinalRefusal, LinkTable
from penstock.client_core.queue_sender import QueueSender, SenderBatch
from penstock.client_core.send_line import SendCall, SendLine
from penstock.model.batch import Buffer, encode_parts
from penstock.model.errors import PenstockError
from penstock.steps.step import Outcome
from penstock.wire.messages import Failed, Send
from tests.routing.test_sends_again import A, B, C

PATIENCE_SECONDS = 6.0


class Settings:
    """What a run is like."""

    def __init__(self, dice: Random) -> None:
        self.window_ms = dice.choice([1_000, 5_000, 300_000])
        self.refused_at_the_door = dice.choice([0.0, 0.01, 0.05])
        self.refused_at_a_node = dice.choice([0.0, 0.01, 0.05])
        self.with_ids = dice.choice([0.0, 0.3, 0.8])
        self.ids = dice.choice([4, 20])
        self.failovers = dice.choice([0.0, 0.6, 2.4])
        self.front_ends = dice.choice([1, 2])
        self.clients = dice.choice([1, 2, 3])


class FrontEnd(Protocol):
    """Where a client connects."""

    def take(self, connection: Connection, request_id: int, request: Send, body: Buffer) -> None:
        """A send of a client."""
        ...


class Connection:
    """A connection of a client to a front end."""

    def __init__(self, front_end: FrontEnd, number: int) -> None:
        self.front_end, self.number = front_end, number
        self.requests: deque[tuple[int, Send, Buffer]] = deque()
        self.answered: deque[tuple[int, Outcome]] = deque()


class ClientWorld(Protocol):
    """What clients know of the world."""

    dice: Random
    settings: Settings
    now: float


class Outgoing(SenderBatch):
    """A batch of a client."""

    __slots__ = ("bodies", "client", "content", "ids")

    def __init__(self, client: Client, number: int, dice: Random, settings: Settings) -> None:
        super().__init__()
        self.client = client
        count = dice.randint(1, 3)
        groups = [dice.choice([A, B, C]) for _ in range(count)]
        self.bodies = [b"%d.%d.%d" % (client.producer, number, place) for place in range(count)]
        self.ids = [b""] * count
        if dice.random() < settings.with_ids:
            self.ids = [b"id-%d" % dice.randrange(settings.ids) for _ in range(count)]
        self.content = encode_parts(self.bodies, groups=groups, deduplication_ids=self.ids)

    def head(self, queue_id: int, number: int, after: int) -> Send:
        return Send(queue_id, self.client.producer, number, after=after)

    def settled(self) -> None:
        self.client.open.discard(self)


class Client(QueueSender):
    """A producer that runs the code of the client library."""

    def __init__(self, path: ClientWorld, producer: int) -> None:
        super().__init__(SendLine(PATIENCE_SECONDS, Random(producer)))
        self._path, self.producer = path, producer
        self._table = LinkTable(PATIENCE_SECONDS, Random(producer))
        self.connection: Connection | None = None
        self._wake_at: float | None = None
        self.open: set[Outgoing] = set()
        self.batches: list[Outgoing] = []
        self.line.renew(1)

    def gather(self) -> None:
        """One more batch."""
        batch = Outgoing(self, len(self.batches) + 1, self._path.dice, self._path.settings)
        self.batches.append(batch)
        self.open.add(batch)
        batch.submit(self)

    def connect(self, connection: Connection) -> None:
        """There is a connection: what was not answered is sent again."""
        self.connection = connection
        for request_id, call in self._table.connected():
            assert isinstance(call, Outgoing)
            call.deadline = None
            self._write(request_id, call)

    def lose(self) -> None:
        """The connection is gone."""
        self.connection = None
        self._table.connection_lost(self._path.now, "lost")

    def hear(self, request_id: int, outcome: Outcome) -> None:
        """The front end has answered."""
        if isinstance(outcome, PenstockError):
            failed = Failed(outcome.code, outcome.message)
            told = self._table.refused(request_id, failed, self._path.now)
            assert isinstance(told, FinalRefusal)
            assert isinstance(told.whom, Outgoing)
            told.whom.fail(told.error)
        else:
            self._table.calls.pop(request_id).succeed(outcome.answer, memoryview(b""))

    def turn(self) -> None:
        """What is due."""
        if self._wake_at is not None and self._wake_at <= self._path.now:
            self.go_on()
        if self.connection is None:
            self._table.give_up(self._path.now, "none")

    def _write(self, request_id: int, call: Outgoing) -> None:
        assert self.connection is not None
        self.connection.requests.append((request_id, call.request(), call.content))

    # -- what the line needs ---------------------------------------------------------------------------------

    def now(self) -> float:
        return self._path.now

    def transmit(self, call: SendCall) -> None:
        assert isinstance(call, Outgoing)
        request_id = self._table.enter(call, self._path.now, connected=self.connection is not None)
        if self.connection is not None:
            self._write(request_id, call)

    def wake_at(self, at: float | None) -> None:
        self._wake_at = at

    def look_up(self) -> None:
        self.found(1)
