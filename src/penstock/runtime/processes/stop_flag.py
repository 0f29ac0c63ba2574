"""A flag that a signal handler sets and that its own thread waits for.

`threading.Event` cannot be used: its `wait` holds a lock for a moment, and a handler that runs in this moment waits
forever for the same lock in the same thread.
"""

from __future__ import annotations

import time

SLICE_SECONDS = 0.05
"""How late a wait may notice that the flag was set."""


class StopFlag:
    """Set once, from a signal handler or from any thread."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """From now on every wait ends."""
        self._is_set = True

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._is_set

    def wait(self, timeout: float) -> bool:
        """Waits until it is set, but not longer than so many seconds; whether it is set."""
        end = time.monotonic() + timeout
        while not self._is_set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_SECONDS))
        return self._is_set
