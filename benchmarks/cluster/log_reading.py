"""What it costs to read a log of a cluster: through a front end, and by turns with that straight from the node."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cluster.sections import SIZE_BYTES
from benchmarks.cluster.stage import ClusterServer, running_cluster
from benchmarks.figures import Figure, figure
from benchmarks.processes import BenchError
from benchmarks.sections.throughput import BATCH_MESSAGES, IN_FLIGHT, Column
from benchmarks.stage import Stage
from benchmarks.tasks import Publish, ReadLog

QUEUE = "log"
MESSAGES = 200_000
QUICK_MESSAGES = 100_000
READS = 3
"""In a row: processor time comes in hundredths of a second."""
READ_SECONDS = 300.0


class Way:
    """One way of reading, and what it cost in each round."""

    def __init__(self, name: str, title: str, *, direct: bool) -> None:
        self.name = name
        self.title = title
        self.direct = direct
        self.column = Column()
        self.front_end: list[float] = []

    def read(self, stage: Stage, server: ClusterServer, messages: int) -> None:
        """One round."""
        task = ReadLog(url=server.url, queue=QUEUE, messages=messages, direct=self.direct)
        seconds = client = 0.0
        nodes, front = server.nodes.cpu_seconds(), server.front_ends.cpu_seconds()
        for _ in range(READS):
            outcome = stage.loads[0].run(task, READ_SECONDS)
            if outcome.messages != messages:
                raise BenchError(f"{outcome.messages} messages were read where {messages} had been written")
            seconds += outcome.seconds
            client += outcome.cpu_seconds
        millions = READS * messages / 1e6
        self.column.rates.append(READS * messages / seconds)
        self.column.server_cpu.append((server.nodes.cpu_seconds() - nodes) / millions)
        self.column.client_cpu.append(client / millions)
        self.front_end.append((server.front_ends.cpu_seconds() - front) / millions)

    def figures(self) -> Iterator[Figure]:
        """The rate, what each process cost, and all of it together."""
        column = self.column
        yield from column.figures(self.name, self.title, "1 KiB, in memory, one reader")
        yield figure(f"{self.name}.front-end-cpu", "  front end CPU", "s/M", self.front_end)
        all_of_it = [
            sum(each) for each in zip(column.server_cpu, column.client_cpu, self.front_end, strict=True)
        ]
        yield figure(f"{self.name}.all-cpu", "  all of it", "s/M", all_of_it)


def measure(stage: Stage) -> Iterator[Figure]:
    """Writes a log of one partition once; each round reads it both ways."""
    messages = QUICK_MESSAGES if stage.options.quick else MESSAGES
    ways = (
        Way("cluster.log.through", "read a log through a front end", direct=False),
        Way("cluster.log.direct", "read a log straight from the node", direct=True),
    )
    with running_cluster(stage) as server:
        server.client.create_queue(QUEUE, consumption="log", replicas=1, min_in_sync=1)
        stage.progress(f"writes a log of {messages:,}")
        task = Publish(
            url=server.url,
            queue=QUEUE,
            messages=messages,
            size_bytes=SIZE_BYTES,
            batch_messages=BATCH_MESSAGES,
            in_flight=IN_FLIGHT,
        )
        stage.loads[0].run(task, READ_SECONDS)
        for number in range(-1, stage.options.rounds):
            stage.progress(f"reads the log both ways, round {number + 1}")
            for way in ways:
                way.read(stage, server, messages)
                if number < 0:  # the first is to warm everybody up
                    way.column, way.front_end = Column(), []
        for way in ways:
            yield from way.figures()
