"""How a message may have ended, as far as clients can know: the excuses for a missing acknowledged message."""

from __future__ import annotations

from typing import Literal

from penstock.simulation.history import History
from penstock.simulation.message_history import QueueLife, SentMessage, Span

Ending = Literal["deleted", "expired", "purged", "dropped", "queue deleted", "queue damaged"]


def ending_of(message: SentMessage, history: History) -> Ending | None:
    """Why a stored message may be gone at the end of the run; None: it should have come out."""
    if message.deleted_late:
        return "deleted"
    for delivery in message.deliveries:
        if any(settlement.may_have_deleted() for settlement in delivery.settlements):
            return "deleted"
    lives = reachable(message.life, history)
    if any(life.damaged_ms is not None for life in lives):
        return "queue damaged"
    if any(life.deletion_asked_ms is not None for life in lives):
        # Not messages that should leave the queue: these are lost, whatever happened to others.
        exact = history.whereabouts
        return "queue deleted" if exact is None or exact.lost(message) is None else None
    if any(_may_have_purged(purge, message) for life in lives for purge in life.purges):
        return "purged"
    if _may_have_expired(message, history):
        return "expired"
    if any(life.bounded and any(s.overflow == "drop-oldest" for s in life.settings) for life in lives):
        return "dropped"
    return None


def _may_have_purged(purge: Span, message: SentMessage) -> bool:
    """A purge takes what is there when it is carried out: at any time until its answer, if it had one."""
    return purge.answered_ms is None or purge.answered_ms >= message.asked_ms


def _may_have_expired(message: SentMessage, history: History) -> bool:
    life = message.life
    ttl_ms = life.least_ms("retention_ms")
    if not life.dead_letter_queues():  # with one, what outlives its time to live is moved there
        ttl_ms = message.least_ttl_ms()
    return message.sent_ms + ttl_ms <= history.ended_ms


def reachable(life: QueueLife, history: History) -> list[QueueLife]:
    """The queues that a message sent to this one may have reached."""
    names = {life.name}
    for name in [*life.dead_letter_queues(), *([life.late_queue] if life.late_queue is not None else [])]:
        names.add(name)
        if any(dead.redriven for dead in history.lives_named(name)):
            names.add("plain")  # operators redrive to the source, or to this one
    found = [other for other in history.lives.values() if other.name in names and other.name != life.name]
    siblings = history.lives_named(life.name) if len(names) > 1 else [life]
    return [*siblings, *found]


def dies_properly(message: SentMessage, history: History) -> bool:
    """Whether the message was due to be moved to a dead-letter queue."""
    life = message.life
    if not life.dead_letter_queues():
        return False
    receives = max((d.receive_count for d in message.deliveries if d.life is life), default=0)
    most = min((s.max_receives for s in life.settings if s.max_receives is not None), default=None)
    overflows = life.bounded and any(s.overflow == "dead-letter" for s in life.settings)
    expires = message.sent_ms + message.least_ttl_ms() <= history.ended_ms
    return (
        (most is not None and receives >= most) or overflows or expires or len(message.deliveries) > receives
    )
