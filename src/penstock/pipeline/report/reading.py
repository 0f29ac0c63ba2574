"""Reads tables of the warehouse for the report: the columns that are asked for, of the time that is asked for."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

from penstock.pipeline.trouble import PipelineError

Rows = list[dict[str, Any]]


class Shelf:
    """Where the tables are; all of them may be missing, and then the jobs that fill them have not run."""

    def __init__(self, warehouse: str, since: datetime, until: datetime) -> None:
        self._warehouse = warehouse.rstrip("/")
        self.since = since
        self.until = until
        if "://" not in warehouse and not os.path.isdir(warehouse):
            raise PipelineError(
                f"there is no warehouse in {warehouse}: `penstock pipeline run usage --once` makes one; name another "
                "with --warehouse"
            )

    def table(self, name: str, columns: list[str], time: str | None = None) -> Any:
        """A table's columns as Arrow; None if there is none. `time`: the column that must lie within the report's time."""
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        root = f"{self._warehouse}/{name}"
        if "://" not in root and not os.path.isdir(root):
            return None
        found = ds.dataset(root, format="parquet", partitioning="hive")
        if time is None:
            return found.to_table(columns=columns)
        within = (pc.field(time) >= pc.scalar(self.since)) & (pc.field(time) < pc.scalar(self.until))
        return found.to_table(columns=columns, filter=within)

    def count(self, name: str) -> int:
        """How many rows a table has, of all times; they are not read for it, since they may be very many."""
        import pyarrow.dataset as ds

        root = f"{self._warehouse}/{name}"
        if "://" not in root and not os.path.isdir(root):
            return 0
        return int(ds.dataset(root, format="parquet", partitioning="hive").count_rows())

    def names(self, name: str) -> list[str]:
        """The columns of a table; empty if there is none."""
        import pyarrow.dataset as ds

        root = f"{self._warehouse}/{name}"
        if "://" not in root and not os.path.isdir(root):
            return []
        return list(ds.dataset(root, format="parquet", partitioning="hive").schema.names)

    def rows(self, name: str, columns: list[str], time: str | None = None) -> Rows | None:
        """The same as Python's own values, for small tables."""
        found = self.table(name, columns, time)
        return None if found is None else found.to_pylist()
