"""Reads tables of the warehouse for the report: the needed columns, of the requested time."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from penstock.pipeline.warehouse.arrow_files import check_is_there, file_system, is_directory

Rows = list[dict[str, Any]]
_BATCH_ROWS = 65_536


class Greatest(NamedTuple):
    """Some rows of a table."""

    rows: Rows
    total: int
    """How many there are."""


class Shelf:
    """The directory of the tables; if they are missing, the jobs that fill them have not run."""

    def __init__(self, warehouse: str, since: datetime, until: datetime) -> None:
        self._system, self._root = file_system(warehouse)
        self.since = since
        self.until = until
        check_is_there(warehouse, self._system, self._root)

    def table(self, name: str, columns: list[str], time: str | None = None) -> Any:
        """A table's columns as Arrow; None if there is none. `time`: the column that must lie within the report's time."""
        import pyarrow.compute as pc

        found = self._opened(name)
        if found is None:
            return None
        if time is None:
            return found.to_table(columns=columns)
        within = (pc.field(time) >= pc.scalar(self.since)) & (pc.field(time) < pc.scalar(self.until))
        return found.to_table(columns=columns, filter=within)

    def count(self, name: str) -> int:
        """How many rows a table has, of all times; they are not read for it, since they may be very many."""
        found = self._opened(name)
        return 0 if found is None else int(found.count_rows())

    def names(self, name: str) -> list[str]:
        """The columns of a table; empty if there is none."""
        found = self._opened(name)
        return [] if found is None else list(found.schema.names)

    def rows(self, name: str, columns: list[str], time: str | None = None) -> Rows | None:
        """The same as Python's own values, for small tables."""
        found = self.table(name, columns, time)
        return None if found is None else found.to_pylist()

    def greatest(self, name: str, columns: list[str], by: str, most: int) -> Greatest | None:
        """The rows that are greatest in one of the columns, and their total number; None if there is no table.

        It may have any number of rows: no more than these and one batch of others are ever in memory.
        """
        import pyarrow as pa

        found = self._opened(name)
        if found is None:
            return None
        held, rows = None, 0
        for batch in found.to_batches(columns=columns, batch_size=_BATCH_ROWS):
            rows += batch.num_rows
            piece = pa.Table.from_batches([batch])
            held = piece if held is None else pa.concat_tables([held, piece])
            held = held.sort_by([(by, "descending")]).slice(0, most)
        return Greatest([] if held is None else held.to_pylist(), rows)

    def _opened(self, name: str) -> Any:
        """The table as PyArrow reads it; None if there is none, or no file of it is left."""
        import pyarrow.dataset as ds

        system, root = self._system, f"{self._root}/{name}"
        if not is_directory(system, root):
            return None
        found = ds.dataset(root, filesystem=system, format="parquet", partitioning="hive")
        return found if found.files else None
