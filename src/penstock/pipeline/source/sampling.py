"""Estimates by samples how many messages have a number of bytes, because the log keeps no sums."""

from __future__ import annotations

from collections.abc import Mapping

from penstock import BlockingLog
from penstock.pipeline.source.ranges import NOWHERE, Gaps, LogRange, ranges_between

SAMPLES = 4
SAMPLE_MESSAGES = 32
SAMPLE_BYTES = 64 * 1024


def messages_within(
    source: BlockingLog,
    starts: Mapping[int, int],
    stops: Mapping[int, int],
    max_bytes: int,
    gaps: Gaps = NOWHERE,
) -> int:
    """About how many of the messages have so many bytes together; one at least.

    Samples are taken over the whole range; if fewer fit than it has, again over those that should fit, because sizes
    change along a log.
    """
    ranges = ranges_between(starts, stops, gaps)
    waiting = sum(one.messages for one in ranges)
    most = waiting
    for _ in range(2):
        if not ranges:
            break
        size = sum(_sample(source, one) * one.messages for one in ranges) / max(
            1, sum(one.messages for one in ranges)
        )
        fitting = max(1, int(max_bytes / size))
        if fitting >= sum(one.messages for one in ranges):
            break
        most = min(most, fitting)
        ranges = [
            LogRange(one.start, one.start + max(1, one.messages * fitting // max(1, waiting)))
            for one in ranges
        ]
    return max(1, most)


def _sample(source: BlockingLog, where: LogRange) -> float:
    """The mean size of a message of the range, from a few places in it."""
    step = max(1, where.messages // SAMPLES)
    messages = size = 0
    for place in range(where.start, where.stop, step)[:SAMPLES]:
        found = source.read(place, max_messages=SAMPLE_MESSAGES, max_bytes=SAMPLE_BYTES)
        messages += len(found)
        size += found.size_bytes
    return max(1.0, size / max(1, messages))
