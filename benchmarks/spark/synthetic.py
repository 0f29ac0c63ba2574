"""Rows of usage and of lifecycles, many at once, as Parquet files: made of columns, so that millions take seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.columnar.lifecycle import LIFECYCLE, Change
from penstock.columnar.table import Table
from penstock.columnar.usage import USAGE

ROWS_A_FILE = 1_000_000
CHANGES = (Change.SENT, Change.LEASED, Change.DELETED)
"""What becomes of every message."""
_TYPES: dict[str, Any] = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
}
_BEGIN_US = 1_790_000_000_000_000


def write_usage(directory: Path, rows: int) -> None:
    """Requests of 20 users to 50 queues: 4,000 a second."""
    for first in range(0, rows, ROWS_A_FILE):
        numbers = np.arange(first, min(rows, first + ROWS_A_FILE), dtype=np.int64)
        scattered = numbers * 2_654_435_761 % 4_294_967_296
        columns = {
            "time": _BEGIN_US + 250 * numbers,
            "front_end": _words(numbers % 2, ["frontend-1", "frontend-2"]),
            "number": numbers // 2,
            "account": _words(numbers * 0, ["000000000000"]),
            "user": _words(scattered % 20, [f"user-{one}" for one in range(20)]),
            "address": _words(numbers * 0, ["10.0.0.7"]),
            "action": _words(scattered % 3, ["SendMessage", "ReceiveMessage", "DeleteMessage"]),
            "queue": _words(
                scattered % 50, [f"arn:aws:sqs:penstock:000000000000:orders-{one}" for one in range(50)]
            ),
            "messages": 1 + numbers % 10,
            "bytes_in": numbers % 2_000,
            "bytes_out": numbers * 0 + 200,
            "outcome": _words((scattered % 100 == 0).astype(np.int64), ["ok", "RequestThrottled"]),
            "status": 200 + 0 * numbers,
            "latency_us": 200 + scattered % 10_007,
            "request_id": pa.array(scattered).cast(pa.string()),
        }
        _write(directory, USAGE, columns, first)


def write_lifecycle(directory: Path, rows: int) -> None:
    """Messages of 8 partitions, sent, leased and deleted one by one: a record each."""
    for first in range(0, rows, ROWS_A_FILE):
        places = np.arange(first, min(rows, first + ROWS_A_FILE), dtype=np.int64)
        message, step = places // len(CHANGES), places % len(CHANGES)
        partition, sequence = message % 8, 1 + message // 8
        columns = {
            "time": _BEGIN_US + 250 * places + 40_000 * step,
            "queue": _words(partition, [f"orders-{one}" for one in range(8)]),
            "queue_id": 10 + partition,
            "partition": places * 0,
            "partition_id": 100 + partition,
            "number": (sequence - 1) * len(CHANGES) + step + 1,
            "change": np.array(CHANGES, np.int64)[step],
            "first": sequence,
            "count": places * 0 + 1,
            "ordering": _words(np.minimum(step, 1), ["best-effort", None]),
            "bytes": pa.array(places * 0 + 1024, mask=step > 0),
        }
        _write(directory, LIFECYCLE, columns, first)


def _words(indices: Any, words: list[str] | list[str | None]) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(words, pa.string())).cast(
        pa.string()
    )


def _write(directory: Path, table: Table, columns: dict[str, Any], first: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    count = len(next(iter(columns.values())))
    arrays = [
        pa.array(columns[one.name]).cast(_TYPES[one.kind])
        if one.name in columns
        else pa.nulls(count, _TYPES[one.kind])
        for one in table.columns
    ]
    rows = pa.Table.from_arrays(arrays, names=list(table.names))
    pq.write_table(rows, directory / f"rows-{first:010d}.parquet", compression="zstd")
