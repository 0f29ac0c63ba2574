"""I1: every acknowledged send is in exactly one state, and at the end of the run it was received or its end is explained.

The run ends with a drain: all remaining messages of all queues are received and deleted. So an acknowledged message that
was never deleted, and that neither time, a limit nor an operator can have ended, was lost. If time, limits or operators
may have ended some, the node's own totals must account for as many.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.simulation.checkers import exact_endings
from penstock.simulation.checkers.endings import dies_properly, ending_of, reachable
from penstock.simulation.history import History
from penstock.simulation.message_history import QueueLife
from penstock.simulation.violation import Violation

NAME = "I1"


def check(history: History) -> Iterator[Violation]:
    """Lost messages, and books that do not balance."""
    yield from exact_endings.check(history)
    excused: dict[int, int] = {}
    stored: dict[int, int] = {}
    for message in history.messages.values():
        if message.fate != "stored" or not message.life.settings[0].has_queue:
            continue
        queue_id = message.life.queue_id
        stored[queue_id] = stored.get(queue_id, 0) + 1
        ending = ending_of(message, history)
        if ending is None and not dies_properly(message, history):
            yield Violation(
                NAME,
                message.answered_ms,
                f"message {message.number} was acknowledged as {message.sequence} of queue {message.life.name!r} "
                f"(id {queue_id}) and is lost; it was delivered {len(message.deliveries)} times",
            )
        if ending in ("expired", "purged", "dropped"):
            excused[queue_id] = excused.get(queue_id, 0) + 1
    for life in history.lives.values():
        count = stored.get(life.queue_id, 0)
        for sentence in _books(life, count, excused.get(life.queue_id, 0), history):
            yield Violation(NAME, history.ended_ms, f"queue {life.name!r} (id {life.queue_id}): {sentence}")


def _books(life: QueueLife, stored: int, excused: int, history: History) -> Iterator[str]:
    """The node's totals must be consistent, and cover the missing messages."""
    numbers = life.statistics
    if numbers is None or life.damaged_ms is not None or not life.settings[0].has_queue:
        return
    living = numbers.ready + numbers.leased + numbers.delayed + numbers.moving + numbers.held
    ended = (
        numbers.deleted_total
        + numbers.expired_total
        + numbers.dead_lettered_total
        + numbers.dropped_total
        + numbers.purged_total
    )
    late = numbers.late_total if life.sorted else 0  # they left too, or are on their way
    if numbers.sent_total < living + ended or (
        numbers.sent_total > living + ended + late and not life.redriven
    ):
        yield f"{numbers.sent_total} came in, {living} are there and {ended} ended: {numbers}"
    if numbers.sent_total < stored:
        yield f"{stored} messages were acknowledged, the queue counts {numbers.sent_total}"
    yield from _purges(life, numbers.purged_total)
    lives = reachable(life, history)
    if all(other.statistics is not None and other.damaged_ms is None for other in lives):
        accounted = sum(
            other.statistics.expired_total + other.statistics.purged_total + other.statistics.dropped_total
            for other in lives
            if other.statistics is not None
        )
        if excused > accounted:
            yield f"{excused} messages are missing, the queues account for {accounted}"


def _purges(life: QueueLife, purged_total: int) -> Iterator[str]:
    """Each purge took what its answer says, once, and nothing else did."""
    if life.settings[0].has_log:
        return  # messages waiting there may be in the log too, and are counted once
    told = sum(purge.messages for purge in life.purges if purge.messages is not None)
    if purged_total < told or (purged_total > told and all(p.messages is not None for p in life.purges)):
        yield f"purges said that they took {told} messages, the queue counts {purged_total}"
