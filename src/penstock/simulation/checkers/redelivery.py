"""I5: messages that were not acknowledged come back within their visibility timeout and a little; receive counts only grow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from penstock.simulation.history import History
from penstock.simulation.message_history import DeliveredMessage, EmptyPoll, QueueLife, SentMessage
from penstock.simulation.violation import Violation

NAME = "I5"

_SLACK_MS = 60
"""The δ of the invariant: the maximum of the network, a turn of the node and a timer slot together."""


def check(history: History) -> Iterator[Violation]:
    """Counts that fell, messages that never came back, receivers that waited beside a message."""
    for life, sequence, deliveries in history.by_place():
        where = f"{sequence} of queue {life.name!r} (id {life.queue_id})"
        for earlier, later in pairwise(deliveries):
            if later.receive_count <= earlier.receive_count:
                yield Violation(
                    NAME,
                    later.arrived_ms,
                    f"{where} was delivered with receive count {earlier.receive_count} and then with "
                    f"{later.receive_count}",
                )
            if later.first_received_ms != earlier.first_received_ms:
                yield Violation(
                    NAME,
                    later.arrived_ms,
                    f"{where} was first received at {earlier.first_received_ms}, now it says "
                    f"{later.first_received_ms}",
                )
    for sentence in history.stuck:
        yield Violation(NAME, history.ended_ms, sentence)
    yield from _waited_in_vain(history)


def _waited_in_vain(history: History) -> Iterator[Violation]:
    if history.cold_reads:
        return  # a lease may end while its messages are read, and its receiver continues to wait
    if history.is_crowded:
        return  # it may have waited at other partitions only
    if history.skew_ms:
        return  # the end of a lease is unknown
    by_life: dict[int, list[SentMessage]] = {}
    for message in history.messages.values():
        if message.fate == "stored" and not message.life.strict:
            by_life.setdefault(message.life.queue_id, []).append(message)
    for poll in history.empty_polls:
        if poll.life.strict or not history.was_well(poll.asked_ms - _SLACK_MS, poll.answered_ms):
            continue
        for message in by_life.get(poll.life.queue_id, ()):
            if _was_ready(message, poll.life, poll):
                yield Violation(
                    NAME,
                    poll.answered_ms,
                    f"a receiver waited {poll.wait_ms} ms on queue {poll.life.name!r} for nothing while message "
                    f"{message.number} (sequence {message.sequence}) was ready",
                )
                break


def _was_ready(message: SentMessage, life: QueueLife, poll: EmptyPoll) -> bool:
    """Whether the message was certainly available while the receiver waited, and not received.

    Only a later delivery whose receive count follows the last one proves that there was no unknown lease in between.
    """
    until_ms = poll.asked_ms + poll.wait_ms - _SLACK_MS
    ready_ms = max(poll.asked_ms, message.answered_ms, message.sent_ms + message.most_delay_ms())
    if ready_ms + _SLACK_MS > until_ms:
        return False
    here = sorted((d for d in message.deliveries if d.life is life), key=lambda d: d.lease)
    before = [d for d in here if d.granted_at_least_ms <= until_ms]
    following = here[len(before)] if len(before) < len(here) else None
    if following is None or following.receive_count != len(before) + 1 or following.source is not None:
        return False
    return all(_certainly_over(delivery, until_ms - _SLACK_MS) for delivery in before)


def _certainly_over(delivery: DeliveredMessage, at_ms: int) -> bool:
    """Whether the lease had certainly ended by then, and the message was ready again."""
    latest_ms = delivery.until_ms
    for settlement in delivery.settlements:
        if settlement.answered_ms is None or (settlement.again and settlement.kind == "extend"):
            return False  # also if the first attempt may still arrive, and extend it again
        latest_ms = max(latest_ms, settlement.answered_ms + settlement.amount_ms)
    return latest_ms + _SLACK_MS <= at_ms
