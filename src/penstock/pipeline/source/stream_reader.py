"""`spark.readStream.format("penstock")`: a growing log, in micro-batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock import BlockingLog, LogPartition
from penstock.model.errors import PenstockError
from penstock.pipeline.source.batch_reader import TABLE_WEIGHT
from penstock.pipeline.source.connection import Connection, explanation
from penstock.pipeline.source.missing import (
    Missing,
    gone,
    lost_sentence,
    made_again,
    made_again_sentence,
    missing_messages,
)
from penstock.pipeline.source.offsets import checked_starts, present_partitions, starting_offsets
from penstock.pipeline.source.options import ReadOptions
from penstock.pipeline.source.ranges import TaskRanges, gaps_of, messages_per_task, plan_tasks
from penstock.pipeline.source.reading import read_task
from penstock.pipeline.source.sampling import messages_within
from penstock.pipeline.source.stream_offset import (
    StreamOffset,
    admitted,
    load_offset,
    lost_stops,
    planned_ranges,
)

logger = logging.getLogger("penstock.pipeline")

IDLE_SECONDS = 0.05
"""Spark asks again at once where nothing is new; so long it is made to wait, for the sake of the server."""


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process of the driver as long as the query; a copy of it reads in tasks."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._connection = Connection(options.target)
        self._goal: dict[int, int] | None = None
        """With `availableNow`: the ends of the partitions when the query began."""
        self._told: dict[int, int] = {}
        """The last offset of the group."""

    # -- offsets, on the driver ------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins."""
        source, queue_id, present = self._look()
        wanted = starting_offsets(self._connection, source, present, self._options)
        checked_starts(present, wanted, self._options)  # says now what could not be read later
        return StreamOffset(queue_id, wanted).dump()

    def getDefaultReadLimit(self) -> ReadLimit:
        """The default limit of a trigger; both limits apply, whichever is named here."""
        if self._options.max_messages is not None:
            return ReadMaxRows(self._options.max_messages)
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Limits the query to the present messages."""
        _, _, present = self._look()
        self._goal = {one.partition: one.end for one in present}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next micro-batch."""
        source, queue_id, present = self._look()
        begun = load_offset(start)
        following, missing = self._begun(begun, queue_id, present)
        if begun.queue_id == queue_id:
            self._tell_group(source, begun)
        ends = {one.partition: one.end for one in present}
        if self._goal is not None:
            ends = {one: min(end, ends.get(one, end)) for one, end in self._goal.items()}
        everything = isinstance(limit, ReadAllAvailable)
        gaps = gaps_of(present)
        stops = admitted(following, ends, None if everything else self._options.max_messages, gaps)
        if self._options.max_bytes is not None and not everything:
            with self._connection.explained():
                most = messages_within(source, following, stops, self._options.max_bytes, gaps)
            stops = admitted(following, stops, most, gaps)
        if stops == begun.following and self._goal is None:
            time.sleep(IDLE_SECONDS)
        return StreamOffset(queue_id, stops, missing).dump()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The end of the log, for progress reports."""
        _, queue_id, present = self._look()
        latest = StreamOffset(queue_id, {one.partition: one.end for one in present}).dump()
        gaps = {str(one.partition): one.gaps for one in present if one.gaps}
        return latest | {"gaps": gaps} if gaps else latest

    def commit(self, end: dict[str, Any]) -> None:
        """Spark calls it a micro-batch late, and for the last one never; `latestOffset` knows more."""

    def stop(self) -> None:
        """The query has ended."""
        self._connection.close()

    def _look(self) -> tuple[BlockingLog, int, list[LogPartition]]:
        """The log as it is now."""
        source = self._connection.log()
        present = present_partitions(self._connection, source, self._options)
        return source, self._connection.queue_id, present

    def _begun(
        self, begun: StreamOffset, queue_id: int, present: list[LogPartition]
    ) -> tuple[dict[int, int], int]:
        """Where the micro-batch begins in each partition, and how much is missing by now."""
        options = self._options
        if begun.queue_id != queue_id:
            if options.fail_on_data_loss:
                raise made_again(options)
            logger.warning(
                "%(reason)s: the query reads the messages of the new queue",
                {"reason": made_again_sentence(options)},
            )
            return {one.partition: one.begin for one in present}, begun.missing
        starts = {one.partition: one.begin for one in present} | begun.following
        checked, gaps = checked_starts(present, starts, options)
        self._report(gaps)
        return checked, begun.missing + missing_messages(gaps)

    def _tell_group(self, source: BlockingLog, done: StreamOffset) -> None:
        """Commits the group's offset, for people and monitoring. Spark asks for the next micro-batch when the last is done.

        A failed commit delays nothing.
        """
        group = self._options.group
        if group is None or done.following == self._told:
            return
        self._told = done.following
        try:
            source.commit_offsets(group, done.following)
        except PenstockError as error:
            said = explanation(error, self._options.target)
            logger.warning(
                "could not commit the progress of the query for group %(group)s: %(error)s",
                {"group": group, "error": said},
            )

    def _report(self, gaps: dict[int, Missing]) -> None:
        if gaps:
            logger.warning(
                "%(reason)s; the query continues after them", {"reason": lost_sentence(self._options, gaps)}
            )

    # -- tasks -----------------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The micro-batch, cut into what tasks read; a small one is one task.

        One that was planned before the queue was made again has no rows any more: its numbers are of other messages now,
        which the next micro-batch reads.
        """
        options = self._options
        begun, ended = load_offset(start), load_offset(end)
        _, queue_id, present = self._look()
        if ended.queue_id != queue_id:
            if options.fail_on_data_loss:
                raise made_again(options)
            logger.warning(
                "%(reason)s: the messages of the old queue are not read",
                {"reason": made_again_sentence(options)},
            )
            return []
        begins = {one.partition: one.begin for one in present}
        if begun.queue_id != ended.queue_id:
            begun = StreamOffset(ended.queue_id, {})
        if not options.fail_on_data_loss:  # missing messages were counted when the end was chosen
            behind = {one: max(number, begins.get(one, 0)) for one, number in begun.following.items()}
            begun = begun._replace(following=behind)
        gaps = gaps_of(present)
        lost = lost_stops(begun, ended, gaps)
        if lost and options.fail_on_data_loss:
            raise gone(options, lost)
        self._report(lost)
        ranges = planned_ranges(begun, ended, begins, gaps)
        weight = 1 if options.rows == "messages" else TABLE_WEIGHT
        size = options.messages_per_task or messages_per_task(sum(one.messages for one in ranges), weight)
        return plan_tasks(ranges, size, queue_id)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, TaskRanges)
        return read_task(self._options, self._schema, partition)
