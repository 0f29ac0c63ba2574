"""What `penstock bench --spark` compares is comparable: Spark and DuckDB answer the same questions alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from benchmarks.spark.jobs import LEDGER_SQL, USAGE_SQL, ledger, roll_up
from benchmarks.spark.synthetic import write_lifecycle, write_usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 3_000
SUMS = (
    "account, user, queue, action, requests, messages, bytes_in, bytes_out, errors, throttles, latency_us_max"
)


def asked(sql: str, files: Path, columns: str) -> list[Any]:
    wanted = columns.replace("user", '"user"')
    answer = duckdb.execute(f"select {wanted} from ({sql.format(files=f'{files}/*.parquet')})")
    return sorted(tuple(row) for row in answer.fetchall())


def collected(frame: DataFrame, columns: str) -> list[Any]:
    return sorted(tuple(row) for row in frame.select(*columns.split(", ")).collect())


def test_both_roll_up_alike(spark: SparkSession, tmp_path: Path) -> None:
    write_usage(tmp_path, ROWS)
    ours = collected(roll_up(spark.read.parquet(str(tmp_path))), SUMS)
    assert ours == asked(USAGE_SQL, tmp_path, SUMS)
    assert sum(row[4] for row in ours) == ROWS
    assert any(row[9] for row in ours), "some were throttled"


def test_both_keep_the_same_ledger(spark: SparkSession, tmp_path: Path) -> None:
    write_lifecycle(tmp_path, ROWS)
    columns = "queue, messages, begins, ended, ended_twice, after_end, leases, dwell_us, work_us"
    ours = collected(ledger(spark.read.parquet(str(tmp_path))), columns)
    assert ours == asked(LEDGER_SQL, tmp_path, columns)
    assert sum(row[3] for row in ours) == ROWS // 3, "every message has ended"
