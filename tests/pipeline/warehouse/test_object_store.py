"""A warehouse that the operating system does not know: everything goes through Hadoop's file systems."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from pyspark.errors import PySparkException

from penstock.cli.exits import CommandError
from penstock.cli.pipeline.job_command import pipeline_errors
from penstock.pipeline.job_state import JobState
from penstock.pipeline.numbers import SeenNumbers
from penstock.pipeline.warehouse.compaction import compact
from penstock.pipeline.warehouse.expiry import expire
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.generation import begin_generation
from penstock.pipeline.warehouse.lock import job_lock
from penstock.pipeline.warehouse.table import WarehouseTable, column
from penstock.pipeline.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUE = column("value", "int64", "A value.")
EVENTS = WarehouseTable("events", "Test.", "batches", (VALUE,), by_day=True)
TOTALS = WarehouseTable("totals", "Test.", "whole", (VALUE,))


def seen(root: Path, table: str) -> list[int]:
    query = f"select value from read_parquet('{root}/{table}/**/*.parquet') order by 1"
    return [row[0] for row in duckdb.execute(query).fetchall()]


def test_a_warehouse_of_which_only_hadoop_knows_where_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop's `viewfs` gives a directory another name, under which Python finds nothing."""
    settings = spark._jsc.hadoopConfiguration()
    settings.set("fs.viewfs.mounttable.penstock.link./tables", tmp_path.as_uri())
    files = Files(spark, "viewfs://penstock/tables/warehouse", renames_whole=False)
    assert files.local is None
    checkpoint = Files(spark, files.uri("_checkpoints/test"))
    with job_lock(files.local, "test"):
        generation = begin_generation(files, checkpoint, "test", [EVENTS, TOTALS])
        warehouse, memory = Warehouse(spark, files, generation), JobState(files, "test", generation)
        for batch, day in enumerate((1, 2)):
            rows = spark.sql(f"select {batch} as value, date'2026-11-0{day}' as day")
            assert warehouse.add_batch(EVENTS, batch, rows, parts=1)
            assert not warehouse.add_batch(EVENTS, batch, rows, parts=1)
            memory.finish_batch(batch, SeenNumbers({"a": [(1, batch + 1)]}))
            warehouse.replace_whole(TOTALS, warehouse.read(EVENTS), batch)
    assert begin_generation(files, checkpoint, "test", [EVENTS, TOTALS]) == generation
    assert memory.seen_by(memory.last_batch()).stretches == {"a": [(1, 2)]}
    root = tmp_path / "warehouse"
    assert compact(warehouse, EVENTS, 1, everything=True).directories_after == 1
    assert (seen(root, "events"), seen(root, "totals")) == ([0, 1], [0, 1])
    assert expire(warehouse, EVENTS, 1, date(2026, 11, 2)) == 1
    assert seen(root, "events") == [1]


def test_without_the_connector_for_s3_it_says_what_to_fetch(spark: SparkSession) -> None:
    with pytest.raises(CommandError, match=r"hadoop-aws:[0-9]+"), pipeline_errors():
        Files(spark, "s3a://bucket/path")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            ": java.lang.NoClassDefFoundError: software/amazon/awssdk/core/exception/SdkException",
            "software.amazon.awssdk:bundle",
        ),
        (": a.UnknownStoreException: s3.model.NoSuchBucketException: does not exist", "no such bucket"),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited.", "name files that are here instead"),
    ],
)
def test_what_else_may_be_missing_is_a_sentence(said: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence), pipeline_errors():
        raise PySparkException(said)
