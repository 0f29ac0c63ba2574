"""I10: damage is detected and contained: wrong bytes are never delivered, and only the owner is fenced."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.simulation.checkers import no_ghosts
from penstock.simulation.history import History
from penstock.simulation.violation import Violation

NAME = "I10"


def check(history: History) -> Iterator[Violation]:
    """Wrong bytes, and queues that were fenced for nothing."""
    if history.flips:
        for delivery in history.deliveries:
            if delivery.problem is not None:
                yield Violation(
                    NAME,
                    delivery.arrived_ms,
                    f"{delivery.sequence} of queue {delivery.life.name!r} was delivered with {delivery.problem}",
                )
        for sighting in history.sightings:
            if sighting.problem is not None:
                where = f"{sighting.sequence} of queue {sighting.life.name!r}"
                yield Violation(NAME, sighting.seen_ms, f"a peek saw {where} with {sighting.problem}")
        yield from no_ghosts.exchanged(history, NAME)
    for life in history.lives.values():
        damaged_ms = life.damaged_ms
        if damaged_ms is None:
            if life.queue_id not in history.fenced:
                continue
            damaged_ms = history.ended_ms
        flips = [flip for flip in history.flips if flip.at_ms <= damaged_ms]
        if not any(flip.owner is None or flip.owner == life.queue_id for flip in flips):
            yield Violation(
                NAME,
                damaged_ms,
                f"queue {life.name!r} (id {life.queue_id}) is fenced although nothing of it was damaged",
            )
