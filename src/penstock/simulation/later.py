"""A delayed call in simulated time that can be cancelled."""

from __future__ import annotations

from collections.abc import Callable


class Cancellable:
    """See `Timer`."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """It is not done."""
        self._action = None

    def run(self) -> None:
        """Its time has come."""
        if self._action is not None:
            self._action()
