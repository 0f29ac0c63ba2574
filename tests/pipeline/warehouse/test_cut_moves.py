"""Kills at every request that the warehouse makes of an object store: no row is ever there twice, and none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.pipeline.warehouse import swapping
from penstock.pipeline.warehouse.compaction import whole_directories
from penstock.pipeline.warehouse.generation import begin_generation
from penstock.pipeline.warehouse.table import WarehouseTable, column
from penstock.pipeline.warehouse.warehouse import Warehouse
from tests.pipeline.warehouse.bucket import Bucket, KilledError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = WarehouseTable("events", "Test.", "batches", (column("value", "int64", "A value."),), by_day=True)
TOTALS = WarehouseTable("totals", "Test.", "whole", (column("value", "int64", "A value."),))

OLD = {
    "events/gen=g/block=0/span=0/batch_id=0/a",
    "events/gen=g/block=0/span=0/batch_id=0/_SUCCESS",
    "events/gen=g/block=0/span=0/batch_id=1/b",
}
NEW = {
    "events/gen=g/block=0/span=0/batch_id=1/c",
    "events/gen=g/block=0/span=0/batch_id=1/d",
    "events/gen=g/block=0/span=0/batch_id=1/_SUCCESS",
}
STAGED, TARGET = "_staging/events/compacted-1", "events/gen=g/block=0/span=0"


def there(bucket: Bucket) -> set[str]:
    """What a reader of the table finds."""
    return {
        path.relative_to(str(bucket.local)).as_posix()
        for path in Path(f"{bucket.local}/events").rglob("*")
        if path.is_file()
    }


def filled(spark: SparkSession, root: Path, old: set[str]) -> Bucket:
    """The old rows in their place, and the new ones beside it."""
    bucket = Bucket(spark, root)
    for name in old:
        bucket.write_text(name, "old")
    for name in NEW:
        bucket.write_text(name.replace(TARGET, STAGED), "new")
    return bucket


def killed_swaps(spark: SparkSession, root: Path, old: set[str]) -> Iterator[Bucket]:
    """A swap that is killed at its first request, at its second, and so on; the last one is not."""
    for requests in range(100):
        bucket = filled(spark, root / f"{requests}", old)

        def both_are_never_there(bucket: Bucket = bucket) -> None:
            seen = there(bucket)
            assert not (seen & (OLD - NEW) and seen & (NEW - OLD))

        bucket.after_each, bucket.requests_left = both_are_never_there, requests
        try:
            swapping.swap(bucket, STAGED, TARGET)
        except KilledError:
            yield bucket
        else:
            return
    raise AssertionError("a swap makes no hundred requests")


@pytest.mark.parametrize("old", [OLD, set()], ids=["replaced", "first"])
def test_a_swap_that_is_killed_at_any_request_is_finished_by_the_next_run(
    spark: SparkSession, tmp_path: Path, old: set[str]
) -> None:
    kills = 0
    for bucket in killed_swaps(spark, tmp_path, old):
        begun = bool(bucket.files("_swaps"))
        finished = there(bucket) == NEW
        if (
            begun
        ):  # whoever compacts it now would take its rows along, and the next run would bring them again
            assert whole_directories(Warehouse(spark, bucket, "g"), EVENTS, 1, everything=True) == []
        bucket.requests_left = None
        swapping.recover(bucket, "events")
        assert there(bucket) == (NEW if begun or finished else old)
        assert not bucket.exists("_staging/events")
        assert not bucket.exists("_swaps")
        if begun:
            warehouse = Warehouse(spark, bucket, "g")
            assert whole_directories(warehouse, EVENTS, 1, everything=True) == ["events/gen=g/block=0"]
        kills += 1
    assert kills > 2 * len(NEW)


def test_a_recovery_that_is_killed_as_well_is_finished_by_the_one_after(
    spark: SparkSession, tmp_path: Path
) -> None:
    for bucket in killed_swaps(spark, tmp_path, OLD):
        begun = bool(bucket.files("_swaps"))
        for _ in range(100):
            bucket.requests_left = 1  # each gets a single step further
            try:
                swapping.recover(bucket, "events")
            except KilledError:
                continue
            break
        assert there(bucket) in ([NEW] if begun else [OLD, NEW])


def test_a_rebuild_brings_back_nothing_of_a_swap_that_was_killed(spark: SparkSession, tmp_path: Path) -> None:
    bucket, checkpoint = filled(spark, tmp_path / "warehouse", OLD), Bucket(spark, tmp_path / "checkpoint")
    bucket.requests_left = 3  # it was noted, and two files of the old are gone
    with pytest.raises(KilledError):
        swapping.swap(bucket, STAGED, TARGET)
    bucket.requests_left = None
    begin_generation(bucket, checkpoint, "job", [EVENTS], rebuild=True)
    swapping.recover(bucket, "events")
    assert there(bucket) == set()


def test_a_batch_that_is_killed_on_its_way_is_added_once_by_the_next_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    bucket = Bucket(spark, tmp_path)
    warehouse = Warehouse(spark, bucket, "g")
    rows = spark.sql("select id as value, date_add(date'2026-11-16', cast(id as int)) as day from range(2)")

    def files() -> list[str]:
        """What somebody finds who looks at everything that is in the table, hidden or not: a file for each day."""
        days = [path.parent.name for path in (tmp_path / "events").rglob("*.parquet")]
        assert len(days) == len(set(days))
        return days

    bucket.after_each = files
    bucket.requests_left = 3  # the first file was moved, the second only copied, and there is no mark
    with pytest.raises(KilledError):
        warehouse.add_batch(EVENTS, 0, rows, parts=1)
    assert len(files()) == 2
    assert not warehouse.has_batch(EVENTS, 0)
    bucket.requests_left = None
    swapping.recover(bucket, "events")
    assert warehouse.add_batch(EVENTS, 0, rows, parts=1)
    assert not warehouse.add_batch(EVENTS, 0, rows, parts=1)
    assert sorted(row["value"] for row in warehouse.read(EVENTS).collect()) == [0, 1]


def test_a_table_that_is_replaced_for_the_first_time_counts_only_when_it_is_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    bucket = Bucket(spark, tmp_path)
    warehouse = Warehouse(spark, bucket, "g")
    bucket.requests_left = 3  # two notes and the copy of a file
    with pytest.raises(KilledError):
        warehouse.replace_whole(TOTALS, spark.sql("select id as value from range(2)"), 7)
    bucket.requests_left = None
    swapping.recover(bucket, "totals")
    assert warehouse.whole_through(TOTALS) == 7
    assert sorted(row["value"] for row in warehouse.read(TOTALS).collect()) == [0, 1]
