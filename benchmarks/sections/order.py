"""What each kind of order costs: messages in and out and the time they take, beside a queue without order.

All queues are in one server. In every round each has its turn, beginning with another one each time, so that a
slow moment of the machine hits all alike; a ratio compares a turn with that of best-effort in the same round.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.figures import Figure, Latency, figure
from benchmarks.order_modes import BEST_EFFORT, MODES, Mode
from benchmarks.processes import BenchError
from benchmarks.sections.throughput import Column, Load, size_name
from benchmarks.stage import Server, Stage
from benchmarks.tasks import SendPaced, SendSingly, Watch

RATE = 500
"""Messages a second of the end-to-end figures: few enough that the slowest kind keeps up."""
LATENCY_BYTES = 1024
WARM_UP_MESSAGES = 10_000
TURN_SHARE = 0.6
"""A turn is so much shorter than a round of other sections, for there are many."""
SETTLE_SECONDS = 30.0
QUIET_SECONDS = 4.0


def measure(stage: Stage) -> Iterator[Figure]:
    """Rates for each message size, then latencies."""
    with stage.server() as server:
        for mode in MODES:
            server.client.create_queue(mode.name, **mode.queue_options)
        for size_bytes in stage.options.sizes:
            yield from _rates(stage, server, size_bytes)
        yield from _latencies(stage, server)


def turns(number: int) -> tuple[Mode, ...]:
    """The order of the modes in a round."""
    first = number % len(MODES)
    return MODES[first:] + MODES[:first]


# -- rates ---------------------------------------------------------------------------------------------------


class _Lane:
    """The turns of one mode."""

    def __init__(self, stage: Stage, server: Server, mode: Mode, size_bytes: int) -> None:
        self._server = server
        self._mode = mode
        self._load = Load(stage, server, mode.name, size_bytes, mode.groups)
        self._messages_in = self._messages_out = WARM_UP_MESSAGES
        self._seconds = stage.options.round_seconds * TURN_SHARE
        self.inward, self.outward = Column(), Column()
        self.late: list[float] = []
        """Percent of the messages of each turn."""

    def warm_up(self) -> None:
        """Chooses how many messages make a turn of the wanted length, each way by its own rate."""
        self.turn()
        in_a_turn, out_a_turn = (
            max(WARM_UP_MESSAGES, int(column.rates[0] * self._seconds) // 1_000 * 1_000)
            for column in (self.inward, self.outward)
        )
        self._messages_in, self._messages_out = max(in_a_turn, out_a_turn), out_a_turn
        self.inward, self.outward, self.late = Column(), Column(), []

    def turn(self) -> None:
        """In, then out as much of it as fits the turn; the rest is purged."""
        before = self._server.statistics(self._mode.name).late_total
        self._load.publish(self._messages_in, self.inward)
        _settle(self._server, self._mode)
        late = self._server.statistics(self._mode.name).late_total - before
        self.late.append(late / self._messages_in * 100)
        there = min(self._messages_out, self._messages_in - late)
        if not there:
            raise BenchError(f"all messages of {self._mode.title} were late: there is nothing to receive")
        self._load.receive(there, self.outward, everything=False)
        _clear(self._server, self._mode)


def _rates(stage: Stage, server: Server, size_bytes: int) -> Iterator[Figure]:
    size = size_name(size_bytes)
    lanes = {mode: _Lane(stage, server, mode, size_bytes) for mode in MODES}
    for mode, lane in lanes.items():
        stage.progress(f"{size}: {mode.title} warms up")
        lane.warm_up()
    for number in range(stage.options.rounds):
        for mode in turns(number):
            stage.progress(f"{size}: {mode.title}, round {number + 1}")
            lanes[mode].turn()
    inward = {mode: lane.inward for mode, lane in lanes.items()}
    outward = {mode: lane.outward for mode, lane in lanes.items()}
    for way, title, columns in (("publish", "publish", inward), ("receive", "receive + delete", outward)):
        for mode in MODES:
            name, column = f"order.{mode.name}.{way}.{size_bytes}", columns[mode]
            yield figure(f"{name}.rate", f"{title}, {size}: {mode.title}", "msg/s", column.rates)
            if mode is not BEST_EFFORT:
                yield _ratio(name, column.rates, columns[BEST_EFFORT].rates)
            yield figure(f"{name}.server-cpu", "  server CPU", "s/M", column.server_cpu)
            if way == "publish" and mode.sorted:
                yield figure(f"order.{mode.name}.late.{size_bytes}", "  late", "%", lanes[mode].late)


def _settle(server: Server, mode: Mode) -> None:
    """Receiving is timed from when everything may be received: how long that takes is another figure."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (statistics := server.statistics(mode.name)).held or statistics.moving:
        if time.monotonic() > deadline:
            raise BenchError(f"{mode.title} holds {statistics.held} messages {SETTLE_SECONDS:.0f} s later")
        time.sleep(0.005)


