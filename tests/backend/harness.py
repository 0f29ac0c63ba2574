"""A node over a simulated disk, driven by hand: requests in, answers out, time and crashes when the test says so."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from penstock.backend.node.node import Environment, Node
from penstock.model.batch import Batch, Buffer, encode_parts
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.ordering.clock_interval import ClockInterval, around
from penstock.simulation.disk import SimulatedDisk
from penstock.storage.identity import Identity
from penstock.storage.options import StorageOptions
from penstock.storage.store import Store
from penstock.wire import messages
from penstock.wire.answers import DeliveredBatch
from penstock.wire.frames import Frame, FrameReader
from penstock.wire.log_messages import LoggedBatch

START_MS = 1_700_000_000_000
OPTIONS = StorageOptions(
    journal_file_bytes=256 * 1024,
    entry_bytes_max=128 * 1024,
    free_bytes_min=0,
    segment_bytes=128 * 1024,
    checkpoint_journal_bytes=256 * 1024,
    cache_bytes=64 * 1024,
    read_ahead_bytes=16 * 1024,
)

A = TypeVar("A", bound=messages.Answer)


class Arrived(NamedTuple):
    """An answer as a client sees it."""

    request_id: int
    answer: messages.Answer
    body: bytes


class Received(NamedTuple):
    """A delivery taken apart."""

    token: bytes
    until_ms: int
    runs: Runs
    bodies: list[bytes]
    heads: list[messages.DeliveredBatch]

    def receipt(self, runs: Runs | None = None) -> messages.Receipt:
        """A receipt for all of it, or for some."""
        return messages.Receipt(self.token, self.runs if runs is None else runs)

    def counts(self) -> list[int]:
        """Receive counts, one each."""
        found: list[int] = []
        for head in self.heads:
            counts = head.receive_counts
            found += [counts] * head.count if isinstance(counts, int) else counts
        return found


class NodeHarness:
    """One connection to one node; `now_ms` moves only when told to."""

    def __init__(self, disk: SimulatedDisk | None = None, options: StorageOptions = OPTIONS) -> None:
        self.disk = disk if disk is not None else SimulatedDisk(random.Random(1))
        self.options = options
        self.now_ms = START_MS
        self.uncertainty_us: int | None = 0
        """Of the node's clock, which shows `now_ms`; None: it knows nothing."""
        self._next_request = 1
        self._open()

    def _open(self) -> None:
        identity = Identity("node-under-test", b"s" * 32)
        store = Store.open(self.disk, self.options, identity)
        environment = Environment("0.1.0", "/simulated", lambda: (0.0, 0), self.clock)
        self.node = self.make_node(store, environment)
        self.readers = {1: FrameReader()}
        self.arrived: dict[int, list[Arrived]] = {1: []}
        self.node.connected(1)
        self.call(messages.Hello([1], "test"))

    def make_node(self, store: Store, environment: Environment) -> Node:
        """The node under test."""
        return Node(store, environment, self.now_ms)

    def clock(self) -> ClockInterval | None:
        """What the node knows of the time."""
        return None if self.uncertainty_us is None else around(self.now_ms * 1_000, self.uncertainty_us)

    # -- requests --------------------------------------------------------------------------------------------

    def start(self, request: messages.Request, body: Buffer = b"", connection: int = 1) -> int:
        """Hands a request over and ends the turn; returns its id."""
        request_id = self._next_request
        self._next_request += 1
        head = memoryview(messages.encode_message(request))
        self.node.handle(connection, Frame(request_id, head, memoryview(body)), self.now_ms)
        self.turn()
        return request_id

    def ask(self, request: messages.Request, body: Buffer = b"", connection: int = 1) -> Arrived:
        """A request and its answer, failures included."""
        request_id = self.start(request, body, connection)
        found = self.answers(request_id, connection)
        assert len(found) == 1, f"{len(found)} answers to {request}"
        return found[0]

    def call(self, request: messages.Request, body: Buffer = b"", connection: int = 1) -> messages.Answer:
        """A request that must not fail, and its answer."""
        answer = self.ask(request, body, connection).answer
        assert not isinstance(answer, messages.Failed), answer
        return answer

    def fail(self, request: messages.Request, body: Buffer = b"") -> messages.Failed:
        """A request that must fail."""
        answer = self.ask(request, body).answer
        assert isinstance(answer, messages.Failed), answer
        return answer

    def answers(self, request_id: int, connection: int = 1) -> list[Arrived]:
        """Takes what has arrived for a request."""
        found = [arrived for arrived in self.arrived[connection] if arrived.request_id == request_id]
        self.arrived[connection] = [a for a in self.arrived[connection] if a.request_id != request_id]
        return found

    def connect(self) -> int:
        """Another connection, greeted."""
        connection = max(self.readers, default=0) + 1
        self.readers[connection] = FrameReader()
        self.arrived[connection] = []
        self.node.connected(connection)
        self.call(messages.Hello([1], "test"), connection=connection)
        return connection

    # -- time and disk ---------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Flushes and jobs until nothing is left to do, then collects answers."""
        for _ in range(10_000):
            flush = self.node.take_flush()
            if flush is not None:
                flush.run()
                self.node.flushed(flush, self.now_ms)
            jobs = self.node.take_jobs()
            for job in jobs:
                job.run()
                self.node.job_done(job, self.now_ms)
            self._collect()
            if flush is None and not jobs and not self.node.has_more():
                self.node.next_wakeup_ms()  # as a driver does, to set its timer
                return
        raise AssertionError("the node never comes to rest")

    def _collect(self) -> None:
        for connection, buffers in self.node.take_output():
            for frame in self.readers[connection].feed(b"".join(buffers)):
                answer = messages.decode_answer(frame.head)
                self.arrived[connection].append(Arrived(frame.request_id, answer, bytes(frame.body)))

    def advance(self, milliseconds: int) -> None:
        """Lets time pass, stopping wherever the node wants to be woken."""
        end = self.now_ms + milliseconds
        while True:
            wakeup = self.node.next_wakeup_ms()
            if wakeup is None or wakeup > end:
                break
            self.now_ms = max(self.now_ms, wakeup)
            self.node.tick(self.now_ms)
            self.turn()
            following = self.node.next_wakeup_ms()
            if following is not None and following <= self.now_ms:
                self.now_ms += 1
        self.now_ms = max(end, self.now_ms)

    def crash(self) -> None:
        """Power loss: what was not synced may be gone; then a restart."""
        self.disk.crash()
        self.disk = self.disk.reopen()
        self._open()

    def restart(self) -> None:
        """A clean stop and start."""
        self.node.close(self.now_ms)
        self.disk = self.disk.reopen()
        self._open()

    # -- shorthand -------------------------------------------------------------------------------------------

    def create(self, name: str, **settings: object) -> int:
        """A queue with these settings; returns its id."""
        answer = self.call(messages.CreateQueue(name, QueueSettings(**settings)))  # type: ignore[arg-type]  # as the caller names them
        assert isinstance(answer, messages.QueueDescription)
        return answer.queue_id

    def show(self, name: str) -> messages.QueueDescription:
        """The queue as an operator sees it."""
        answer = self.call(messages.DescribeQueue(name))
        assert isinstance(answer, messages.QueueDescription)
        return answer

    def send(self, queue_id: int, bodies: Sequence[bytes], **columns: object) -> messages.SendResult:
        """A batch of messages."""
        request = send_request(queue_id, columns)
        answer = self.call(request, encode_parts(bodies, **columns))  # type: ignore[arg-type]  # as the caller names them
        assert isinstance(answer, messages.SendResult)
        return answer

    def receive(self, queue_id: int, max_messages: int = 10, **options: object) -> Received:
        """What is ready now."""
        arrived = self.ask(messages.Receive(queue_id, max_messages, **options))  # type: ignore[arg-type]  # as the caller names them
        return opened(arrived)

    def delete(self, received: Received, runs: Runs | None = None) -> messages.ReceiptOutcome:
        """Deletes what was received."""
        answer = self.call(messages.Delete([received.receipt(runs)]))
        assert isinstance(answer, messages.Settled)
        return answer.outcomes[0]

    def drain(self, queue_id: int) -> list[bytes]:
        """Receives and deletes everything that is ready."""
        bodies: list[bytes] = []
        while (received := self.receive(queue_id, 100)).bodies:
            bodies += received.bodies
            assert self.delete(received).done == len(received.bodies)
        return bodies


def send_request(queue_id: int, columns: dict[str, object]) -> messages.Send:
    """The request that goes with a batch; takes what belongs to it out of the columns."""
    fields = ("producer", "number", "process", "counter", "time_us", "uncertainty_us")
    named = {field: columns.pop(field) for field in fields if field in columns}
    return messages.Send(queue_id, **named)  # type: ignore[arg-type]  # as the caller names them


def taken_apart(heads: Sequence[DeliveredBatch | LoggedBatch], body: Buffer) -> tuple[Runs, list[bytes]]:
    """The runs and the bodies of the batches that an answer consists of."""
    runs: Runs = []
    bodies: list[bytes] = []
    offset = 0
    for head in heads:
        batch = Batch(body[offset : offset + head.size])
        assert batch.count == head.count
        offset += head.size
        bodies += batch.bodies()
        runs.append((head.first, head.count))
    assert offset == len(body)
    return runs, bodies


def opened(arrived: Arrived) -> Received:
    """Takes a delivery apart."""
    answer = arrived.answer
    assert isinstance(answer, messages.Delivery), answer
    runs, bodies = taken_apart(answer.batches, arrived.body)
    return Received(answer.token, answer.until_ms, runs, bodies, list(answer.batches))
