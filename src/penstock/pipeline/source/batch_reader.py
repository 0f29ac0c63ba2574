"""`spark.read.format("penstock")`: a range of a log, fixed when the query is planned."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from penstock.pipeline.source.connection import Connection
from penstock.pipeline.source.missing import lost_sentence
from penstock.pipeline.source.offsets import (
    checked_starts,
    ending_offsets,
    present_partitions,
    starting_offsets,
)
from penstock.pipeline.source.options import ReadOptions
from penstock.pipeline.source.ranges import (
    TaskRanges,
    gaps_of,
    messages_per_task,
    plan_tasks,
    ranges_between,
)
from penstock.pipeline.source.reading import read_task

logger = logging.getLogger("penstock.pipeline")

TABLE_WEIGHT = 1_000
"""A message that holds rows of a table counts for so many messages when tasks are planned."""


class LogBatchReader(DataSourceReader):
    """Plans on the driver, reads in tasks. It has no `pushFilters`: Spark 4.3 mixes those of one query with another's."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """The stretch of the log, cut into what tasks read."""
        options = self._options
        with Connection(options.target) as connection:
            source = connection.log()
            present = present_partitions(connection, source, options)
            wanted = starting_offsets(connection, source, present, options)
            starts, missing = checked_starts(present, wanted, options)
            stops = ending_offsets(connection, source, present, options)
        if missing:
            logger.warning(
                "%(reason)s", {"reason": lost_sentence(options, missing), "queue": options.target.queue}
            )
        ranges = ranges_between(starts, stops, gaps_of(present))
        weight = 1 if options.rows == "messages" else TABLE_WEIGHT
        size = options.messages_per_task or messages_per_task(sum(one.messages for one in ranges), weight)
        queue_id = connection.queue_id
        return [*(plan_tasks(ranges, size, queue_id) or [TaskRanges((), 0, queue_id)])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, TaskRanges)
        return read_task(self._options, self._schema, partition)
