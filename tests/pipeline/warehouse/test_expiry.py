"""Old rows go, whole days at once, and nothing else goes: whatever is killed on the way, whatever comes late."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import typer

from penstock.cli.pipeline.job_command import keep_of
from penstock.columnar.usage import USAGE
from penstock.pipeline.compacting import compact_job
from penstock.pipeline.job_state import JobState
from penstock.pipeline.jobs.catalogue import JOBS
from penstock.pipeline.jobs.job import Job, Rolled, ServerFacts, gap_table
from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.numbers import SeenNumbers
from penstock.pipeline.rolling import Roller
from penstock.pipeline.warehouse import swapping
from penstock.pipeline.warehouse.expiry import Keep, expire
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.generation import begin_generation
from penstock.pipeline.warehouse.table import WarehouseTable, column
from penstock.pipeline.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TODAY = datetime(2026, 11, 16, 9, tzinfo=UTC)
VALUE = column("value", "int64", "A value.")
PARTS = WarehouseTable("parts", "Test.", "batches", (VALUE,), by_day=True)
DAILY = WarehouseTable("daily", "Test.", "days", (VALUE,), by_day=True)
NUMBERED = WarehouseTable(
    "numbered",
    "Test.",
    "batches",
    (
        column("time", "timestamp", "When."),
        column("partition_id", "int64", "Whose."),
        column("number", "int64", "Its number."),
    ),
    ages="numbers",
)


class CrashError(Exception):
    """What a kill is, here."""


def rows(spark: SparkSession, *values: tuple[int, int]) -> DataFrame:
    """Values, and of how many days ago each is."""
    found = [(value, (TODAY - timedelta(days=ago)).date()) for value, ago in values]
    return local_rows(spark, found, "value long, day date")


def seen(root: Path, table: str, what: str = "value") -> list[Any]:
    if not list((root / table).rglob("*.parquet")):
        return []
    return [
        row[0]
        for row in duckdb.execute(
            f"select {what} from read_parquet('{root}/{table}/**/*.parquet', hive_partitioning=true) order by 1"
        ).fetchall()
    ]


def test_days_go_and_batches_stay_known(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(spark, Files(spark, str(tmp_path)), "g1")
    warehouse.add_batch(PARTS, 0, rows(spark, (1, 40), (2, 31)), parts=1)
    warehouse.add_batch(PARTS, 1, rows(spark, (3, 40), (4, 30)), parts=1)
    warehouse.add_batch(PARTS, 2, rows(spark, (5, 50)), parts=1)  # not rolled up yet
    first_day = Keep(timedelta(days=30)).first_day(PARTS, TODAY)
    assert first_day == date(2026, 10, 17)
    honest = Files.remove

    def remove(self: Files, path: str) -> None:
        raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(Files, "remove", remove)
        with pytest.raises(CrashError):
            expire(warehouse, PARTS, 1, first_day)
    assert seen(tmp_path, "parts") in (
        [2, 3, 4, 5],
        [1, 3, 4, 5],
    )  # one day is hidden, and nothing is half there
    assert Files.remove is honest
    swapping.recover(warehouse.files, "parts")
    assert expire(warehouse, PARTS, 1, first_day) == 2
    assert seen(tmp_path, "parts") == [4, 5]
    assert not list((tmp_path / "_staging").rglob("*.parquet"))
    assert warehouse.has_batch(PARTS, 0)
    assert not warehouse.add_batch(PARTS, 0, rows(spark, (1, 40)), parts=1)
    assert warehouse.read(PARTS).count() == 2


def test_of_numbered_rows_only_the_first_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that was set back leaves a row in between that looks old: it is kept, so that no number is missing."""
    warehouse = Warehouse(spark, Files(spark, str(tmp_path)), "g1")
    ages = {1: 40, 2: 39, 3: 5, 4: 45, 5: 4}
    told = [(TODAY - timedelta(days=ago), 7, number) for number, ago in ages.items()]
    gone = [(TODAY - timedelta(days=60), 8, number) for number in (1, 2)]
    schema = "time timestamp, partition_id long, number long"
    for batch, part in enumerate((told[:2] + gone, told[2:])):
        warehouse.add_batch(NUMBERED, batch, local_rows(spark, part, schema), parts=1)

    def crash(*_: object) -> bool:
        raise CrashError

    first_day = date(2026, 10, 17)
    with monkeypatch.context() as patch:
        patch.setattr(Files, "exchange", crash)
        with pytest.raises(CrashError):
            expire(warehouse, NUMBERED, 1, first_day, everything=True)
    assert seen(tmp_path, "numbered", "partition_id * 10 + number") == [71, 72, 73, 74, 75, 81, 82]
    swapping.recover(warehouse.files, "numbered")
    assert expire(warehouse, NUMBERED, 1, first_day) == 0  # a block that is not full is left to its job
    assert expire(warehouse, NUMBERED, 1, first_day, everything=True) == 1
    assert seen(tmp_path, "numbered", "partition_id * 10 + number") == [73, 74, 75]
    assert warehouse.has_batch(NUMBERED, 1)
    assert expire(warehouse, NUMBERED, 1, first_day, everything=True) == 0


def test_what_comes_late_does_not_take_the_place_of_a_day_that_is_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    def roll(reader: Any, server_facts: ServerFacts) -> Rolled:
        days = reader.new_days(PARTS)
        return Rolled(days={DAILY.name: (days, reader.all_rows(PARTS).where("day >= '2026-01-01'"))})

    gaps = gap_table("test_gaps", "front_end", "Test.")
    job = Job("test", "Test.", "test", USAGE, "front_end", (DAILY, gaps, PARTS), lambda rows: {}, roll)
    files = Files(spark, str(tmp_path))
    generation = begin_generation(files, Files(spark, str(tmp_path / "checkpoint")), job.name, job.tables)
    warehouse, memory = Warehouse(spark, files, generation), JobState(files, job.name, generation)
    roller = Roller(warehouse, job, memory)
    warehouse.add_batch(PARTS, 0, rows(spark, (1, 40), (2, 0)), parts=1)
    memory.finish_batch(0, SeenNumbers())
    roller.roll(ServerFacts())
    assert seen(tmp_path, "daily") == [1, 2]
    keep = Keep(timedelta(days=30), ((DAILY.name, timedelta(days=365)),))
    done = compact_job(spark, job, str(tmp_path), keep, TODAY)
    assert done is not None
    assert done.expired == 1
    assert (seen(tmp_path, "parts"), seen(tmp_path, "daily")) == ([2], [1, 2])
    warehouse.add_batch(PARTS, 1, rows(spark, (7, 40), (8, 0)), parts=1)
    memory.finish_batch(1, SeenNumbers())
    roller.roll(ServerFacts())
    assert seen(tmp_path, "daily") == [1, 2, 8]


def test_what_is_kept_for_how_long() -> None:
    jobs = [JOBS["usage"], JOBS["audit"], JOBS["capacity"]]
    keep = keep_of(["90d", "audit=365d"], jobs)
    kept = {table.name: keep.of(table) for job in jobs for table in job.tables}
    assert kept["usage_parts"] == kept["usage_days"] == timedelta(days=90)
    assert kept["audit"] == timedelta(days=365)
    assert kept["usage_gaps"] is None  # replaced as a whole
    assert kept["capacity_hours"] is None  # what is in a queue is what came and went since it is there
    assert keep_of(None, jobs) == Keep()
    for wrong in ("1h", "nowhere=90d", "capacity_hours=90d", "soon"):
        with pytest.raises(typer.BadParameter):
            keep_of([wrong], jobs)
