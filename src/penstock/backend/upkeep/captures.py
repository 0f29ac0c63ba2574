"""States that are being captured, for snapshots and for replicas: one at a time, a few pages in a turn.

So a turn of the node takes no longer however large the states are, and however many of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from penstock.model import limits
from penstock.queue.partition import Partition
from penstock.queue.snapshot.capture import Capture

_BEGINNING = 2
"""Beginning a capture counts as so many pages."""


class Wanted(NamedTuple):
    """A state that somebody wants."""

    partition: Callable[[], Partition | None]
    """Asked when its turn has come; None: there is nothing to capture."""
    begun: Callable[[Capture], None]
    """Told that the state is the one of this moment."""
    done: Callable[[Capture | None], None]
    """Given the capture, or told that there was nothing."""
    is_wanted: Callable[[], bool]
    """Asked in every turn: what nobody wants any more is given up."""


class Captures:
    """The captures of a node, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._waiting: deque[Wanted] = deque()
        self._capture: Capture | None = None
        """Of the first that waits."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def ask(self, wanted: Wanted) -> None:
        """Wants a state; its turn comes."""
        self._waiting.append(wanted)

    def step(self) -> None:
        """Goes on for as long as a turn may take."""
        left = limits.CAPTURE_PAGES
        while left > 0 and self._waiting:
            wanted = self._waiting[0]
            if not wanted.is_wanted():
                self._end()
                continue
            if self._capture is None:
                partition = wanted.partition()
                left -= _BEGINNING
                if partition is None:
                    self._end()
                    wanted.done(None)
                    continue
                self._capture = Capture(partition)
                wanted.begun(self._capture)
            left -= self._capture.step(max(1, left))
            if self._capture.is_done:
                capture = self._capture
                self._end()
                wanted.done(capture)

    def _end(self) -> None:
        self._waiting.popleft()
        if self._capture is not None:
            self._capture.close()
            self._capture = None
