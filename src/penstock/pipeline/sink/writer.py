"""`df.write.format("penstock")` and `writeStream`: rows become messages, and a repeated task adds none.

Every row has a deduplication id (see `identity.py`), so the queue itself drops repeats, as long as its deduplication
window lasts. Nothing is staged: a message can be received as soon as it is stored, and a job that fails permanently leaves
the messages that its tasks have sent.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.sink.columns import check_columns
from penstock.pipeline.sink.identity import RowIdentities
from penstock.pipeline.sink.rows import messages_of
from penstock.pipeline.source.connection import Connection
from penstock.pipeline.source.options import WriteOptions

logger = logging.getLogger("penstock.pipeline")

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
"""The properties in which Spark gives a task of a streaming query the query and micro-batch."""


@dataclass
class TaskResult(WriterCommitMessage):
    """The messages sent by one task."""

    messages: int


def checked_schema(schema: StructType, overwrite: bool) -> None:
    """Raises where rows of that kind, or in that mode, cannot be written."""
    if overwrite:
        raise PipelineError(
            'a queue cannot be overwritten: write with mode("append"), and empty it first with `penstock purge` if '
            "that is what you want"
        )
    check_columns(schema)


class QueueBatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame, once."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        checked_schema(schema, overwrite)
        self._options = options
        self._write_id = options.write_id or str(uuid.uuid4())
        """Made on the driver: all attempts of all tasks share it."""
        with Connection(options.target) as connection:
            connection.description()  # a missing queue is reported before any task starts

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Sends the rows of one task."""
        context = _context()
        return send_rows(self._options, iterator, context, f"write/{self._write_id}")


class QueueStreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a streaming query."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        checked_schema(schema, overwrite)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Sends the rows of one task of a micro-batch."""
        context = _context()
        query, epoch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if self._options.exactly_once and (query is None or epoch is None):
            raise PipelineError(
                "Spark does not say which query and micro-batch a task is of, so rows of an earlier attempt cannot be "
                "recognized. Set exactlyOnce=false to write at least once"
            )
        return send_rows(self._options, iterator, context, f"stream/{query}/{epoch}")


def send_rows(
    options: WriteOptions, batches: Iterator[pa.RecordBatch], context: TaskContext, scope: str
) -> TaskResult:
    """Sends everything and returns when it is stored."""
    turn = context.partitionId()
    identities = RowIdentities(f"{scope}/{turn}") if options.exactly_once else None
    sent = 0
    begun = time.monotonic()
    with Connection(options.target, turn) as connection:
        window = connection.description().settings.deduplication_window_ms / 1000
        with connection.explained(), connection.client.queue(options.target.queue).producer() as producer:
            for batch in batches:
                messages = messages_of(batch, identities)
                producer.send_many(messages)
                sent += len(messages)
    took = time.monotonic() - begun
    if identities is not None and took > window:
        logger.warning(
            "a task wrote to %(queue)r for %(seconds).0f s, longer than the queue's deduplication "
            "window of %(window).0f s: if Spark had run it again, its first rows would be stored "
            "twice. Write with more partitions, or set a longer window",
            {"queue": options.target.queue, "seconds": took, "window": window},
        )
    return TaskResult(sent)


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise PipelineError("rows are written by tasks of Spark only")
    return context
