"""What is written as Arrow is read back by Arrow's own library, cell by cell."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from penstock.columnar.arrow import arrow_stream
from penstock.columnar.lifecycle import LIFECYCLE
from penstock.columnar.table import Column, Table
from penstock.columnar.usage import USAGE

_CELLS: dict[str, st.SearchStrategy[Any]] = {
    "timestamp": st.integers(0, 2**52),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int8": st.integers(-128, 127),
    "string": st.text(st.characters(codec="utf-8"), max_size=12),
}


def cells(column: Column, rows: int) -> st.SearchStrategy[list[Any]]:
    """A column's worth of values."""
    value = _CELLS[column.kind]
    return st.lists(st.none() | value if column.optional else value, min_size=rows, max_size=rows)


def read_back(stream: bytes) -> pa.Table:
    """The rows, checked by Arrow in full."""
    found = ipc.open_stream(stream).read_all()
    found.validate(full=True)
    return found


@pytest.mark.parametrize("table", [USAGE, LIFECYCLE], ids=lambda table: table.name)
@given(data=st.data(), rows=st.integers(1, 20))
def test_every_cell_comes_back(table: Table, data: st.DataObject, rows: int) -> None:
    columns = [data.draw(cells(column, rows)) for column in table.columns]
    found = read_back(arrow_stream(table, columns))
    assert tuple(found.column_names) == table.names
    for column, wanted in zip(table.columns, columns, strict=True):
        got = found[column.name]
        if column.kind == "timestamp":
            assert got.type == pa.timestamp("us", tz="UTC")
            got = got.cast(pa.int64())
        assert got.to_pylist() == wanted
        assert found.schema.field(column.name).nullable == column.optional


def test_no_rows_are_a_table_too() -> None:
    found = read_back(arrow_stream(USAGE, [[] for _ in USAGE.columns]))
    assert found.num_rows == 0
    assert tuple(found.column_names) == USAGE.names
