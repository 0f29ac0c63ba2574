"""Rows out of an Arrow stream, as plain values: for checks and small tools, one row at a time."""

from __future__ import annotations

import io
from typing import Any

import nanoarrow

from penstock.columnar.table import Table

Row = dict[str, Any]
"""The cells of a row by column; times are microseconds since 1970."""


def rows_of(table: Table, stream: bytes) -> list[Row]:
    """All rows of a stream that was written with the table's columns."""
    found = nanoarrow.ArrayStream.from_readable(io.BytesIO(stream)).read_all()
    columns = []
    for place, column in enumerate(table.columns):
        cells = found.child(place).to_pylist()
        if column.kind == "timestamp":
            times = list(found.child(place).buffer(1))
            cells = [None if cell is None else time for cell, time in zip(cells, times, strict=True)]
        columns.append(cells)
    return [dict(zip(table.names, cells, strict=True)) for cells in zip(*columns, strict=True)]
