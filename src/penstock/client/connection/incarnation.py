"""One incarnation of a queue: a queue that was deleted and created again is another one."""

from __future__ import annotations


class Incarnation:
    """The id that requests carry."""

    __slots__ = ("queue_id",)

    def __init__(self, queue_id: int) -> None:
        self.queue_id = queue_id
