"""What a log has let go of before it was read, in words: nothing is ever skipped silently."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.partition_numbers import number_in_partition
from penstock.pipeline.source.options import ReadOptions
from penstock.pipeline.trouble import PipelineError

Gap = tuple[int, int]
"""The first message that is missing, and the first that is there again."""


def missing_messages(gaps: Mapping[int, Gap]) -> int:
    """How many messages are missing."""
    return sum(max(0, present - wanted) for wanted, present in gaps.values())


def gone(options: ReadOptions, gaps: Mapping[int, Gap]) -> PipelineError:
    """For a reader that must not go on."""
    return PipelineError(
        f"{lost_sentence(options, gaps)}. Read from what is there (startingOffsets=earliest), or set "
        "failOnDataLoss=false to go on and have the gap reported (`penstock pipeline run … --allow-data-loss`); a longer "
        "--retention keeps messages for longer"
    )


def made_again(options: ReadOptions) -> PipelineError:
    """For a reader of a queue that is no more, where another one has its name."""
    return PipelineError(
        f"{made_again_sentence(options)}; what was not read of the old one is gone. Begin anew with another checkpoint "
        "(`penstock pipeline run … --rebuild`), or set failOnDataLoss=false to go on with the new queue from its beginning "
        "(`--allow-data-loss`)"
    )


def made_again_sentence(options: ReadOptions) -> str:
    """What became of the queue that was to be read."""
    return (
        f"queue {options.target.queue!r} was deleted and made again since it was last read, or the checkpoint is of "
        "another queue"
    )


def lost_sentence(options: ReadOptions, gaps: Mapping[int, Gap]) -> str:
    """How many are missing, and where."""
    places = ", ".join(
        f"partition {partition}: {number_in_partition(wanted)} to {number_in_partition(present) - 1}"
        for partition, (wanted, present) in sorted(gaps.items())
    )
    return (
        f"the log of {options.target.queue!r} no longer has {missing_messages(gaps):,} messages that were to be read "
        f"({places})"
    )
