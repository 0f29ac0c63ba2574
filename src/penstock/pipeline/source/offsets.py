"""Where reading begins and ends in each partition, from the options and the log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from penstock import BlockingLog, LogPartition
from penstock.model.number_gaps import NumberGaps
from penstock.model.partition_numbers import number_in_partition
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.source.connection import Connection
from penstock.pipeline.source.missing import Missing, gone
from penstock.pipeline.source.options import Offsets, ReadOptions


def present_partitions(
    connection: Connection, source: BlockingLog, options: ReadOptions
) -> list[LogPartition]:
    """The partitions that are read, as they are now."""
    with connection.explained():
        found = source.partitions()
    wanted = options.partitions
    if wanted is None:
        return found
    _check_named(wanted, found, "partitions", options)
    return [one for one in found if one.partition in wanted]


def starting_offsets(
    connection: Connection, source: BlockingLog, partitions: list[LogPartition], options: ReadOptions
) -> dict[int, int]:
    """The first message to read of each partition."""
    begins = {one.partition: one.begin for one in partitions}
    starting = options.starting
    if starting == "earliest":
        return begins
    if starting == "committed":
        with connection.explained():
            found = source.group_offsets(options.group or "")
    else:
        found = _named(connection, source, partitions, starting, "startingOffsets", options)
    return {one: found.get(one, begin) for one, begin in begins.items()}


def ending_offsets(
    connection: Connection, source: BlockingLog, partitions: list[LogPartition], options: ReadOptions
) -> dict[int, int]:
    """The message before which reading of each partition ends."""
    ends = {one.partition: one.end for one in partitions}
    found = _named(connection, source, partitions, options.ending, "endingOffsets", options)
    for partition, end in ends.items():
        stop = found.get(partition, end)
        if stop > end:
            raise PipelineError(
                f"endingOffsets names message {number_in_partition(stop)} of partition {partition}, and the log of "
                f"{options.target.queue!r} ends before {number_in_partition(end)}"
            )
    return {one: found.get(one, end) for one, end in ends.items()}


def checked_starts(
    partitions: list[LogPartition], starts: dict[int, int], options: ReadOptions
) -> tuple[dict[int, int], dict[int, Missing]]:
    """Starts that the log has, and what is missing before them; raises where that must not be.

    A start among numbers that no message has is none that is missing: it is read on behind them. A log may also end earlier than it
    did, where the nodes that had its newest messages are lost, and ran a version that used their numbers again.
    """
    gaps: dict[int, Missing] = {}
    checked = dict(starts)
    for one in partitions:
        wanted = starts.get(one.partition, one.begin)
        if wanted < one.begin:
            messages = NumberGaps(one.gaps).messages(wanted, one.begin)
            if messages:
                gaps[one.partition] = Missing(wanted, one.begin, messages)
            checked[one.partition] = one.begin
        elif wanted > one.end and not options.fail_on_data_loss:
            checked[one.partition] = one.end
        elif wanted > one.end:
            raise PipelineError(
                f"there is no message {number_in_partition(wanted)} in partition {one.partition} of "
                f"{options.target.queue!r} yet: the next one is {number_in_partition(one.end)}. If the queue was "
                "deleted and created again, start again with startingOffsets=earliest and another checkpoint"
            )
    if gaps and options.fail_on_data_loss:
        raise gone(options, gaps)
    return checked, gaps


def _named(
    connection: Connection,
    source: BlockingLog,
    partitions: list[LogPartition],
    place: Offsets | datetime,
    option: str,
    options: ReadOptions,
) -> dict[int, int]:
    if isinstance(place, datetime):
        with connection.explained():
            return source.find_everywhere(place)
    if isinstance(place, str):
        return {one.partition: one.end for one in partitions}
    _check_named(place, partitions, option, options)
    return place


def _check_named(
    named: Iterable[int], partitions: list[LogPartition], option: str, options: ReadOptions
) -> None:
    present = [one.partition for one in partitions]
    for partition in named:
        if partition not in present:
            raise PipelineError(
                f"{option} names partition {partition}, and of {options.target.queue!r} there are to be read "
                f"{', '.join(map(str, present))}"
            )
