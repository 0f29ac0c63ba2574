"""Expiry: permanently removes rows that are older than the retention.

Whole days are removed as directories. A directory is first renamed to a hidden place, if the store can, so that a reader
sees all of it or nothing. Tables without days are written again without their old rows and replaced in one step, as in
compaction. If it is killed on the way, the next run does the rest; no other row is changed.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.warehouse import paths
from penstock.pipeline.warehouse.compaction import rewrite, whole_directories
from penstock.pipeline.warehouse.swapping import staging_place
from penstock.pipeline.warehouse.table import WarehouseTable
from penstock.pipeline.warehouse.warehouse import Warehouse


class Keep(NamedTuple):
    """How long rows are kept; None: forever."""

    everything: timedelta | None = None
    tables: tuple[tuple[str, timedelta], ...] = ()
    """Of these tables, by name, instead."""

    def of(self, table: WarehouseTable) -> timedelta | None:
        """How long a table's rows are kept."""
        if table.ages == "never" or table.filling == "whole":
            return None
        return dict(self.tables).get(table.name, self.everything)

    def first_day(self, table: WarehouseTable, now: datetime) -> date | None:
        """The first day that is kept whole; None: all are."""
        kept = self.of(table)
        return None if kept is None else (now.astimezone(UTC) - kept).date()


FOR_EVER = Keep()


def expire(
    warehouse: Warehouse, table: WarehouseTable, through: int, first_day: date, *, everything: bool = False
) -> int:
    """Removes rows of days before the first one, from batches up to `through`; returns how many directories that changed.

    `everything`: no batch is added meanwhile, so a directory that is not full yet may be replaced too.
    """
    if table.filling == "whole" or table.ages == "never":
        return 0
    if not table.by_day:
        return _rewritten(warehouse, table, through, first_day, everything=everything)
    directories = [paths.generation_directory(table.name, warehouse.generation)]
    if table.filling == "batches":
        directories = warehouse.batch_directories(table, -1, through)
    old = [
        path
        for directory in directories
        for path in warehouse.files.directories(directory)
        if (day := paths.value_of(path, "day")) is not None and date.fromisoformat(day) < first_day
    ]
    for path in old:
        _remove(warehouse, table, path)
    return len(old)


def _remove(warehouse: Warehouse, table: WarehouseTable, path: str) -> None:
    hidden = path
    if warehouse.files.renames_whole:
        hidden = staging_place(table.name, "expired")
        warehouse.files.rename(path, hidden)
    warehouse.files.remove(hidden)


def _rewritten(
    warehouse: Warehouse, table: WarehouseTable, through: int, first_day: date, *, everything: bool
) -> int:
    begin = datetime(first_day.year, first_day.month, first_day.day, tzinfo=UTC)
    rows = warehouse.read(table)
    young = sf.col("time") >= sf.lit(begin)
    # One query for all directories, nearly always from the files' metadata.
    if rows.where(~young).limit(1).count() == 0:
        return 0
    firsts = None
    if table.ages == "numbers":
        # Computed before the first directory is replaced, whose files are gone afterwards.
        found = rows.where(young).groupBy("partition_id").agg(sf.min("number")).collect()
        firsts = local_rows(warehouse.spark, found, "partition_id long, first_kept long")

    def kept(some: DataFrame) -> DataFrame:
        if firsts is None:
            return some.where(young | sf.col("time").isNull())
        return some.join(sf.broadcast(firsts), "partition_id").where(sf.col("number") >= sf.col("first_kept"))

    changed = 0
    for directory in whole_directories(warehouse, table, through, everything=everything):
        changed += rewrite(warehouse, table, directory, through, kept)
    return changed
