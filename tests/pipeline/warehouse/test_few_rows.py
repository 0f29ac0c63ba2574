"""A few rows, written without Spark: nobody who reads the files can tell the difference."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.warehouse.few_rows import write_few
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.table import Kind, WarehouseTable, column
from penstock.pipeline.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS: tuple[Kind, ...] = ("timestamp", "string", "boolean", "int32", "int64", "double", "date", "samples")
ALL = WarehouseTable(
    "all", "Test.", "batches", tuple(column(f"a_{kind}", kind, "A value.") for kind in KINDS), by_day=True
)
SAMPLE = [{"message_id": "m", "partition": 1, "sequence": 7, "error": None}]
MOMENT = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)
ROWS = [
    (MOMENT, "text", True, 1, 2, 0.5, date(2026, 11, 1), SAMPLE, date(2026, 11, 16)),
    (None, None, None, None, None, None, None, None, date(2026, 11, 17)),
]


def test_the_files_are_those_that_spark_would_write(spark: SparkSession, tmp_path: Path) -> None:
    schema = ALL.file_schema().add("day", "date")
    for few in (True, False):
        warehouse = Warehouse(spark, Files(spark, f"{tmp_path}/{few}"), "g1")
        rows = local_rows(spark, ROWS, schema)
        assert warehouse.add_batch(ALL, 0, rows, parts=1, few=few)
        assert not warehouse.add_batch(ALL, 0, rows, parts=1, few=few)
        read = warehouse.read(ALL).select(*schema.names).orderBy("day")
        assert read.collect() == rows.orderBy("day").collect()
    ours, sparks = (sorted((tmp_path / name).rglob("*.parquet")) for name in ("True", "False"))
    assert [path.parent.relative_to(tmp_path / "True") for path in ours] == [
        path.parent.relative_to(tmp_path / "False") for path in sparks
    ]
    for one, other in zip(ours, sparks, strict=True):
        assert _types(one) == _types(other)


def test_no_rows_are_a_directory_without_days(tmp_path: Path) -> None:
    write_few(
        pa.table({"value": pa.array([], pa.int64()), "day": pa.array([], pa.date32())}),
        f"{tmp_path}/batch",
        "zstd",
        by_day=True,
    )
    assert list((tmp_path / "batch").iterdir()) == []


def _types(path: Path) -> list[tuple[object, ...]]:
    """What stands in the file itself, not what Arrow notes beside it."""
    wanted = "name, type, repetition_type, converted_type, logical_type"
    found = duckdb.execute(f"select {wanted} from parquet_schema('{path}')").fetchall()
    assert pq.ParquetFile(path).metadata.num_rows == 1
    return [
        tuple(row) for row in found[1:]
    ]  # the first is the message as a whole, whose name is the writer's
