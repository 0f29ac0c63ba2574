"""I1, by the records: each acknowledged message ended by a request or by its queue's settings.

Client knowledge excuses much: that a queue was deleted, that a purge was never answered, that a queue may have been full.
The records of all partitions say what happened to each message, so each excuse only counts for its own messages: those
that a record of a purge removed while that purge was in progress, those in the queue when it was deleted, those that a
client's delete removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.simulation.checkers.endings import reachable
from penstock.simulation.history import History
from penstock.simulation.message_history import QueueLife, SentMessage
from penstock.simulation.violation import Violation
from penstock.simulation.whereabouts import Fate

NAME = "I1"


def check(history: History) -> Iterator[Violation]:
    """Messages that ended though nothing asked for it."""
    if history.whereabouts is None:
        return
    for message in history.messages.values():
        if message.fate != "stored" or not message.life.settings[0].has_queue:
            continue
        if any(life.damaged_ms is not None for life in reachable(message.life, history)):
            continue  # its contents can be neither read nor written
        fates = history.whereabouts.fates(message)
        if not fates:
            continue
        sentences = [_wrong(message, fate, history) for fate in fates]
        if all(sentence is not None for sentence in sentences):
            yield Violation(
                NAME,
                message.answered_ms,
                f"message {message.number} was acknowledged as {message.sequence} of queue {message.life.name!r} (id "
                f"{message.life.queue_id}) and {sentences[0]}",
            )


def _wrong(message: SentMessage, fate: Fate, history: History) -> str | None:
    """The error in the way a message ended; None: there is none."""
    life = history.lives.get(fate.queue_id)
    where = f"queue {life.name!r} (id {fate.queue_id})" if life is not None else f"queue {fate.queue_id}"
    match fate.kind:
        case "deleted":
            settlements = [s for delivery in message.deliveries for s in delivery.settlements]
            if not message.deleted_late and not any(s.may_have_deleted() for s in settlements):
                return f"was deleted from {where}, and nobody who received it asked for that"
        case "purged":
            if life is not None and not _was_purged(life, fate.at_ms, history):
                return f"was purged from {where} at {fate.at_ms}, and no purge was under way"
        case "expired":
            least_ms = message.sent_ms + min(message.least_ttl_ms(), message.life.least_ms("retention_ms"))
            if fate.is_first_place and fate.at_ms + history.skew_ms < least_ms:
                return f"expired at {fate.at_ms}, before {least_ms}"
        case "dropped":
            if life is not None and not any(s.overflow == "drop-oldest" for s in life.settings):
                return f"was dropped from {where}, which drops nothing"
        case "went with its queue":
            if life is not None and life.deletion_asked_ms is None:
                return f"was in {where}, which is gone and was never deleted"
        case "absent":
            return f"no record of {where} ever had it"
        case "lost" if fate.queue_id not in history.unclean:
            return f"a failover of {where} lost it"
        case "living" if fate.queue_id not in history.fenced:
            return f"is still in {where}, though everything was received and deleted in the end"
        case _:
            pass  # I6 checks messages that left and did not arrive
    return None


def _was_purged(life: QueueLife, at_ms: int, history: History) -> bool:
    return any(
        purge.asked_ms - history.skew_ms <= at_ms
        and (purge.answered_ms is None or at_ms <= purge.answered_ms + history.skew_ms)
        for purge in life.purges
    )
