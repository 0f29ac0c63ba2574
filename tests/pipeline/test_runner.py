"""Running jobs: from a log of a real server to tables that DuckDB reads, again and again, and cut short."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.columnar.lifecycle import LIFECYCLE, Change
from penstock.columnar.usage import USAGE
from penstock.pipeline import runner
from penstock.pipeline.audit_query import AuditQuery, search
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.jobs.catalogue import JOBS
from penstock.pipeline.ledger_check import check_ledger
from penstock.pipeline.monitoring import monitoring
from penstock.pipeline.progress import Progress
from penstock.pipeline.runner import RunOptions, run_job
from penstock.pipeline.session import register
from tests.pipeline.broker import Broker
from tests.pipeline.duck import answer
from tests.pipeline.rows import Partition, stream_of, usage_row
from tests.pipeline.test_rolling import cut_short_after

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import penstock


def read(warehouse: Path, table: str, what: str = "*") -> list[Any]:
    query = f"select {what} from read_parquet('{warehouse}/{table}/**/*.parquet', hive_partitioning=true)"
    return answer(query)


class Bench:
    """A log, a warehouse, and running jobs from the one into the other."""

    def __init__(self, spark: SparkSession, broker: Broker, warehouse: Path) -> None:
        self.spark = spark
        self.log: penstock.BlockingQueue = broker.new_log()
        self.endpoint = broker.endpoint
        self.warehouse = warehouse

    def options(self, **values: Any) -> RunOptions:
        named = RunOptions(endpoint=self.endpoint, warehouse=str(self.warehouse), queue=self.log.name)
        return replace(named, **values)

    def run(self, job: str, **values: Any) -> Progress:
        """Once, unless it is said otherwise."""
        progress = Progress(job)
        run_job(self.spark, JOBS[job], self.options(**values), progress)
        return progress

    def send_usage(self, numbers: range, **values: Any) -> None:
        self.log.send(stream_of(USAGE, [usage_row(number, **values) for number in numbers]))

    def send_lifecycle(self, rows: list[dict[str, Any]]) -> None:
        self.log.send(stream_of(LIFECYCLE, rows))


@pytest.fixture
def bench(spark: SparkSession, broker: Broker, tmp_path: Path) -> Bench:
    return Bench(spark, broker, tmp_path / "warehouse")


@pytest.mark.beside
def test_usage_is_counted_once_however_often_it_comes(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(spark, broker, tmp_path)
    bench.send_usage(range(1, 101))
    bench.send_usage(range(51, 151))
    first = bench.run("usage")
    assert (first.rows, first.repeated, first.missing) == (150, 50, 0)
    assert first.lag_seconds is not None
    assert read(bench.warehouse, "usage_minutes", "sum(requests)") == [(150,)]
    assert bench.run("usage").rows == 0
    bench.send_usage(range(141, 151))
    bench.send_usage(range(161, 171), outcome="RequestThrottled", latency_us=5000)
    second = bench.run("usage")
    assert (second.rows, second.repeated, second.missing) == (10, 10, 10)
    for table in ("usage_minutes", "usage_hours", "usage_days"):
        assert read(bench.warehouse, table, "sum(requests), sum(errors), sum(throttles)") == [(160, 10, 10)]
    ((hours, p50, p99),) = read(
        bench.warehouse, "usage_hours", "count(*), max(latency_us_p50), max(latency_us_p99)"
    )
    assert hours == 1
    assert p50 <= 1280  # within the bucket of 1000, the next bound of which is at most 1.28 times as much
    assert 4000 < p99 <= 5000
    gaps = read(bench.warehouse, "usage_gaps", "front_end, first_missing, last_missing, missing")
    assert gaps == [("front-1", 151, 160, 10)]


def test_a_run_that_follows_goes_on_until_it_is_stopped(bench: Bench) -> None:
    bench.send_usage(range(1, 11))
    stop, progress = Event(), Progress("audit")
    sent_more = Event()

    def watch(current: Progress) -> None:
        if current.rows >= 10 and not sent_more.is_set():
            sent_more.set()
            bench.send_usage(range(11, 21), user="bob")
        if current.rows >= 20:
            stop.set()

    options = bench.options(follow=True, interval_seconds=0.1, roll_seconds=0.1)
    with monitoring("127.0.0.1", 0, progress.families) as port:
        run_job(bench.spark, JOBS["audit"], options, progress, stop=stop, watch=watch)
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
    assert 'penstock_pipeline_rows_total{job="audit"} 20' in text
    assert "penstock_pipeline_lag_seconds" in text
    found = list(search(str(bench.warehouse), AuditQuery(user="bob", queue="orders", outcome="ok", limit=3)))
    assert [row["number"] for row in found] == [18, 19, 20]
    assert list(search(str(bench.warehouse), AuditQuery(outcome="error"))) == []
    since = AuditQuery(since=found[0]["time"], until=found[0]["time"])
    assert list(search(str(bench.warehouse), since)) == []


@pytest.mark.beside
def test_the_ledger_finds_what_comes_in_later_runs_though_one_is_cut_short(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(spark, broker, tmp_path)
    partition = Partition(ordering="fifo")
    partition.sent(1, 8)
    partition.worked_on(1, 3)
    bench.send_lifecycle(partition.rows)
    assert bench.run("ledger").rows == 3
    assert read(bench.warehouse, "ledger_open", "count(*), min(sequence)") == [(5, 4)]
    before = len(partition.rows)
    partition.deleted(2)  # again: it ended in the run before
    partition.worked_on(5)  # before 4
    partition.counts(Change.QUEUE_DELETED, (4, 1), (6, 2))  # where is 8?
    bench.send_lifecycle(partition.rows[before - 1 :])
    cut = Progress("ledger")
    with cut_short_after(tmp_path, "replace_days", "ledger_hours"), pytest.raises(InterruptedError):
        run_job(bench.spark, JOBS["ledger"], bench.options(), cut)
    assert (cut.repeated, cut.roll_ups) == (1, 0)
    assert bench.run("ledger").roll_ups == 1
    expected = [("duplicate-end", 2), ("lost", 8), ("reordered", 5)]
    assert sorted(read(bench.warehouse, "ledger_findings", "kind, sequence")) == expected
    counts = read(bench.warehouse, "ledger_hours", "sum(began), sum(ended), sum(deleted), sum(queue_deleted)")
    assert counts == [(8, 7, 4, 3)]
    assert read(bench.warehouse, "ledger_open", "sequence") == [(8,)]
    assert check_ledger(bench.spark, str(bench.warehouse), bench.endpoint) == 3
    assert sorted(read(bench.warehouse, "ledger_check", "kind, sequence")) == expected


@pytest.mark.beside
def test_dead_letters_and_capacity_come_from_the_same_log(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(spark, broker, tmp_path)
    partition = Partition()
    partition.sent(1, 60)
    partition.leased(1, consumer="worker-1")
    partition.happens(Change.RELEASED, 1, reason="released", error="no stock of 17")
    partition.happens(Change.MOVE_STARTED, 1, reason="max-receives", receives=1, other_queue="dead")
    partition.happens(Change.MOVE_FINISHED, 1, reason="max-receives", receives=1, other_queue="dead")
    bench.send_lifecycle(partition.rows)
    bench.run("dead-letters")
    assert read(bench.warehouse, "dead_letters", "queue, reason, consumer, fingerprint, messages") == [
        ("orders", "max-receives", "worker-1", "no stock of <n>", 1)
    ]
    assert read(bench.warehouse, "dead_letter_causes", "messages, last_day") == [(1, 1)]
    limited = broker.client.create_queue(f"limited-{bench.log.name}", max_messages=100)
    limited.send(b"one")
    bench.run("capacity")
    assert read(bench.warehouse, "capacity_hours", "queue, began, ended, peak_minute") == [
        ("orders", 60, 1, 60)
    ]
    names = {row[0] for row in read(bench.warehouse, "capacity", "queue")}
    assert bench.log.name in names, "the server's own queues are there"
    ((measured,),) = read(bench.warehouse, "capacity", "max(measured)")
    broker.client.alter_queue(limited.name, max_messages=1)
    assert bench.run("capacity").rows == 0
    now = {row[0]: row[1:] for row in read(bench.warehouse, "capacity", 'queue, "limit", fill, measured')}
    assert now[limited.name][:2] == ("max-messages", 1.0), "limits are those of now, though no row came"
    assert len(now) == read(bench.warehouse, "capacity", "count(*)")[0][0]
    assert min(row[2] for row in now.values()) > measured


def test_a_queue_that_is_no_log_of_rows_is_said_so(bench: Bench) -> None:
    bench.log.send(b"not Arrow")
    with pytest.raises(PipelineError, match="Arrow"):
        bench.run("usage")


@contextmanager
def late_python(spark: SparkSession, program: Path, late: int) -> Iterator[None]:
    """So many processes of a streaming source, the first ones, hang up as soon as they have connected to Spark.

    That is the quick way to what Spark says of those that are not there after ten seconds.
    """
    calls = program.with_suffix(".calls")
    port = "int(os.environ['PYTHON_WORKER_FACTORY_PORT'])"
    hang_up = f"import os, socket; socket.create_connection(('127.0.0.1', {port})).close()"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *python_streaming_source_runner*) echo >> {calls}\n'
        f'[ $(wc -l < {calls}) -gt {late} ] || exec {sys.executable} -c "{hang_up}";;\n'
        "esac\n"
        f'exec {os.environ["PYSPARK_PYTHON"]} "$@"\n'
    )
    program.chmod(0o755)
    usual, spark.sparkContext.pythonExec = spark.sparkContext.pythonExec, str(program)
    register(spark)  # the source remembers which Python it is
    try:
        yield
    finally:
        spark.sparkContext.pythonExec = usual
        register(spark)


def test_a_run_begins_anew_where_a_process_of_spark_was_late_and_ends_where_it_always_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    steps = []
    start, end = DataStreamWriter.start, StreamingQuery.stop

    def noted_start(writer: DataStreamWriter) -> StreamingQuery:
        steps.append("start")
        return start(writer)

    def noted_end(query: StreamingQuery) -> None:
        end(query)
        steps.append("end")

    monkeypatch.setattr(DataStreamWriter, "start", noted_start)
    monkeypatch.setattr(StreamingQuery, "stop", noted_end)
    monkeypatch.setattr(runner, "_STARTS", 2)
    bench.send_usage(range(1, 11))
    with late_python(bench.spark, tmp_path / "python", late=3):
        with pytest.raises(PipelineError, match=r"2 times in a row .* too busy .*failed to connect back"):
            bench.run("usage")
        assert bench.run("usage").rows == 10
    assert steps == ["start", "end"] * 4, (
        "for Spark a query is there until it is stopped, also one that failed"
    )
