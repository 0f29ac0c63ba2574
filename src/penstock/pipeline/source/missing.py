"""Sentences about messages that a log has removed before they were read: nothing is ever skipped silently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.model.partition_numbers import number_in_partition
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.source.options import ReadOptions


class Missing(NamedTuple):
    """Messages of a partition that should be read and are gone."""

    wanted: int
    """The first of them."""
    present: int
    """The first number behind them."""
    messages: int
    """How many they are: some numbers between may have been left out, and were no message's."""


def missing_messages(gaps: Mapping[int, Missing]) -> int:
    """How many messages are missing."""
    return sum(one.messages for one in gaps.values())


def gone(options: ReadOptions, gaps: Mapping[int, Missing]) -> PipelineError:
    """For a reader that must not continue."""
    return PipelineError(
        f"{lost_sentence(options, gaps)}. Read from what is there (startingOffsets=earliest), or set "
        "failOnDataLoss=false to continue and report the gap (`penstock pipeline run … --allow-data-loss`); a longer "
        "--retention keeps messages for longer"
    )


def made_again(options: ReadOptions) -> PipelineError:
    """For a reader of a deleted queue whose name another queue has."""
    return PipelineError(
        f"{made_again_sentence(options)}; the unread messages of the old queue are lost. Start again with another checkpoint "
        "(`penstock pipeline run … --rebuild`), or set failOnDataLoss=false to continue with the new queue from its beginning "
        "(`--allow-data-loss`)"
    )


def made_again_sentence(options: ReadOptions) -> str:
    """What happened to the queue that should be read."""
    return (
        f"queue {options.target.queue!r} was deleted and created again since it was last read, or the checkpoint is of "
        "another queue"
    )


def lost_sentence(options: ReadOptions, gaps: Mapping[int, Missing]) -> str:
    """How many are missing, and where."""
    places = ", ".join(
        f"partition {partition}: {number_in_partition(wanted)} to {number_in_partition(present) - 1}"
        for partition, (wanted, present, _) in sorted(gaps.items())
    )
    return (
        f"the log of {options.target.queue!r} no longer has {missing_messages(gaps):,} messages that were to be read "
        f"({places})"
    )
