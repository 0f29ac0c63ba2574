"""The busy sections of SQS: many connections at once, one message at a time, and a receiver that waits."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.disk_probe import append_and_sync
from benchmarks.echo import echo_round_trips
from benchmarks.figures import Figure, figure, latency_figures
from benchmarks.processes import BenchError
from benchmarks.sections.throughput import Column
from benchmarks.sqs.server import QUEUE, sqs_server
from benchmarks.sqs.streams import RECEIVE_MESSAGES
from benchmarks.sqs.tasks import Endpoint, LongPoll, ReceiveAndDelete, Send, SendSingly
from benchmarks.stage import Server, Stage
from benchmarks.tasks import Task

SIZE_BYTES = 1024
CONNECTIONS = 32
BATCH_MESSAGES = 10
_WARM_UP_MESSAGES = 5_000


def throughput(stage: Stage) -> Iterator[Figure]:
    """Sends by one and by ten, each followed by receives that empty the queue again."""
    send, batch, receive = Column(), Column(), Column()
    with sqs_server(stage) as (server, endpoint):
        load = _Load(stage, server, endpoint)
        singles, batched = load.calibrate()
        for number in range(stage.options.rounds):
            stage.progress(f"SendMessage, SendMessageBatch, receive + delete, round {number + 1}")
            load.send(singles, 1, send)
            load.receive(singles, None)
            load.send(batched, BATCH_MESSAGES, batch)
            load.receive(batched, receive)
    connections = f"{CONNECTIONS} connections, signed and verified, on disk before the answer"
    yield from send.figures("sqs.send", "SendMessage, 1 KiB", connections)
    yield from batch.figures("sqs.send-batch", f"SendMessageBatch({BATCH_MESSAGES}), 1 KiB", connections)
    requests = [rate / BATCH_MESSAGES for rate in batch.rates]
    yield figure("sqs.send-batch.requests", "  requests", "req/s", requests)
    title = f"ReceiveMessage({RECEIVE_MESSAGES}) + DeleteMessageBatch({RECEIVE_MESSAGES}), 1 KiB"
    yield from receive.figures("sqs.receive", title, "two requests by turns on each connection")


class _Load:
    """Rounds of load on the one queue."""

    def __init__(self, stage: Stage, server: Server, endpoint: Endpoint) -> None:
        self._stage = stage
        self._server = server
        self._endpoint = endpoint

    def calibrate(self) -> tuple[int, int]:
        """Warms everything up; how many messages make a round of single and of batched sends."""
        single, batch = Column(), Column()
        self.send(_WARM_UP_MESSAGES, 1, single)
        self.send(_WARM_UP_MESSAGES, BATCH_MESSAGES, batch)
        self.receive(2 * _WARM_UP_MESSAGES, None)
        seconds = self._stage.options.round_seconds
        singles, batched = (max(_WARM_UP_MESSAGES, int(one.rates[0] * seconds)) for one in (single, batch))
        return singles, batched - batched % BATCH_MESSAGES

    def send(self, messages: int, batch_messages: int, column: Column) -> None:
        """In."""
        self._run(
            Send(
                endpoint=self._endpoint,
                connections=CONNECTIONS,
                messages=messages,
                size_bytes=SIZE_BYTES,
                batch_messages=batch_messages,
            ),
            column,
        )

    def receive(self, messages: int, column: Column | None) -> None:
        """Out: everything that is there."""
        self._run(
            ReceiveAndDelete(
                endpoint=self._endpoint, connections=CONNECTIONS, messages=messages, size_bytes=SIZE_BYTES
            ),
            column,
        )
        statistics = self._server.statistics(QUEUE)
        left = statistics.ready + statistics.leased + statistics.delayed
        if left:
            raise BenchError(f"{left} messages were left where all should have been received and deleted")

    def _run(self, task: Task, column: Column | None) -> None:
        before = self._server.cpu_seconds()
        outcome = self._stage.loads[0].run(task)
        if column is not None:
            column.add(outcome.seconds, self._server.cpu_seconds() - before, outcome)


def single(stage: Stage) -> Iterator[Figure]:
    """Disk, network and sends take turns, so that a slow moment of the machine hits all three."""
    messages = 300 if stage.options.quick else 1_500
    latencies, floors, ratios = [], [], []
    with sqs_server(stage) as (_, endpoint):
        task = SendSingly(endpoint=endpoint, messages=messages, size_bytes=SIZE_BYTES)
        stage.loads[0].run(task)
        for number in range(2 * stage.options.rounds):
            stage.progress(f"one SendMessage at a time, round {number + 1}")
            disk = append_and_sync(stage.directory, messages // 4)
            network = echo_round_trips(messages)
            outcome = stage.loads[0].run(task)
            latencies.append(outcome.measured)
            floors.append(disk.p50_us + network.p50_us)
            ratios.append(outcome.measured.p50_us / floors[-1])
    yield from latency_figures(
        "sqs.single", "SendMessage, 1 KiB, one at a time", latencies, "from asking to the whole answer"
    )
    yield figure(
        "sqs.single.floor", "append + fdatasync p50 + echo p50", "µs", floors, "in turns with the sends"
    )
    yield figure("sqs.single.ratio", "SendMessage p50 / (fdatasync p50 + echo p50)", "×", ratios)


def long_poll(stage: Stage) -> Iterator[Figure]:
    """One receiver waits, one message is sent, nothing else happens."""
    messages = 200 if stage.options.quick else 500
    latencies = []
    with sqs_server(stage) as (_, endpoint):
        task = LongPoll(endpoint=endpoint, messages=messages, size_bytes=SIZE_BYTES)
        stage.loads[0].run(LongPoll(endpoint=endpoint, messages=20, size_bytes=SIZE_BYTES))
        for number in range(stage.options.rounds):
            stage.progress(f"a long poll waits for each message, round {number + 1}")
            outcome = stage.loads[0].run(task)
            latencies.append(outcome.measured)
    yield from latency_figures(
        "sqs.long-poll", "long poll, 1 KiB", latencies, "from the send's answer to the receiver's"
    )
