"""What jobs do with many rows, beside DuckDB: the same question to the same Parquet files, on as many cores, by turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from benchmarks.figures import Figure, figure
from benchmarks.processes import BenchError
from benchmarks.spark.session import CORES, DRIVER_MEMORY, SparkBench, spark_bench
from benchmarks.spark.synthetic import CHANGES, write_lifecycle, write_usage
from benchmarks.stage import Stage
from penstock.columnar.lifecycle import FINAL
from penstock.pipeline.jobs.ledger_messages import messages, number_of
from penstock.pipeline.jobs.usage import THROTTLED, partial_sums, summed
from penstock.pipeline.statement import select

ROWS, QUICK_ROWS = 5_000_000, 500_000
MOST_ROUNDS = 5
_MEBIBYTE = 1024 * 1024
_FINAL = ", ".join(str(int(change)) for change in sorted(FINAL))

USAGE_SQL = f"""
    select date_trunc('minute', time) as minute, account, "user", queue, action, count(*) as requests,
        sum(messages) as messages, sum(bytes_in) as bytes_in, sum(bytes_out) as bytes_out,
        count(*) filter (outcome <> 'ok') as errors, count(*) filter (outcome in {THROTTLED}) as throttles,
        sum(latency_us) as latency_us_sum, max(latency_us) as latency_us_max,
        approx_quantile(latency_us, [0.5, 0.95, 0.99]) as latency
    from '{{files}}' group by all"""
LEDGER_SQL = f"""
    with single as (
        select queue, queue_id, partition, partition_id, number, change, epoch_us(time) as us,
            unnest(range("first", "first" + "count")) as sequence
        from '{{files}}'),
    known as (
        select queue, queue_id, partition, partition_id, sequence,
            count(*) filter (change in (1, 2, 16)) as begins, count(*) filter (change in ({_FINAL})) as finals,
            count(*) filter (change = 3) as leases, min(us) filter (change in (1, 2, 16)) as began_us,
            max(number) filter (change = 3) as last_lease, max(us) filter (change = 3) as leased_us,
            min(number) filter (change in ({_FINAL})) as first_final, max(us) filter (change in ({_FINAL})) as ended_us
        from single group by all)
    select queue, count(*) as messages, sum(begins) as begins, count(*) filter (finals = 1) as ended,
        count(*) filter (finals > 1) as ended_twice, count(*) filter (last_lease > first_final) as after_end,
        sum(leases) as leases, sum(ended_us - began_us) as dwell_us, sum(ended_us - leased_us) as work_us
    from known group by queue"""


def measure(stage: Stage) -> Iterator[Figure]:
    """The roll-up of usage and the ledger."""
    rows = QUICK_ROWS if stage.options.quick else ROWS
    rows -= rows % len(CHANGES)
    stage.progress(f"writes {rows:,} rows of usage and of lifecycles")
    write_usage(stage.directory / "usage", rows)
    write_lifecycle(stage.directory / "lifecycle", rows)
    stage.progress("starts Spark")
    questions = (
        Question("usage", "usage roll-up", stage.directory / "usage", roll_up, USAGE_SQL, "requests"),
        Question("ledger", "ledger", stage.directory / "lifecycle", ledger, LEDGER_SQL, "begins"),
    )
    with spark_bench(stage.directory) as spark, duckdb.connect() as other:
        other.execute(f"set threads = {CORES}")
        for question in questions:
            yield from _asked(stage, spark, other, question, rows)
        note = f"local[{CORES}], driver memory {DRIVER_MEMORY}: driver and executor are one process"
        java = [spark.driver_bytes() / _MEBIBYTE]
        yield figure("spark.jobs.memory.java", "Spark's Java, for these jobs", "MiB", java, note)


@dataclass(frozen=True)
class Question:
    """What both are asked."""

    name: str
    title: str
    files: Path
    frame: Callable[[DataFrame], DataFrame]
    sql: str
    total: str
    """The column whose sum both have to agree about."""


def roll_up(rows: DataFrame) -> DataFrame:
    """What the job `usage` makes of them."""
    return summed(partial_sums(rows), "minute", "minute")


def ledger(rows: DataFrame) -> DataFrame:
    """What the ledger knows of every message, and from that a line a queue."""
    return select(
        f"""
        select queue,
            count(*) as messages,
            sum(begins) as begins,
            count_if(finals = 1) as ended,
            count_if(finals > 1) as ended_twice,
            count_if(last_lease > {number_of("first_final")}) as after_end,
            sum(leases) as leases,
            sum(ended_us - began_us) as dwell_us,
            sum(ended_us - leased_us) as work_us
        from {{known}}
        group by queue
        """,
        known=messages(rows),
    )


def _asked(stage: Stage, spark: SparkBench, other: Any, question: Question, rows: int) -> Iterator[Figure]:
    frame = question.frame(spark.session.read.parquet(str(question.files)))
    sql = question.sql.format(files=f"{question.files}/*.parquet")
    _check_equal(frame, other, sql, question)
    ours, theirs, ratios = [], [], []
    for number in range(min(stage.options.rounds, MOST_ROUNDS)):
        stage.progress(f"{question.title}, round {number + 1}")
        seconds = spark.drain(frame)
        began = time.monotonic()
        other.execute(f"create or replace temp table answer as {sql}")
        beside = time.monotonic() - began
        ours.append(rows / seconds)
        theirs.append(rows / beside)
        ratios.append(seconds / beside)
    name = f"spark.{question.name}"
    note = f"{rows:,} rows of Parquet, {CORES} cores"
    yield figure(f"{name}.rate", f"{question.title}, Spark", "rows/s", ours, note)
    yield figure(f"{name}.duckdb", "  the same in DuckDB", "rows/s", theirs, "by turns with Spark")
    yield figure(f"{name}.ratio", "  Spark's time / DuckDB's", "×", ratios)


def _check_equal(frame: DataFrame, other: Any, sql: str, question: Question) -> None:
    """Warms both up; answers that differ would be answers to different questions."""
    ours = frame.agg(sf.count(sf.lit(1)), sf.sum(question.total)).collect()[0]
    theirs = other.execute(f"select count(*), sum({question.total}) from ({sql})").fetchone()
    if tuple(ours) != tuple(int(one) for one in theirs):
        raise BenchError(f"{question.title}: Spark found {tuple(ours)} lines and DuckDB {theirs}")
