"""The work of a task: reads its ranges of the log and returns them as batches of rows, a few MiB at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock import BlockingLog, OffsetGone
from penstock.client.log.logged import LoggedMessages
from penstock.pipeline.columns import message_batch
from penstock.pipeline.source.connection import Connection
from penstock.pipeline.source.missing import (
    Missing,
    gone,
    lost_sentence,
    made_again,
    made_again_sentence,
)
from penstock.pipeline.source.options import ReadOptions
from penstock.pipeline.source.ranges import LogRange, TaskRanges
from penstock.pipeline.source.table_rows import TABLES, table_batches

logger = logging.getLogger("penstock.pipeline")

BATCH_ROWS = 16_384
BATCH_BYTES = 4 * 1024 * 1024
SLICE_BYTES = 1024 * 1024
IN_FLIGHT = 4


def read_task(options: ReadOptions, schema: StructType, task: TaskRanges) -> Iterator[pa.RecordBatch]:
    """The rows of a task's ranges, in their order."""
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    table = TABLES.get(options.rows)
    with Connection(options.target, task.turn) as connection:
        source = connection.log()
        if task.ranges and connection.queue_id != task.queue_id:
            if options.fail_on_data_loss:
                raise made_again(options)
            logger.warning(
                "%(reason)s: the messages of the old queue are not read",
                {"reason": made_again_sentence(options)},
            )
            return
        for one in task.ranges:
            for slices in _gathered(_slices(connection, source, one, options)):
                if table is None:
                    yield message_batch(slices, arrow_schema)
                else:
                    yield from _joined(table_batches(slices, table, arrow_schema))


def _slices(
    connection: Connection, source: BlockingLog, wanted: LogRange, options: ReadOptions
) -> Iterator[LoggedMessages]:
    """The range, slice by slice; messages that the log removed or lost meanwhile are an error, or skipped and reported."""
    start = wanted.start
    while start < wanted.stop:
        reader = source.batches(
            start=start,
            stop=wanted.stop,
            slice_bytes=SLICE_BYTES,
            in_flight=IN_FLIGHT,
            direct=options.direct,
        )
        try:
            with connection.explained(), reader:
                for found in reader:
                    start = found.next
                    yield found
            following = (
                wanted.stop
            )  # a failover has lost what is left, if anything is, since the range was planned
        except OffsetGone as error:
            following = min(max(error.begin, start + 1), wanted.stop)
        if start < following:
            lost = {wanted.partition: Missing(start, following, following - start)}
            if options.fail_on_data_loss:
                raise gone(options, lost)
            logger.warning(
                "%(reason)s", {"reason": lost_sentence(options, lost), "queue": options.target.queue}
            )
        start = following


def _gathered(slices: Iterator[LoggedMessages]) -> Iterator[list[LoggedMessages]]:
    """Combines small slices, because a batch of rows has a fixed cost."""
    held: list[LoggedMessages] = []
    rows = size = 0
    for one in slices:
        held.append(one)
        rows += len(one)
        size += one.size_bytes
        if rows >= BATCH_ROWS or size >= BATCH_BYTES:
            yield held
            held, rows, size = [], 0, 0
    if held:
        yield held


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS:
            yield _one(held)
            held, rows = [], 0
    if rows:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
