"""Messages whose bodies are rows of a table, as those rows: columns go from the body to Spark unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.client.log.logged import LoggedMessages
from penstock.columnar.lifecycle import LIFECYCLE
from penstock.columnar.table import Kind, Table
from penstock.columnar.usage import USAGE
from penstock.model.partition_numbers import partition_of
from penstock.pipeline.errors import PipelineError

TABLES = {"usage": USAGE, "lifecycle": LIFECYCLE}
PARTITION, SEQUENCE = "log_partition", "log_sequence"
"""The message of a row."""

_SPARK_TYPES: dict[Kind, DataType] = {
    "timestamp": TimestampType(),
    "string": StringType(),
    "int8": ByteType(),
    "int32": IntegerType(),
    "int64": LongType(),
}


def table_schema(table: Table) -> StructType:
    """The columns of the table, and the origin of each row."""
    columns = [
        StructField(column.name, _SPARK_TYPES[column.kind], column.optional) for column in table.columns
    ]
    columns.append(StructField(PARTITION, IntegerType(), False))
    columns.append(StructField(SEQUENCE, LongType(), False))
    return StructType(columns)


def table_batches(slices: list[LoggedMessages], table: Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the messages, message by message."""
    for one in slices:
        for part in one.parts:
            batch = part.batch
            data = pa.py_buffer(batch.data)
            start = batch.body_offset
            for sequence, size in enumerate(batch.sizes, part.first):
                yield from rows_of_body(data.slice(start, size), table, schema, one.queue_name, sequence)
                start += size


def rows_of_body(
    body: pa.Buffer, table: Table, schema: pa.Schema, queue: str, sequence: int
) -> list[pa.RecordBatch]:
    """The rows of one message, with the columns that readers of today expect: writers may be older, or newer."""
    try:
        with pa.ipc.open_stream(body) as stream:
            return [_aligned(found, table, schema, sequence) for found in stream]
    except (pa.ArrowInvalid, OSError) as error:
        raise _not_rows(queue, sequence, table, f"its body is no Arrow stream ({error})") from None
    except _WrongColumn as error:
        raise _not_rows(queue, sequence, table, str(error)) from None


class _WrongColumn(Exception):
    """A column does not match the table."""


def _aligned(found: pa.RecordBatch, table: Table, schema: pa.Schema, sequence: int) -> pa.RecordBatch:
    rows = found.num_rows
    present = {name: place for place, name in enumerate(found.schema.names)}
    columns = []
    for column in table.columns:
        place = present.get(column.name)
        kind = schema.field(column.name).type
        if place is None:
            if not column.optional:
                raise _WrongColumn(f"column {column.name} is missing")
            columns.append(pa.nulls(rows, kind))
            continue
        cells = found.column(place)
        if cells.type != kind:
            try:
                cells = cells.cast(kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise _WrongColumn(f"column {column.name}: {error}") from None
        columns.append(cells)
    columns.append(pa.repeat(pa.scalar(partition_of(sequence), pa.int32()), rows))
    columns.append(pa.repeat(pa.scalar(sequence, pa.int64()), rows))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _not_rows(queue: str, sequence: int, table: Table, why: str) -> PipelineError:
    return PipelineError(
        f"message {sequence} of queue {queue!r} holds no rows of {table.name}: {why}. Read it with rows=messages, or "
        "name the queue that holds them"
    )
