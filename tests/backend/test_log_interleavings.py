"""A retained log while everything happens at once: sends, reads, flushes and jobs in any order, cuts and crashes.

Whatever the order, an offset never holds two different things, reads have no gaps, and what was acknowledged is read
until the settings allow it to go.
"""

from __future__ import annotations

import random

import pytest

from penstock.model.batch import encode_parts
from penstock.simulation.disk import SimulatedDisk
from penstock.storage.flush import Flush
from penstock.storage.job import Job
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import Arrived, NodeHarness
from tests.backend.log_reader import opened_slice, read_all

RETAIN_BYTES = 400_000


class Schedule:
    """A node whose flushes and jobs end when the dice say so."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.harness = NodeHarness(SimulatedDisk(random.Random(seed), cold_reads=0.3))
        consumption = self.dice.choice(["log", "both"])
        self.queue_id = self.harness.create("events", consumption=consumption, retain_bytes=RETAIN_BYTES)
        self.receives = consumption == "both"
        self.flush: Flush | None = None
        self.jobs: list[Job] = []
        self.known: dict[int, bytes] = {}
        """What was acknowledged or read, by number."""
        self.sends: dict[int, list[bytes]] = {}
        self.reads: dict[int, messages.ReadLog] = {}
        self.request = 1_000_000
        self.answered = self.segments = 0

    def ask(self, request: messages.Request, body: bytes = b"") -> int:
        self.request += 1
        head = memoryview(messages.encode_message(request))
        frame = Frame(self.request, head, memoryview(body))
        self.harness.node.handle(1, frame, self.harness.now_ms)
        return self.request

    def send(self) -> None:
        size = self.dice.choice([10, 1_000, 9_000])
        count = self.dice.randint(1, 8)
        bodies = [b"%d/%d/" % (self.request, place) + bytes(size) for place in range(count)]
        self.sends[self.ask(messages.Send(self.queue_id), encode_parts(bodies))] = bodies

    def read(self) -> None:
        highest = max(self.known, default=0)
        start = self.dice.randint(max(1, highest - 200), highest + 1)
        limits = {
            "max_messages": self.dice.choice([1, 7, 1_000]),
            "max_bytes": self.dice.choice([100, 30_000, None]),
        }
        request = messages.ReadLog(self.queue_id, start, wait_ms=self.dice.choice([0, 500]), **limits)  # type: ignore[arg-type]  # as the caller names them
        self.reads[self.ask(request)] = request

    def go_on(self) -> None:
        """Ends a flush or a job, or begins what can be begun."""
        harness, node = self.harness, self.harness.node
        if self.flush is None:
            self.flush = node.take_flush()
        elif self.dice.random() < 0.5:
            self.flush.run()
            node.flushed(self.flush, harness.now_ms)
            self.flush = None
        self.jobs += node.take_jobs()
        if self.jobs and self.dice.random() < 0.6:
            job = self.jobs.pop(0)
            job.run()
            node.job_done(job, harness.now_ms)
        harness._collect()
        for arrived in harness.arrived[1]:
            self.arrived(arrived)
        harness.arrived[1] = []

    def arrived(self, arrived: Arrived) -> None:
        answer = arrived.answer
        if isinstance(answer, messages.SendResult):
            ((first, count),) = answer.runs
            bodies = self.sends.pop(arrived.request_id)
            assert len(bodies) == count
            self.learn(first, bodies)
        elif isinstance(answer, messages.Delivery) and answer.batches:
            runs = [(batch.first, batch.count) for batch in answer.batches]
            self.ask(messages.Delete([messages.Receipt(answer.token, runs)]))
        elif arrived.request_id in self.reads:
            request = self.reads.pop(arrived.request_id)
            if isinstance(answer, messages.Failed):
                assert answer.code == "offset-gone", answer
                return
            found = opened_slice(arrived)
            assert not found.runs or found.runs[0][0] == request.start
            self.learn(request.start, found.bodies)
            self.answered += bool(found.bodies)

    def learn(self, first: int, bodies: list[bytes]) -> None:
        for sequence, body in enumerate(bodies, first):
            assert self.known.setdefault(sequence, body) == body, f"message {sequence} has changed"

    def receive(self) -> None:
        if self.receives:
            self.ask(messages.Receive(self.queue_id, 50, visibility_timeout_ms=1_000))

    def pass_time(self) -> None:
        self.harness.now_ms += self.dice.choice([1, 50, 300])
        self.harness.node.tick(self.harness.now_ms)
        self.harness.node.next_wakeup_ms()

    def crash(self) -> None:
        self.flush, self.jobs = None, []
        self.sends.clear()
        self.reads.clear()
        self.harness.crash()
        self.check_all()

    def check_all(self) -> None:
        """Reads the whole log: it is what was acknowledged or read before, as far as it is not to be cut."""
        statistics = self.harness.show("events").statistics
        self.segments += statistics.segment_files
        found = read_all(self.harness, self.queue_id)
        self.learn(statistics.log_begin, found)
        end = statistics.log_begin + len(found)
        assert end > max(self.known, default=0), "something that was acknowledged or read is gone"
        newest = 0
        for sequence in range(max(self.known, default=0), 0, -1):
            if newest >= RETAIN_BYTES:
                break
            assert sequence >= statistics.log_begin, "cut though it was promised"
            newest += len(self.known[sequence])


@pytest.mark.parametrize("seed", range(12))
def test_an_offset_holds_one_thing_forever(seed: int) -> None:
    schedule = Schedule(seed)
    steps = [
        schedule.send,
        schedule.read,
        schedule.go_on,
        schedule.receive,
        schedule.pass_time,
        schedule.crash,
    ]
    for _ in range(2_500):
        schedule.dice.choices(steps, [10, 10, 40, 4, 3, 0.3])[0]()
    schedule.crash()
    assert schedule.answered > 50
    assert schedule.segments > 0
