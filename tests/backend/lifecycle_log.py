"""The log of lifecycles as a reader has it: rows, read by Arrow's own library."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import ipc

from penstock.columnar.lifecycle import LIFECYCLE_QUEUE, Change
from tests.backend.harness import NodeHarness
from tests.backend.log_reader import read_all

Row = dict[str, Any]


def rows_in(bodies: list[bytes]) -> list[Row]:
    """The rows of Arrow streams, in order; times as milliseconds, changes by name."""
    found: list[Row] = []
    for body in bodies:
        table = ipc.open_stream(body).read_all()
        table.validate(full=True)
        for name in ("time", "until"):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].cast(pa.int64()))
        found += table.to_pylist()
    for row in found:
        row["change"] = Change(row["change"]).name
        row["time"] //= 1_000
        row["until"] = None if row["until"] is None else row["until"] // 1_000
    return found


def rows_of(node: NodeHarness, queue_id: int) -> list[Row]:
    """What the log says of one queue, once it has been reported; repeated rows once."""
    node.advance(1_000)
    log = node.show(LIFECYCLE_QUEUE).queue_id
    rows = {row["number"]: row for row in rows_in(read_all(node, log)) if row["partition_id"] == queue_id}
    assert list(rows) == sorted(rows)
    return list(rows.values())


def told(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    """Some columns of the rows."""
    return [tuple(row[name] for name in names) for row in rows]
