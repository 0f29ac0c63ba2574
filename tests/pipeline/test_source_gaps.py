"""What Spark reads of a log whose numbers have gaps of billions: planned and read as drivers and tasks do, without a session."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import penstock
from penstock.pipeline.columns import MESSAGE_SCHEMA
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.source.batch_reader import LogBatchReader
from penstock.pipeline.source.options import ReadOptions, read_options
from penstock.pipeline.source.ranges import LogRange, TaskRanges
from penstock.pipeline.source.reading import read_task
from penstock.pipeline.source.stream_reader import LogStreamReader
from tests.runtime.threaded_server import Running, threaded_server

HUGE = 1 << 36
QUEUE = "events"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A server with a log of messages 1 to 40."""
    with threaded_server(tmp_path) as running, penstock.connect_blocking(running.server.url) as client:
        queue = client.create_queue(QUEUE, consumption="log")
        queue.send_batch([b"%d" % number for number in range(1, 41)])
        yield running


def send(running: Running, *numbers: int) -> None:
    with penstock.connect_blocking(running.server.url) as client:
        client.queue(QUEUE).send_batch([b"%d" % number for number in numbers])


def options(running: Running, use: Any, **words: str) -> ReadOptions:
    given = {"endpoint": f"127.0.0.1:{running.server.port}", "queue": QUEUE, **words}
    return read_options({name.lower(): word for name, word in given.items()}, use)


def rows(read: ReadOptions, tasks: list[Any]) -> list[tuple[int, int]]:
    """(number, body) of every row of the tasks."""
    return [
        (row["sequence"], int(row["body"]))
        for task in tasks
        for batch in read_task(read, MESSAGE_SCHEMA, task)
        for row in batch.to_pylist()
    ]


def test_a_batch_over_a_gap_has_as_many_tasks_as_messages_need(running: Running) -> None:
    running.leave_out(QUEUE, HUGE)
    behind = list(range(HUGE, HUGE + 20))
    send(running, *behind)
    read = options(running, "read", messagesPerTask="8")
    tasks = LogBatchReader(read, MESSAGE_SCHEMA).partitions()
    assert len(tasks) == 8
    assert rows(read, tasks) == [(number, number) for number in [*range(1, 41), *behind]]
    read = options(running, "read", startingOffsets='{"0": 55}')
    assert rows(read, LogBatchReader(read, MESSAGE_SCHEMA).partitions()) == [(n, n) for n in behind]


def test_a_stream_goes_on_behind_what_a_failover_lost(running: Running) -> None:
    """Its checkpoint says that it has read up to 60; messages 41 to 59 are lost, and their numbers left out."""
    running.leave_out(QUEUE, HUGE)
    read = options(running, "readStream", maxMessagesPerTrigger="7")
    reader = LogStreamReader(read, MESSAGE_SCHEMA)
    queue_id = reader._look()[1]
    start: dict[str, Any] = {"queue": queue_id, "next": {"0": 60}, "missing": 0}
    nothing = reader.latestOffset(start, ReadMaxRows(7))
    assert reader.partitions(start, nothing) == []
    behind = list(range(HUGE, HUGE + 20))
    send(running, *behind)
    found: list[tuple[int, int]] = []
    for _ in range(3):
        end = reader.latestOffset(start, ReadMaxRows(7))
        found += rows(read, list(reader.partitions(start, end)))
        start = end
    assert found == [(number, number) for number in behind]
    assert start["missing"] == 0
    latest = reader.reportLatestOffset()
    assert latest is not None
    assert latest["gaps"] == {"0": ((41, HUGE),)}
    first = reader.latestOffset({"queue": queue_id, "next": {"0": 30}, "missing": 0}, ReadAllAvailable())
    whole = rows(read, list(reader.partitions({"queue": queue_id, "next": {"0": 30}, "missing": 0}, first)))
    assert whole == [(number, number) for number in [*range(30, 41), *behind]]
    reader.stop()


def test_what_is_lost_of_a_planned_micro_batch_fails_the_query_or_is_said(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    running.leave_out(QUEUE, HUGE)
    send(running, HUGE)
    read = options(running, "readStream")
    reader = LogStreamReader(read, MESSAGE_SCHEMA)
    queue_id = reader._look()[1]
    start = {"queue": queue_id, "next": {"0": 30}, "missing": 0}
    planned = {"queue": queue_id, "next": {"0": 60}, "missing": 0}
    with pytest.raises(PipelineError, match=r"no longer has 19 messages .*partition 0: 41 to 59"):
        reader.partitions(start, planned)
    lenient = options(running, "readStream", failOnDataLoss="false")
    allowed = LogStreamReader(lenient, MESSAGE_SCHEMA)
    with caplog.at_level(logging.WARNING):
        tasks = list(allowed.partitions(start, planned))
    assert "no longer has 19 messages" in caplog.text
    assert rows(lenient, tasks) == [(number, number) for number in range(30, 41)]
    after = allowed.latestOffset(planned, ReadAllAvailable())
    assert rows(lenient, list(allowed.partitions(planned, after))) == [(HUGE, HUGE)]


def test_a_task_says_what_a_failover_lost_since_it_was_planned(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    running.leave_out(QUEUE, HUGE)
    send(running, HUGE)
    read = options(running, "read")
    queue_id = LogStreamReader(options(running, "readStream"), MESSAGE_SCHEMA)._look()[1]
    task = TaskRanges((LogRange(38, 50),), 0, queue_id)
    with pytest.raises(PipelineError, match=r"no longer has 9 messages .*partition 0: 41 to 49"):
        rows(read, [task])
    with caplog.at_level(logging.WARNING):
        assert rows(options(running, "read", failOnDataLoss="false"), [task]) == [
            (38, 38),
            (39, 39),
            (40, 40),
        ]
    assert "no longer has 9 messages" in caplog.text
