"""Messages a second: publish, receive + delete, both at once; and what they cost server and client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.figures import Figure, figure
from benchmarks.processes import BenchError
from benchmarks.stage import Server, Stage
from benchmarks.tasks import Outcome, Publish, Receive

BATCH_MESSAGES = 100
IN_FLIGHT = 64
CREDIT = 6_400
WARM_UP_MESSAGES = 20_000


@dataclass
class Column:
    """The rounds of one kind of load."""

    rates: list[float] = field(default_factory=list)
    server_cpu: list[float] = field(default_factory=list)
    client_cpu: list[float] = field(default_factory=list)

    def add(self, seconds: float, server_cpu: float, *outcomes: Outcome) -> None:
        """Takes a round."""
        messages = outcomes[0].messages
        self.rates.append(messages / seconds)
        self.server_cpu.append(server_cpu / messages * 1e6)
        self.client_cpu.append(sum(outcome.cpu_seconds for outcome in outcomes) / messages * 1e6)

    def figures(self, name: str, title: str, note: str) -> Iterator[Figure]:
        """The rate and the two costs."""
        yield figure(f"{name}.rate", title, "msg/s", self.rates, note)
        yield figure(f"{name}.server-cpu", "  server CPU", "s/M", self.server_cpu)
        yield figure(f"{name}.client-cpu", "  client CPU", "s/M", self.client_cpu)


def measure(stage: Stage) -> Iterator[Figure]:
    """For each message size."""
    for size_bytes in stage.options.sizes:
        with stage.server() as server:
            yield from measure_loads(
                stage, server, size_bytes, f".{size_bytes}", f"{size_name(size_bytes)} messages"
            )


def size_name(size_bytes: int) -> str:
    """The size as people say it."""
    return f"{size_bytes // 1024} KiB" if size_bytes % 1024 == 0 else f"{size_bytes} B"


def measure_loads(
    stage: Stage, server: Server, size_bytes: int, suffix: str, title: str, groups: int = 0, prefix: str = ""
) -> Iterator[Figure]:
    """In, then out, then both at once, on one queue."""
    queue = "throughput"
    server.client.create_queue(queue, ordering="fifo" if groups else "best-effort", visibility_timeout=600)
    load = Load(stage, server, queue, size_bytes, groups)
    messages = load.calibrate()
    publish, receive, both = Column(), Column(), Column()
    for number in range(stage.options.rounds):
        stage.progress(f"{title}: in and out, round {number + 1}")
        load.publish(messages, publish)
        load.receive(messages, receive)
    for number in range(stage.options.rounds):
        stage.progress(f"{title}: both at once, round {number + 1}")
        load.both(messages, both)
    flight = f"batches of {BATCH_MESSAGES}, {IN_FLIGHT} in flight on one connection"
    yield from publish.figures(f"{prefix}publish{suffix}", f"publish, {title}", flight)
    push = f"push, deliveries of {BATCH_MESSAGES}, credit {CREDIT:,}; each deleted as a range"
    yield from receive.figures(f"{prefix}receive{suffix}", f"receive + delete, {title}", push)
    yield from both.figures(
        f"{prefix}both{suffix}", f"both at once, {title}", "two client processes beside the server"
    )


class Load:
    """The three kinds of load on one queue."""

    def __init__(self, stage: Stage, server: Server, queue: str, size_bytes: int, groups: int) -> None:
        self._stage = stage
        self._server = server
        self._queue = queue
        self._size_bytes = size_bytes
        self._groups = groups

    def calibrate(self) -> int:
        """Warms everything up, and chooses how many messages make a round of the wanted length."""
        column = Column()
        self.publish(WARM_UP_MESSAGES, column)
        self.receive(WARM_UP_MESSAGES, column)
        wanted = int(column.rates[0] * self._stage.options.round_seconds)
        return max(WARM_UP_MESSAGES, wanted - wanted % (10 * BATCH_MESSAGES))

    def publish(self, messages: int, column: Column) -> None:
        """In."""
        before = self._server.cpu_seconds()
        outcome = self._stage.loads[0].run(self._publishing(messages))
        column.add(outcome.seconds, self._server.cpu_seconds() - before, outcome)

    def receive(self, messages: int, column: Column, *, everything: bool = True) -> None:
        """Out: everything that is there, if the caller does not know better."""
        before = self._server.cpu_seconds()
        outcome = self._stage.loads[0].run(self._receiving(messages))
        column.add(outcome.seconds, self._server.cpu_seconds() - before, outcome)
        if everything:
            self._check_empty()

    def both(self, messages: int, column: Column) -> None:
        """In and out at the same time, from the first send to the last delete."""
        producer, consumer = self._stage.loads
        before = self._server.cpu_seconds()
        consumer.start(self._receiving(messages))
        producer.start(self._publishing(messages))
        sent, received = producer.finish(), consumer.finish()
        seconds = (max(sent.ended_ns, received.ended_ns) - min(sent.started_ns, received.started_ns)) / 1e9
        column.add(seconds, self._server.cpu_seconds() - before, sent, received)
        self._check_empty()

    def _publishing(self, messages: int) -> Publish:
        return Publish(
            url=self._server.url,
            queue=self._queue,
            messages=messages,
            size_bytes=self._size_bytes,
            batch_messages=BATCH_MESSAGES,
            in_flight=IN_FLIGHT,
            groups=self._groups,
        )

    def _receiving(self, messages: int) -> Receive:
        return Receive(
            url=self._server.url,
            queue=self._queue,
            messages=messages,
            batch_messages=BATCH_MESSAGES,
            credit=CREDIT,
        )

    def _check_empty(self) -> None:
        """Figures of a load that left or lost messages would be worth nothing."""
        statistics = self._server.statistics(self._queue)
        left = statistics.ready + statistics.leased + statistics.delayed + statistics.held
        if left:
            raise BenchError(f"{left} messages were left where all should have been received and deleted")
