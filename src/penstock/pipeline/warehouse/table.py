"""Tables of the warehouse as data: the purpose of each, the meaning of its columns, and how it is written.

`penstock pipeline show` prints this, and Spark's schemas are made from it, so the two always agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.pipeline.statement import select

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

Kind = Literal["timestamp", "string", "boolean", "int32", "int64", "double", "date", "samples"]
"""`samples`: a list of structures of (message_id, partition, sequence, error)."""

Filling = Literal["batches", "days", "whole"]
"""How a table is written.

batches   rows are added, a directory for each batch, and never change
days      rows of a day are replaced together
whole     all rows are replaced together
"""

Ages = Literal["time", "numbers", "never"]
"""Which rows are too old, if rows are kept for a limited time.

time      those before it, by the day, or by the column `time` if a table has no days
numbers   of each partition those before the first row to keep: no row is missing between others
never     none, because later rows are added to them
"""

PLACE_COLUMNS = ("gen", "block", "span", "batch_id")
"""For tables that are filled by batches: the batch of a row. All tables have `gen`."""


@dataclass(frozen=True)
class WarehouseColumn:
    """One column."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class WarehouseTable:
    """One table. `by_day`: it is partitioned by the column `day`, which is a directory and in no file."""

    name: str
    sentence: str
    filling: Filling
    columns: tuple[WarehouseColumn, ...]
    by_day: bool = False
    ages: Ages = "time"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in the files, in their order."""
        return tuple(column.name for column in self.columns)

    def file_schema(self) -> StructType:
        """The columns of the files, as Spark's types."""
        from pyspark.sql.types import StructField, StructType

        return StructType([StructField(column.name, _spark_type(column.kind)) for column in self.columns])

    def read_schema(self) -> StructType:
        """The columns of the files, then those of the directories."""
        from pyspark.sql.types import DateType, LongType, StringType, StructType

        schema = StructType(self.file_schema().fields).add("gen", StringType())
        if self.filling == "batches":
            for name in PLACE_COLUMNS[1:]:
                schema = schema.add(name, LongType())
        return schema.add("day", DateType()) if self.by_day else schema

    def shaped(self, rows: DataFrame) -> DataFrame:
        """The rows with exactly this table's columns and types, and its day where it has one."""
        wanted = [
            f"cast(`{field.name}` as {field.dataType.simpleString()}) as `{field.name}`"
            for field in self.file_schema().fields
        ]
        return select(f"select {', '.join(wanted)}{', day' * self.by_day} from {{rows}}", rows=rows)


def column(name: str, kind: Kind, meaning: str) -> WarehouseColumn:
    """Short, because tables have many."""
    return WarehouseColumn(name, kind, meaning)


def _spark_type(kind: Kind) -> DataType:
    from pyspark.sql import types

    simple: dict[Kind, DataType] = {
        "timestamp": types.TimestampType(),
        "string": types.StringType(),
        "boolean": types.BooleanType(),
        "int32": types.IntegerType(),
        "int64": types.LongType(),
        "double": types.DoubleType(),
        "date": types.DateType(),
    }
    if kind == "samples":
        return types.ArrayType(
            types.StructType(
                [
                    types.StructField("message_id", types.StringType()),
                    types.StructField("partition", types.IntegerType()),
                    types.StructField("sequence", types.LongType()),
                    types.StructField("error", types.StringType()),
                ]
            )
        )
    return simple[kind]
