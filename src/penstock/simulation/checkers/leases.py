"""I4: two live leases on one message never exist at once, also through crashes; receipts of ended leases do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from penstock.simulation.history import History
from penstock.simulation.message_history import DeliveredMessage, Settlement
from penstock.simulation.violation import Violation

NAME = "I4"

_OVER = -1


def check(history: History) -> Iterator[Violation]:
    """Overlapping leases, stale receipts that worked, forged ones that were taken."""
    for life, sequence, deliveries in history.by_place():
        where = f"{sequence} of queue {life.name!r} (id {life.queue_id})"
        for earlier, later in pairwise(deliveries):
            if earlier.lease == later.lease:
                yield Violation(
                    NAME, later.arrived_ms, f"{where} was delivered twice under lease {later.lease}"
                )
                continue
            held_ms = _held_at_least_until(earlier) - history.skew_ms
            if later.granted_at_most_ms < held_ms:
                yield Violation(
                    NAME,
                    later.arrived_ms,
                    f"{where} was leased again (lease {later.lease}) {held_ms - later.granted_at_most_ms} ms before "
                    f"lease {earlier.lease} was over",
                )
            for settlement in earlier.settlements:
                if settlement.result == "done" and settlement.asked_ms > later.arrived_ms:
                    yield Violation(
                        NAME,
                        settlement.asked_ms,
                        f"{settlement.kind} of {where} worked with the receipt of lease {earlier.lease} although "
                        f"lease {later.lease} had followed it",
                    )
    for at_ms, sentence in [*history.forgeries_accepted, *history.broken_attempts]:
        yield Violation(NAME, at_ms, sentence)


def _held_at_least_until(delivery: DeliveredMessage) -> int:
    """The lease cannot have ended before this, as far as its holder can know."""
    until_ms = delivery.until_ms
    previous: Settlement | None = None
    copies = False
    """Whether the first attempt of an extension may still be on its way, and arrive after others."""
    for settlement in sorted(delivery.settlements, key=lambda settlement: settlement.asked_ms):
        overlaps = copies or (
            previous is not None
            and (previous.answered_ms is None or previous.answered_ms >= settlement.asked_ms)
        )
        previous = settlement
        copies = copies or settlement.again
        match settlement.kind, settlement.result:
            case _, "stale" | "gone":
                return _OVER
            case "release", "refused":
                pass
            case "release", _:
                until_ms = min(until_ms, settlement.asked_ms)
            case "extend", "done" if not overlaps:
                until_ms = settlement.asked_ms + settlement.amount_ms
            case "extend", "done" | "done-or-gone" | "lost" | "pending":
                until_ms = min(until_ms, settlement.asked_ms + settlement.amount_ms)
            case _:
                pass
    return until_ms
