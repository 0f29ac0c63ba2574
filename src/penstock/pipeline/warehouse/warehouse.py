"""The warehouse: adds a batch, replaces days or a whole table, and reads; each exact if it is killed at any moment.

A batch is written to a hidden place and renamed to its own directory. An existing directory stays unchanged: Spark repeats
an interrupted batch with the same rows, and nothing is written twice. Object stores cannot rename a directory in one step:
there a batch is moved file by file, and counts when its marker, which is moved last, is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from penstock.pipeline.local_rows import local_rows
from penstock.pipeline.warehouse import paths
from penstock.pipeline.warehouse.few_rows import write_few
from penstock.pipeline.warehouse.files import MARK, Files
from penstock.pipeline.warehouse.paths import BatchPath
from penstock.pipeline.warehouse.swapping import staging_place, swap
from penstock.pipeline.warehouse.table import WarehouseTable

_COMPRESSION = "zstd"
_MARKING = "mapreduce.fileoutputcommitter.marksuccessfuljobs"


class Warehouse:
    """The tables under one root, as one generation of a job sees them."""

    def __init__(self, spark: SparkSession, files: Files, generation: str) -> None:
        self.spark = spark
        self.files = files
        self.generation = generation
        # Without it only Spark would read the times with a zone.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")

    # -- tables filled by batches ----------------------------------------------------------------------------

    def has_batch(self, table: WarehouseTable, batch: int) -> bool:
        """Whether a batch was added; batches come in order, and compaction leaves the last one's name."""
        place = BatchPath(table.name, self.generation, batch)
        there = paths.numbers_of(self.files.directories(place.span_directory), "batch_id")
        if not self.files.renames_whole:
            return any(number >= batch and self._complete(path) for number, path in there.items())
        return any(number >= batch for number in there)

    def add_batch(
        self, table: WarehouseTable, batch: int, rows: DataFrame, *, parts: int, few: bool = False
    ) -> bool:
        """Adds the rows of a batch, in so many files at most; False if it was there already.

        `few`: all of them fit into this process.
        """
        if self.has_batch(table, batch):
            return False
        place = BatchPath(table.name, self.generation, batch)
        staged = staging_place(table.name, f"batch-{batch}")
        near = self.files.near(staged)
        if few and near is not None and self.files.renames_whole:
            write_few(table.shaped(rows).toArrow(), near, _COMPRESSION, by_day=table.by_day)
        else:
            self.write(table, rows, staged, parts)
        if self.files.renames_whole:
            return self.files.rename(staged, place.directory)
        self.files.remove(place.directory)  # left by a crash
        self.files.move_files(staged, place.directory)
        self.files.remove(staged)
        return True

    def batch_directories(self, table: WarehouseTable, after: int, through: int | None) -> list[str]:
        """The directories of batches in (after, through], in their order."""
        found: dict[int, str] = {}
        for block in self.files.directories(paths.generation_directory(table.name, self.generation)):
            spans = paths.numbers_of(self.files.directories(block), "span")
            for number, span in spans.items():
                if (number + 1) * paths.SPAN_BATCHES > after + 1 or after < 0:
                    found |= paths.numbers_of(self.files.directories(span), "batch_id")
        return [
            path
            for number, path in sorted(found.items())
            if number > after and (through is None or number <= through)
        ]

    def days_of(self, table: WarehouseTable, after: int, through: int) -> list[date]:
        """The days that batches in (after, through] have rows of."""
        found = {
            date.fromisoformat(day)
            for directory in self.batch_directories(table, after, through)
            for path in self.files.directories(directory)
            if (day := paths.value_of(path, "day")) is not None
        }
        return sorted(found)

    # -- tables that are replaced ----------------------------------------------------------------------------

    def replace_days(self, table: WarehouseTable, rows: DataFrame, days: Iterable[date]) -> None:
        """The rows, which have a column `day`, take the place of all rows of these days."""
        staged = staging_place(table.name, "days")
        self.write(table, rows, staged, 1)
        for day in days:
            target = paths.day_directory(table.name, self.generation, day)
            fresh = f"{staged}/day={day.isoformat()}"
            if self.files.exists(fresh):
                swap(self.files, fresh, target)
            else:
                self.files.remove(target)
        self.files.remove(staged)

    def replace_whole(
        self, table: WarehouseTable, rows: DataFrame, through: int, *, parts: int = 1, few: bool = False
    ) -> None:
        """The rows replace all others; they are the result of batches up to `through`.

        `few`: all of them fit into this process.
        """
        staged = staging_place(table.name, "whole")
        inside = f"{staged}/through={through}"
        near = self.files.near(inside)
        if few and near is not None:
            write_few(table.shaped(rows).toArrow(), near, _COMPRESSION, by_day=False)
        else:
            self.write(table, rows, inside, parts)
        swap(self.files, staged, paths.generation_directory(table.name, self.generation))

    def whole_through(self, table: WarehouseTable) -> int | None:
        """Up to which batch a table that is replaced whole has come; None: it is not there yet."""
        directory = paths.generation_directory(table.name, self.generation)
        there = paths.numbers_of(self.files.directories(directory), "through")
        return max(there) if there else None

    # -- reading ---------------------------------------------------------------------------------------------

    def is_there(self, table: WarehouseTable) -> bool:
        """Whether this generation has written it, be it without rows."""
        return self.files.exists(paths.generation_directory(table.name, self.generation))

    def read(self, table: WarehouseTable) -> DataFrame:
        """All rows of this generation; no rows where the table is not there yet."""
        directory = paths.generation_directory(table.name, self.generation)
        return self.read_directories(table, [directory] if self.is_there(table) else [])

    def read_batches(self, table: WarehouseTable, after: int, through: int | None = None) -> DataFrame:
        """The rows of batches in (after, through]."""
        return self.read_directories(table, self.batch_directories(table, after, through))

    def read_directories(self, table: WarehouseTable, directories: list[str]) -> DataFrame:
        """The rows in some directories of a table."""
        schema = table.read_schema()
        if not directories:
            return local_rows(self.spark, [], schema)
        if table.filling == "whole":
            schema = schema.add("through", "long")
        reader = self.spark.read.schema(schema).option("basePath", self.files.uri(table.name))
        return reader.parquet(*(self.files.uri(path) for path in directories))

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, table: WarehouseTable, rows: DataFrame, directory: str, parts: int) -> None:
        """Writes rows to a directory that no reader uses yet."""
        shaped = table.shaped(rows).coalesce(parts)
        writer = shaped.write.option("compression", _COMPRESSION).mode("overwrite")
        if self.files.renames_whole:  # complete rows need no marker
            writer = writer.option(_MARKING, "false")
        if table.by_day:
            writer = writer.partitionBy("day")
        writer.parquet(self.files.uri(directory))

    def _complete(self, directory: str) -> bool:
        return self.files.exists(f"{directory}/{MARK}")
