"""I13: overload throttles: data that waits for the disk or at a consumer is bounded; a full disk refuses sends, loses
nothing, recovers.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model.errors import ErrorCode
from penstock.model.limits import KIBIBYTE
from penstock.simulation.history import History
from penstock.simulation.violation import Violation

NAME = "I13"

_TURN_BYTES = 64 * KIBIBYTE
"""What may be appended in the turn in which the limit is reached: requests in transit and upkeep."""
_PREPARED_MS = 2_000
"""A disk that gets full may be preparing a file since so long."""
_RECOVERED_MS = 4_000
"""Some time after space is back sends must be taken again."""
_LONGEST_STEP_MS = 5_000
"""No fault makes the clock jump further."""


def check(history: History) -> Iterator[Violation]:
    """Bounds that were passed and refusals that did not end."""
    bound = history.max_unflushed_bytes + _TURN_BYTES
    if history.most_unflushed_bytes > bound:
        yield Violation(
            NAME,
            history.ended_ms,
            f"{history.most_unflushed_bytes} bytes waited for the disk, the bound is {history.max_unflushed_bytes}",
        )
    for at_ms, sentence in history.beyond_credit:
        yield Violation(NAME, at_ms, sentence)
    for asked_ms, refused_ms in history.refused_as_full:
        if not _was_full(asked_ms, refused_ms, history) and not any(
            span.asked_ms <= refused_ms
            and (span.answered_ms is None or asked_ms <= _recovered_ms(span.answered_ms, history))
            for span in history.full_disks
        ):
            yield Violation(NAME, refused_ms, "a send was refused because the disk is full, and it is not")
    for asked_ms, refused_ms, code in history.refusals_of_settlements:
        if code == ErrorCode.DISK_FULL and not (
            _was_full(asked_ms, refused_ms, history) or _reserve_is_gone(refused_ms, history)
        ):
            yield Violation(NAME, asked_ms, "a delete or release was refused because the disk is full")


def _was_full(from_ms: int, until_ms: int, history: History) -> bool:
    """Whether an append was refused on purpose meanwhile."""
    return any(from_ms <= at_ms <= until_ms for at_ms in history.full_journals)


def _recovered_ms(space_ms: int, history: History) -> int:
    """When sends must be taken again after space is back; a clock that jumps on the way makes the time look longer."""
    recovered_ms = space_ms + _RECOVERED_MS
    for step in sorted(history.clock_steps):
        if space_ms <= step.before_ms <= recovered_ms:
            recovered_ms = step.before_ms + _LONGEST_STEP_MS + _RECOVERED_MS
    return recovered_ms


def _reserve_is_gone(at_ms: int, history: History) -> bool:
    """Whether deletes may have used up their reserve: the journal is in its last file, or there is none after a restart."""
    begun_ms = [*history.reserves_begun, *(downtime.asked_ms for downtime in history.downtimes)]
    return any(
        span.asked_ms <= at_ms
        and any(span.asked_ms - _PREPARED_MS <= since_ms <= at_ms for since_ms in begun_ms)
        for span in history.full_disks
    )
