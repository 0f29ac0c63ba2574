"""Clients of front ends that record usage, and their processes, which are killed at any moment; the check is I12.

Front ends on one host share a directory, as in production. Each process sends what dead ones have left there. At the end
the last ones stop, and continue until nothing is left in the directory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from penstock.cluster.layout.entries import decode_queue, queue_key
from penstock.columnar.usage import USAGE_QUEUE
from penstock.model.settings import QueueSettings
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.metered_front_end import HOME, Life, MeteredFrontEnd, ProcessKilled
from penstock.simulation.cluster.router import ClusterStage
from penstock.simulation.cluster.usage_rows import Call, check, usage_rows
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.history import History
from penstock.simulation.spool_files import FOLDER, SpoolHost
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.violation import Violation
from penstock.sqs.protocols.http import HttpRequest, HttpResponse
from penstock.wire.messages import CreateQueue, DeleteQueue, Done, QueueDescription

QUEUE = "metered"
_URL = f"http://127.0.0.1:9324/{HOME.account}/{QUEUE}"
_LIVES_MS = (150, 700, 2_500, 6_000)
_CLEAN_SHARE = 0.3
"""So many processes are stopped, and not killed."""
_KILLED_SHARE = 0.01
"""So many answers are the moment at which their process is killed: it is made, and does not leave."""
_GRACE_MS = 3_000
_CLEARING = 10
_UNKNOWN = "Dance"
"""No action of SQS."""


class MeteredCalls:
    """All of it, for one run."""

    def __init__(self, stage: ClusterStage, random: Random, replicas: int, counts: Counter[str]) -> None:
        self._stage = stage
        self._random = random
        self._replicas = replicas
        self._counts = counts
        self._host = SpoolHost(SimulatedDisk(random))
        self._spool_bytes = random.choice((1, 1, 100_000))
        """1: as small as may be."""
        self._front_ends: list[MeteredFrontEnd] = []
        """Those that take requests."""
        self._started = 0
        self._serving = 0
        """Tasks that see to it that a front end lives."""
        self._calls: list[Call] = []
        self._lives: list[Life] = []

    def create(self) -> Steps[None]:
        """Makes the queue that is called about; the log of usage is made by the front ends."""
        settings = QueueSettings(replicas=self._replicas, visibility_timeout_ms=1_000)
        client = self._stage.client("metered")
        while not self._stage.stopping:
            reply = yield Ask(client, CreateQueue(QUEUE, settings))
            if reply is not None and isinstance(reply.answer, QueueDescription):
                return
            yield Pause(100)

    def start(self) -> None:
        """Starts all of them."""
        for _ in range(self._random.randint(1, 2)):
            self._serving += 1
            self._stage.tasks.start(self._serve())
        for _ in range(self._random.randint(1, 3)):
            self._stage.tasks.start(self._call())

    def _goes_on(self) -> bool:
        return not self._stage.stopping

    # -- front ends ------------------------------------------------------------------------------------------

    def _process(self) -> MeteredFrontEnd:
        self._started += 1
        name = f"front-end-{self._started}"
        return MeteredFrontEnd(name, self._stage, self._host, self._replicas, self._spool_bytes, self._random)

    def _serve(self) -> Steps[None]:
        """One process after the other."""
        stage, random = self._stage, self._random
        while self._goes_on():
            process = self._process()
            self._front_ends.append(process)
            ends_ms = stage.schedule.elapsed_ms + random.choice(_LIVES_MS)
            while process.lives and self._goes_on() and stage.schedule.elapsed_ms < ends_ms:
                yield Pause(20)
            self._front_ends.remove(process)
            if process.lives and (not self._goes_on() or random.random() < _CLEAN_SHARE):
                yield from self._stop(process)
            self._ended(process)
            if self._goes_on():
                yield Pause(random.choice((0, 100, 1_000)))
        self._serving -= 1
        if not self._serving:
            yield from self._clear()

    def _stop(self, process: MeteredFrontEnd) -> Steps[None]:
        """As `penstock frontend` stops: requests are finished, what waits is handed on, as long as that takes no longer."""
        process.stop_waiting()
        for _ in range(_GRACE_MS // 20):
            if all(call.is_over for call in self._calls if call.process is process):
                break
            yield Pause(20)
        process.close()
        for _ in range(_GRACE_MS // 20):
            if process.is_done or not process.lives:
                break
            yield Pause(20)

    def _clear(self) -> Steps[None]:
        """More processes, until nothing is left, and then the queue is deleted.

        What is left nevertheless is missing in the log, and the queue is seen by others.
        """
        for _ in range(_CLEARING):
            if not self._host.disk.list(FOLDER):
                break
            process = self._process()
            yield from self._stop(process)
            self._ended(process)
            yield Pause(200)
        client = self._stage.client("metered")
        for _ in range(_CLEARING):  # other checkers do not know its contents
            reply = yield Ask(client, DeleteQueue(QUEUE))
            if reply is not None and isinstance(reply.answer, Done):
                return
            yield Pause(200)

    def _ended(self, process: MeteredFrontEnd) -> None:
        if not process.is_done:
            process.kill()
            self._counts["front end that records usage killed"] += 1
        self._counts["usage handed on without an answer"] += process.resent
        self._lives.append(process.life)
        self._counts["usage without room"] += process.life.dropped

    # -- clients ---------------------------------------------------------------------------------------------

    def _call(self) -> Steps[None]:
        """Several requests at a time, and the next ones whether they are answered or not."""
        stage, random = self._stage, self._random
        while not stage.stopping:
            yield Pause(random.choice((5, 20, 100, 400)))
            if self._front_ends:
                process = random.choice(self._front_ends)
                for _ in range(random.choice((1, 1, 2, 5, 12))):
                    self._ask(process)

    def _ask(self, process: MeteredFrontEnd) -> None:
        action, queue, members = self._request()
        number = len(self._calls) + 1
        address = f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        recorded_as = action if action != _UNKNOWN else ""
        call = Call(process, process.collector.front_end, address, recorded_as, queue)
        self._calls.append(call)
        headers = {
            "host": "127.0.0.1:9324",
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"AmazonSQS.{action}",
        }
        request = HttpRequest("POST", "/", "", headers, json.dumps(members).encode())
        cancel = process.handle(request, address, self._answer_to(call))
        if action == "ReceiveMessage" and self._random.random() < 0.4:
            self._stage.schedule.after(self._random.randint(0, 600), lambda: self._leave(call, cancel))

    def _request(self) -> tuple[str, str, dict[str, Any]]:
        random = self._random
        arn = f"arn:aws:sqs:{HOME.region}:{HOME.account}:{QUEUE}"
        kind = random.random()
        if kind < 0.5:
            return "SendMessage", arn, {"QueueUrl": _URL, "MessageBody": "x" * random.choice((1, 30))}
        if kind < 0.75:
            wait = {"WaitTimeSeconds": random.choice((0, 1)), "MaxNumberOfMessages": 10}
            return "ReceiveMessage", arn, {"QueueUrl": _URL, **wait}
        if kind < 0.9:
            return "GetQueueUrl", arn.replace(QUEUE, "nowhere"), {"QueueName": "nowhere"}
        return _UNKNOWN, "", {}

    def _answer_to(self, call: Call) -> Callable[[HttpResponse], None]:
        def answer(response: HttpResponse) -> None:
            if not self._stage.stopping and self._random.random() < _KILLED_SHARE:
                raise ProcessKilled
            call.answers.append(response)

        return answer

    def _leave(self, call: Call, cancel: Callable[[], None]) -> None:
        """A client that waits for messages goes away."""
        if not call.answers and call.process.can_cancel():
            cancel()
            call.is_cancelled = call.process.lives

    # -- in the end ------------------------------------------------------------------------------------------

    def check(self, metadata: SimulatedMetadata, history: History) -> Iterator[Violation]:
        """Compares the rows of the log that won with the calls."""
        self._counts["call of a front end that records usage"] += len(self._calls)
        entry = metadata.entries.get(queue_key(USAGE_QUEUE))
        log = history.records[decode_queue(entry.value).queue_id] if entry is not None else []
        return check(usage_rows(log), self._calls, self._lives, history.ended_ms)
