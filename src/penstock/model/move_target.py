"""The target of moving messages: a name, and optionally the incarnation of the queue with that name.

A redrive is meant for the queue that exists when it is requested. A new queue with the same name may have other consumers:
messages never move there, however often the move is repeated. Dead letters and late messages go to the name in the
settings: to the queue that has it when they arrive. If such a queue was deleted and created again before its answer came,
the deleted one is first asked what had arrived.
"""

from __future__ import annotations

from typing import NamedTuple

_MARK = "#"
"""No queue's name has it."""


class MoveTarget(NamedTuple):
    """The target of a move."""

    name: str
    queue_id: int | None
    """None: any queue of that name."""

    def is_meant(self, queue_id: int) -> bool:
        """Whether a queue of the name is the one."""
        return self.queue_id is None or self.queue_id == queue_id


def aimed_at(name: str, queue_id: int) -> str:
    """How a record names one incarnation."""
    return f"{name}{_MARK}{queue_id}"


def target_of(text: str) -> MoveTarget:
    """The target in a record."""
    name, _, queue_id = text.partition(_MARK)
    return MoveTarget(name, int(queue_id) if queue_id else None)
