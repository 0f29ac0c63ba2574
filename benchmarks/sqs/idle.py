"""What waiting costs: connections at rest and long polls, held by one server process at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.figures import Figure, figure, latency
from benchmarks.sqs.server import raise_file_limit, sqs_server
from benchmarks.sqs.singles import send_singly
from benchmarks.sqs.tasks import HoldConnections, HoldPolls, SendSingly
from benchmarks.stage import Server, Stage

CONNECTIONS = 10_000
POLLS = 5_000
SIZE_BYTES = 1024
_OTHER_FILES = 600
"""What a server has open besides: its data, and the connections that send to the polls."""
_SECONDS = 4.0


def measure(stage: Stage) -> Iterator[Figure]:
    """First the connections, then the polls beside them, then a message for every poll."""
    files = raise_file_limit() - _OTHER_FILES
    connections, polls = CONNECTIONS, POLLS
    if files < connections + polls:
        connections, polls = files * 2 // 3, files // 3
    resting, waiting = stage.loads
    with sqs_server(stage) as (server, endpoint):
        send_singly(SendSingly(endpoint=endpoint, messages=100, size_bytes=SIZE_BYTES))
        server.client.queue("bench").purge()
        empty = server.resident_bytes()
        stage.progress(f"{connections:,} connections at rest")
        resting.start(HoldConnections(endpoint=endpoint, connections=connections))
        resting.ready(120.0)
        with_connections = server.resident_bytes()
        idle_share = _busy_share(server)
        stage.progress(f"{polls:,} long polls wait beside them")
        waiting.start(HoldPolls(endpoint=endpoint, polls=polls, size_bytes=SIZE_BYTES))
        waiting.ready(120.0)
        with_polls = server.resident_bytes()
        waiting_share = _busy_share(server)
        waiting.go_on()
        delivered = waiting.finish()
        stage.progress("every connection at rest is used once more")
        beside = latency(send_singly(SendSingly(endpoint=endpoint, messages=500, size_bytes=SIZE_BYTES)))
        resting.go_on()
        rested = resting.finish()
    yield figure(
        "sqs.idle.connections",
        "connections at rest",
        "",
        [rested.messages],
        "each used before and after, all open at once",
    )
    yield figure(
        "sqs.idle.connection-memory",
        "  memory of a connection",
        "KB",
        [(with_connections - empty) / connections / 1e3],
    )
    yield figure("sqs.idle.cpu", "  server CPU meanwhile", "%", [100 * idle_share], "of one core")
    yield figure(
        "sqs.idle.polls", "long polls waiting beside them", "", [delivered.messages], "each got one message"
    )
    yield figure(
        "sqs.idle.poll-memory",
        "  memory of a long poll",
        "KB",
        [(with_polls - with_connections) / polls / 1e3],
    )
    yield figure("sqs.idle.poll-cpu", "  server CPU meanwhile", "%", [100 * waiting_share], "of one core")
    yield figure(
        "sqs.idle.wake",
        "  first send → last poll answered",
        "ms",
        [1e3 * delivered.timed_seconds],
        f"{polls:,} messages in batches of ten, all at once",
    )
    yield figure(
        "sqs.idle.single.p50", "  one SendMessage beside the connections, p50", "µs", [beside.p50_us]
    )


def _busy_share(server: Server) -> float:
    """The share of a core that the server uses while nothing is asked of it."""
    before, started = server.cpu_seconds(), time.monotonic()
    time.sleep(_SECONDS)
    return (server.cpu_seconds() - before) / (time.monotonic() - started)
