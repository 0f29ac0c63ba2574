"""Captures states, for snapshots and for replicas: one at a time, a few pages in a turn.

So the time of a node's turn does not depend on the size or number of the states.
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
    """A requested capture."""

    partition: Callable[[], Partition | None]
    """Asked when its turn has come; None: there is nothing to capture."""
    begun: Callable[[Capture], None]
    """Called when the capture begins: it contains the state of this moment."""
    done: Callable[[Capture | None], None]
    """Called with the capture, or None if there was nothing."""
    is_wanted: Callable[[], bool]
    """Called in every turn: a capture that is no longer needed is abandoned."""


class Captures:
    """The captures of a node, in the order of the requests."""

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
        """Continues for as long as a turn may take."""
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
