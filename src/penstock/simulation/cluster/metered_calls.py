"""Front ends that count the calls they answer (I12): with the collector and the spool of the product, in a cluster that fails.

Each call is noted before it is answered. Batches of notes go to a log of the cluster under a number of their own, and again where no
answer came. Processes are killed at any moment, also between a note and its answer; the next one hands on what they left. In the
end the rows of the log are the calls that were answered, each once.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random
from typing import NamedTuple

from penstock.columnar.reading import Row, rows_of
from penstock.columnar.usage import USAGE, USAGE_QUEUE
from penstock.model.batch import Batch, encode_one
from penstock.model.internal_queues import internal_log_settings
from penstock.model.records import Sent, decode_record
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.violation import Violation
from penstock.simulation.workload.stage import Stage
from penstock.usage.collector import UsageCollector
from penstock.usage.event import UsageEvent
from penstock.usage.spool import LEAST_BYTES, Spool
from penstock.wire.messages import (
    CreateQueue,
    DescribeQueue,
    Failed,
    QueueDescription,
    Send,
    SendResult,
)

NAME = "I12"
_ACTION = "GetQueueAttributes"
_KILLED_SHARE = 0.02
"""So many calls are the last of their process: noted, and never answered."""
_WAITING_MOST = 150
"""While so many notes wait nothing is called: a batch of more is larger than an entry of these nodes may be."""


class _Call(NamedTuple):
    queue: str
    outcome: str
    answered: bool


class _ShelvedCollector(UsageCollector):
    """The product's, with spools in memory that outlive a process that is killed."""

    def __init__(self, shelf: list[mmap.mmap], front_end: str, token: bytes) -> None:
        self._shelf = shelf
        super().__init__("", front_end, token=token, spool_bytes=LEAST_BYTES)

    def _adopted(self) -> list[Spool]:
        self._shelf[:] = [memory for memory in self._shelf if not memory.closed]
        return [Spool(memory, None, None) for memory in self._shelf]

    def _made(self, name: str, size: int) -> Spool:
        spool = Spool.make(None, size, self.front_end, self._producer)
        self._shelf.append(spool._memory)
        return spool


class _Process:
    """One life of a front end."""

    def __init__(self, collector: UsageCollector) -> None:
        self.collector = collector
        self._lives = True
        self.is_done = False
        """Whether it answers nothing more."""

    def lives(self) -> bool:
        """Asked after every wait: it may have been killed meanwhile."""
        return self._lives

    def kill(self) -> None:
        """It does nothing more."""
        self._lives = False


class MeteredCalls:
    """Front ends one after the other on one host, and what they answered."""

    def __init__(self, stage: Stage, random: Random, replicas: int, counts: Counter[str]) -> None:
        self._stage = stage
        self._random = random
        self._replicas = replicas
        self._counts = counts
        self._shelf: list[mmap.mmap] = []
        self._calls: dict[str, _Call] = {}
        """By request: what was noted."""
        self.queue_id = 0

    def create(self) -> Steps[None]:
        """Makes the log."""
        client = self._stage.client("metered")
        while not self._stage.stopping and not self.queue_id:
            reply = yield Ask(client, CreateQueue(USAGE_QUEUE, internal_log_settings(self._replicas)))
            if reply is not None and isinstance(reply.answer, QueueDescription):
                self.queue_id = reply.answer.queue_id
            yield Pause(100)

    def start(self) -> None:
        """The first process begins; others follow those that are killed."""
        self._stage.tasks.start(self._live())

    def _live(self) -> Steps[None]:
        stage, random = self._stage, self._random
        while True:
            process = _Process(_ShelvedCollector(self._shelf, "front-end", random.randbytes(16)))
            stage.tasks.start(self._serve(process))
            stage.tasks.start(self._hand_on(process))
            lives_ms = random.choice((200, 1_000, 3_000))
            while lives_ms > 0 and process.lives() and not stage.stopping:
                yield Pause(50)
                lives_ms -= 50
            if stage.stopping and process.lives():
                return  # this one hands on everything that is left
            process.kill()
            self._counts["front end killed"] += 1

    def _serve(self, process: _Process) -> Steps[None]:
        stage, random, client = self._stage, self._random, self._stage.client("metered-client")
        names = [*(queue.name for queue in stage.scenario.queues), "nowhere"]
        while not stage.stopping and process.lives():
            yield Pause(random.choice((1, 5, 30)))
            if process.collector.totals().waiting >= _WAITING_MOST:
                continue
            queue = random.choice(names)
            reply = yield Ask(client, DescribeQueue(queue))
            if not process.lives():
                return
            outcome = "unavailable" if reply is None else "ok"
            if reply is not None and isinstance(reply.answer, Failed):
                outcome = reply.answer.code
            self._note(process, queue, outcome)
        process.is_done = True

    def _note(self, process: _Process, queue: str, outcome: str) -> None:
        request, now_ms = f"request-{len(self._calls)}", self._stage.schedule.now_ms
        process.collector.record(
            UsageEvent(now_ms, "1", "somebody", "::1", _ACTION, queue, 0, 9, 9, outcome, 200, 5, request)
        )
        if self._random.random() < _KILLED_SHARE:
            process.kill()
        self._calls[request] = _Call(queue, outcome, process.lives())

    def _hand_on(self, process: _Process) -> Steps[None]:
        random, client = self._random, self._stage.client("metered-sender")
        while process.lives():
            yield Pause(random.choice((20, 100, 400)))
            batch = process.collector.next_batch() if process.lives() else None
            if batch is None:
                if process.is_done:
                    return
                continue
            request = Send(self.queue_id, batch.producer, batch.batch, internal=True)
            reply = yield Ask(client, request, encode_one(batch.stream()))
            if reply is not None and isinstance(reply.answer, SendResult) and process.lives():
                process.collector.reported(batch)

    # -- in the end ------------------------------------------------------------------------------------------

    def check(self, log: Iterable[AppendedRecord], at_ms: int) -> Iterator[Violation]:
        """Compares the rows of the log that won with the calls."""
        rows: Counter[str] = Counter()
        counted: Counter[tuple[str, str]] = Counter()
        for row in _rows(log):
            rows[row["request_id"]] += 1
            counted[row["queue"], row["outcome"]] += 1
        twice = sorted(request for request, count in rows.items() if count > 1)
        if twice:
            yield Violation(NAME, at_ms, f"calls {twice[:5]} are in the log of usage more than once")
        strange = sorted(rows.keys() - self._calls.keys())
        if strange:
            yield Violation(NAME, at_ms, f"nobody made the calls {strange[:5]} that are in the log of usage")
        missing = [request for request in self._calls if not rows[request]]
        if missing:
            answered = sum(self._calls[request].answered for request in missing)
            yield Violation(
                NAME,
                at_ms,
                f"{len(missing)} calls, {answered} of them answered, are not in the log of usage: {missing[:5]}",
            )
        noted = Counter((call.queue, call.outcome) for call in self._calls.values())
        for kind in sorted(noted.keys() | counted.keys()):
            if noted[kind] != counted[kind]:
                yield Violation(
                    NAME,
                    at_ms,
                    f"usage counts {counted[kind]} calls of {_ACTION} for {kind}, there were {noted[kind]}",
                )


def _rows(log: Iterable[AppendedRecord]) -> Iterator[Row]:
    for written in log:
        if isinstance(decode_record(written.head), Sent):
            for body in Batch(written.payload).bodies():
                yield from rows_of(USAGE, bytes(body))