def _clear(server: Server, mode: Mode) -> None:
    """Leaves nothing to the next turn: neither what was not received nor what was late."""
    queues = [mode.name]
    if server.statistics(mode.name).late_total:
        queues.append(f"{mode.name}.late")
    deadline = time.monotonic() + SETTLE_SECONDS
    for queue in queues:
        while (left := server.statistics(queue)).ready + left.leased + left.held + left.delayed:
            if time.monotonic() > deadline:
                raise BenchError(f"{queue} is not empty {SETTLE_SECONDS:.0f} s after it was purged")
            server.client.queue(queue).purge()


# -- latencies -----------------------------------------------------------------------------------------------


def _latencies(stage: Stage, server: Server) -> Iterator[Figure]:
    singles: dict[Mode, list[Latency]] = defaultdict(list)
    end_to_end: dict[Mode, list[Latency]] = defaultdict(list)
    for number in range(stage.options.rounds):
        for mode in turns(number):
            stage.progress(f"latency: {mode.title}, round {number + 1}")
            singles[mode].append(_send_singly(stage, server, mode))
            end_to_end[mode].append(_send_paced(stage, server, mode))
    yield from _latency_figures("send", "send, 1 KiB, one at a time", singles)
    yield from _latency_figures("end-to-end", f"end to end, 1 KiB at {RATE:,}/s", end_to_end)


def _latency_figures(kind: str, title: str, latencies: Mapping[Mode, Sequence[Latency]]) -> Iterator[Figure]:
    for mode in MODES:
        for share in ("p50", "p99"):
            name = f"order.{mode.name}.{kind}.{share}"
            values, base = (
                [one.p50_us if share == "p50" else one.p99_us for one in latencies[which]]
                for which in (mode, BEST_EFFORT)
            )
            yield figure(name, f"{title}, {share}: {mode.title}", "µs", values)
            if mode is not BEST_EFFORT:
                yield _ratio(name, values, base)
                added = [value - other for value, other in zip(values, base, strict=True)]
                yield figure(f"{name}.added", "  more than best-effort", "µs", added)


def _send_singly(stage: Stage, server: Server, mode: Mode) -> Latency:
    messages = 200 if stage.options.quick else 500
    task = SendSingly(
        url=server.url, queue=mode.name, messages=messages, size_bytes=LATENCY_BYTES, groups=mode.groups
    )
    outcome = stage.loads[0].run(task)
    _settle(server, mode)
    _clear(server, mode)
    return outcome.measured


def _send_paced(stage: Stage, server: Server, mode: Mode) -> Latency:
    messages = RATE // 2 if stage.options.quick else 3 * RATE // 2
    producer, consumer = stage.loads
    # What is late never comes, so whoever waits for all may wait forever.
    consumer.start(Watch(url=server.url, queue=mode.name, messages=messages, quiet_seconds=QUIET_SECONDS))
    consumer.ready()
    producer.run(
        SendPaced(
            url=server.url,
            queue=mode.name,
            messages=messages,
            size_bytes=LATENCY_BYTES,
            rate=RATE,
            groups=mode.groups,
        )
    )
    outcome = consumer.finish()
    if outcome.latency is None or outcome.messages < messages // 2:
        raise BenchError(f"{outcome.messages} of {messages} messages of {mode.title} were delivered")
    _clear(server, mode)
    return outcome.latency


def _ratio(name: str, values: Sequence[float], base: Sequence[float]) -> Figure:
    """Round by round, so that the drift of the machine is in neither."""
    ratios = [value / other for value, other in zip(values, base, strict=True)]
    return figure(f"{name}.ratio", "  beside best-effort", "×", ratios)
