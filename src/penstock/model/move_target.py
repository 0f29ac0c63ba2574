"""Where messages on their way are to go: a name, and which incarnation of the queue that has it.

A redrive is meant for the queue that is there when it is asked for. Made again under the same name it is another queue, which may
have other readers: messages do not go there, however often the move is tried. Dead letters and late messages go where the
settings say, by name: to whichever queue has it when they arrive. Where such a queue was deleted and made again before its answer
came, the deleted one is asked first what had arrived.
"""

from __future__ import annotations

from typing import NamedTuple

_MARK = "#"
"""No queue's name has it."""


class MoveTarget(NamedTuple):
    """What the target of a move means."""

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
    """What a record names."""
    name, _, queue_id = text.partition(_MARK)
    return MoveTarget(name, int(queue_id) if queue_id else None)
