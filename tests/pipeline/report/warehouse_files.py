"""Tables of a warehouse with a few rows, written without Spark: as the jobs' own declarations say they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from penstock.pipeline.warehouse.table import WarehouseTable

_TYPES: dict[str, Any] = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "samples": pa.list_(pa.struct([("message_id", pa.string())])),
}


def write_table(
    warehouse: Path, table: WarehouseTable, rows: list[dict[str, Any]], place: str = "gen=a"
) -> None:
    """One file of rows; columns that a row does not name are null, or 0 where they are counts."""
    schema = pa.schema([(column.name, _TYPES[column.kind]) for column in table.columns])
    filled = [
        {
            column.name: row.get(column.name, 0 if column.kind in ("int32", "int64", "double") else None)
            for column in table.columns
        }
        for row in rows
    ]
    directory = warehouse / table.name / place
    directory.mkdir(parents=True, exist_ok=True)
    number = len(list(directory.iterdir()))
    parquet.write_table(pa.Table.from_pylist(filled, schema=schema), directory / f"part-{number}.parquet")
