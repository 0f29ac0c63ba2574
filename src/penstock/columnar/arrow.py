"""Rows as one Arrow IPC stream: the schema, one record batch, the end. Columns are filled as whole buffers."""

from __future__ import annotations

import io
from array import array
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import nanoarrow
from nanoarrow.c_array import c_array_from_buffers
from nanoarrow.ipc import StreamWriter

from penstock.columnar.table import Column, Table

_CODES = {"timestamp": "q", "int64": "q", "int32": "i", "int8": "b"}

Cells = Sequence[Any]
"""The values of one column: `int` or `str`, and None where the column is optional."""


def arrow_stream(table: Table, columns: Sequence[Cells]) -> bytes:
    """The rows, column by column in the table's order, as bytes that any Arrow reader takes."""
    rows = len(columns[0])
    schema = _schema(table)
    children = [
        _filled(column, kind, cells)
        for column, kind, cells in zip(table.columns, _kinds(table), columns, strict=True)
    ]
    batch = c_array_from_buffers(schema, rows, [None], null_count=0, children=children)
    written = io.BytesIO()
    with StreamWriter.from_writable(written) as writer:
        writer.write_array(batch)
    return written.getvalue()


def _filled(column: Column, kind: nanoarrow.Schema, cells: Cells) -> Any:
    validity, missing = None, 0
    if column.optional and (missing := cells.count(None)):
        if missing == len(cells):
            return _empty(column, kind, missing)
        validity = _bits(cells)
        nothing: Any = "" if column.kind == "string" else 0
        cells = [nothing if cell is None else cell for cell in cells]
    if column.kind == "string":
        # One encoding for all, and one a cell only where characters and bytes differ in number.
        text = "".join(cells)
        data = text.encode()
        sizes = map(len, cells) if len(data) == len(text) else (len(cell.encode()) for cell in cells)
        offsets = array("i", accumulate(sizes, initial=0))
        return c_array_from_buffers(kind, len(cells), [validity, offsets, data], null_count=missing)
    values = array(_CODES[column.kind], cells)
    return c_array_from_buffers(kind, len(cells), [validity, values], null_count=missing)


def _empty(column: Column, kind: nanoarrow.Schema, rows: int) -> Any:
    """A column in which nothing is there, which many of a table of changes are: zeros, made at once."""
    validity = bytes((rows + 7) // 8)
    if column.kind == "string":
        offsets = array("i", bytes(4 * (rows + 1)))
        return c_array_from_buffers(kind, rows, [validity, offsets, b""], null_count=rows)
    code = _CODES[column.kind]
    values = array(code, bytes(array(code).itemsize * rows))
    return c_array_from_buffers(kind, rows, [validity, values], null_count=rows)


def _bits(cells: Cells) -> bytes:
    """Arrow's bitmap of what is there: the first cell is the lowest bit."""
    # As one number: a third of the time of setting bit by bit.
    digits = "".join(["0" if cell is None else "1" for cell in reversed(cells)])
    return int(digits, 2).to_bytes((len(cells) + 7) // 8, "little")


@cache
def _kinds(table: Table) -> tuple[nanoarrow.Schema, ...]:
    return tuple(_kind(column) for column in table.columns)


@cache
def _schema(table: Table) -> nanoarrow.Schema:
    return nanoarrow.struct(dict(zip(table.names, _kinds(table), strict=True)))


def _kind(column: Column) -> nanoarrow.Schema:
    if column.kind == "timestamp":
        return nanoarrow.timestamp("us", timezone="UTC", nullable=column.optional)
    makers = {
        "string": nanoarrow.string,
        "int8": nanoarrow.int8,
        "int32": nanoarrow.int32,
        "int64": nanoarrow.int64,
    }
    return makers[column.kind](nullable=column.optional)
