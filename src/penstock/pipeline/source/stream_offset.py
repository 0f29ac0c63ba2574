"""The progress of a streaming query, as Spark keeps it in the checkpoint: JSON that people can read.

    {"queue": 7, "next": {"0": 1201, "1": 281474976711356}, "missing": 0}

`queue` is the incarnation: numbers of a queue that was created again mean other messages. `next` is, for each partition,
the number of the next message. `missing` counts the messages that the log removed before they were read, since the query
began.

A partition that appears under a running query is read from its beginning; the offset of a missing one stays, and is used
if it comes back. So nothing is lost or read twice. Pure decisions.

A failover of an `async` queue may lose messages for which a micro-batch was planned; their numbers are skipped since, and
the query continues after them (`lost_stops`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock.model.number_gaps import NO_GAPS
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.source.missing import Missing
from penstock.pipeline.source.ranges import NOWHERE, Gaps, LogRange, ranges_between


class StreamOffset(NamedTuple):
    """Everything before `following` was read, or is missing."""

    queue_id: int
    following: dict[int, int]
    missing: int = 0

    def dump(self) -> dict[str, Any]:
        """As Spark takes it."""
        following = {str(partition): number for partition, number in sorted(self.following.items())}
        return {"queue": self.queue_id, "next": following, "missing": self.missing}


def load_offset(given: Mapping[str, Any]) -> StreamOffset:
    """From the checkpoint."""
    try:
        following = {int(partition): int(number) for partition, number in given["next"].items()}
        return StreamOffset(int(given["queue"]), following, int(given.get("missing", 0)))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise PipelineError(
            f"the checkpoint has an offset of another source: {dict(given)!r}. Give the query a separate "
            "checkpoint"
        ) from None


def admitted(
    starts: Mapping[int, int], ends: Mapping[int, int], max_messages: int | None, gaps: Gaps = NOWHERE
) -> dict[int, int]:
    """How far a micro-batch goes in each partition: to its end, or to its share of so many messages.

    Shares are by what waits; the first partitions get what is left over, so that small limits get on as well.
    """
    waiting: dict[int, int] = {}
    for one in ranges_between(starts, ends, gaps):
        waiting[one.partition] = waiting.get(one.partition, 0) + one.messages
    total = sum(waiting.values())
    stops = dict(starts) | {partition: starts.get(partition, end) for partition, end in ends.items()}
    if max_messages is None or total <= max_messages:
        return stops | {partition: max(end, stops[partition]) for partition, end in ends.items()}
    shares = {partition: count * max_messages // total for partition, count in waiting.items()}
    left = max_messages - sum(shares.values())
    # Partitions with the most remaining messages come first, so that a partition with few is not skipped forever.
    by_rest = sorted(waiting, key=lambda one: (-(waiting[one] * max_messages % total), one))
    for partition in by_rest[:left]:
        shares[partition] += 1
    return stops | {
        partition: gaps.get(partition, NO_GAPS).forth(stops[partition], ends[partition], share)
        for partition, share in shares.items()
    }


def lost_stops(start: StreamOffset, end: StreamOffset, gaps: Gaps) -> dict[int, Missing]:
    """What a micro-batch lost after it was planned: it ends at the former end of the log, among numbers that are skipped now."""
    found: dict[int, Missing] = {}
    for partition, stop in end.following.items():
        left_out = gaps.get(partition, NO_GAPS)
        first = max(left_out.around(stop), start.following.get(partition, 0))
        if first < stop:
            found[partition] = Missing(first, stop, stop - first)
    return found


def planned_ranges(
    start: StreamOffset, end: StreamOffset, begins: Mapping[int, int], gaps: Gaps = NOWHERE
) -> list[LogRange]:
    """The ranges of a micro-batch. A partition that is new in it is read from the beginning of its log."""
    starts = {
        partition: start.following.get(partition, begins.get(partition, stop))
        for partition, stop in end.following.items()
    }
    return ranges_between(starts, end.following, gaps)
