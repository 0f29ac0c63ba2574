"""Ranges of a log and their distribution to tasks. Pure decisions.

The plan follows from the ranges alone, never from the machine that makes it: a query that starts again from its
checkpoint, elsewhere, has the same tasks with the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from penstock import LogPartition
from penstock.model.number_gaps import NO_GAPS, NumberGaps
from penstock.model.partition_numbers import partition_of

Gaps = Mapping[int, NumberGaps]
"""By partition, of those that have any."""
NOWHERE: Gaps = {}

TASK_MESSAGES = 25_000
"""A task is worth its cost from about so many messages on; fewer are read by one task, from whichever partitions."""
SPREAD_TASKS = 8
"""So many tasks keep the cores of a small machine busy to the end; after that tasks grow, not their number."""
LARGE_TASK_MESSAGES = 500_000


class LogRange(NamedTuple):
    """Messages [start, stop) of the partition in these numbers; every number is used."""

    start: int
    stop: int

    @property
    def partition(self) -> int:
        """The ordinal of the partition."""
        return partition_of(self.start)

    @property
    def messages(self) -> int:
        """How many they are."""
        return max(0, self.stop - self.start)


class TaskRanges(InputPartition):
    """The ranges of one task."""

    def __init__(self, ranges: tuple[LogRange, ...], turn: int, queue_id: int) -> None:
        super().__init__(ranges)
        self.ranges = ranges
        self.queue_id = queue_id
        """The incarnation of the queue that the numbers are of: those of another are of other messages."""
        self.turn = turn
        """The number of the task, by which it chooses its endpoint."""


def gaps_of(partitions: Iterable[LogPartition]) -> dict[int, NumberGaps]:
    """The numbers that no message has, by partition."""
    return {one.partition: NumberGaps(one.gaps) for one in partitions if one.gaps}


def ranges_between(
    starts: Mapping[int, int], stops: Mapping[int, int], gaps: Gaps = NOWHERE
) -> list[LogRange]:
    """The ranges between two offsets, by partition; none for a partition without a stop, and none for numbers without a
    message.

    So a gap of millions of numbers makes no task.
    """
    return [
        LogRange(first, first + count)
        for partition, stop in sorted(stops.items())
        for first, count in gaps.get(partition, NO_GAPS).runs(starts.get(partition, stop), stop)
    ]


def messages_per_task(messages: int, weight: int = 1) -> int:
    """How many messages a task should read; `weight`: how many rows a message counts for."""
    rows = messages * weight
    tasks = max(1, -(-rows // TASK_MESSAGES))
    if tasks > SPREAD_TASKS:
        tasks = max(SPREAD_TASKS, -(-rows // LARGE_TASK_MESSAGES))
    return max(1, -(-messages // tasks))


def plan_tasks(ranges: Iterable[LogRange], task_messages: int, queue_id: int) -> list[TaskRanges]:
    """Tasks of about so many messages: long ranges are cut, short ones are put together."""
    tasks: list[list[LogRange]] = []
    room = 0
    for one in ranges:
        start = one.start
        while start < one.stop:
            if room <= 0:
                tasks.append([])
                room = task_messages
            stop = min(one.stop, start + room)
            tasks[-1].append(LogRange(start, stop))
            room -= stop - start
            start = stop
    return [TaskRanges(tuple(task), turn, queue_id) for turn, task in enumerate(tasks)]
