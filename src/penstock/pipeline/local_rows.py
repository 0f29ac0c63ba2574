"""Rows in the driver's memory, as a table of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def local_rows(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: StructType | str) -> DataFrame:
    """The rows, which become part of the plan.

    A list would be cut into tasks, each of which has Python unpack its part again: that costs half a second where there
    are three rows, and as much where there are none.
    """
    wanted = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    assert isinstance(wanted, StructType)
    columns = to_arrow_schema(wanted, timezone="UTC")
    arrays = [pa.array([row[place] for row in rows], column.type) for place, column in enumerate(columns)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=columns), wanted)
