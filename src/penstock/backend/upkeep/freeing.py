"""Frees unused states: large ones a little in each turn, so that no turn takes long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.queue.partition import Partition
from penstock.queue.snapshot.taking_apart import is_large, taken_apart

STEPS_PER_TURN = 4
"""A step frees some hundred rows, which takes a quarter of a millisecond."""


class Freeing:
    """The states that a node must still free, oldest first."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Partition, Sequence[object]]] = []
        self._steps: Iterator[None] | None = None

    def __bool__(self) -> bool:
        """Whether `step` can continue at once."""
        return self._steps is not None

    def add(self, partition: Partition, given_up: Sequence[object] | None = None) -> None:
        """Adds an unused partition, or unused tables of one."""
        roots = [partition] if given_up is None else given_up
        if is_large(roots):
            self._waiting.append((partition, roots))

    def step(self) -> None:
        """Continues for as long as a turn may take. A state that is being captured waits."""
        for _ in range(STEPS_PER_TURN):
            if self._steps is None:
                if not self._waiting:
                    return
                ready = next((row for row in self._waiting if row[0].table.capture is None), None)
                if ready is None:
                    return
                self._waiting.remove(ready)
                self._steps = taken_apart(ready[1])
            if next(self._steps, self) is self:
                self._steps = None
