"""Who waits how long: connections in the order of their deadlines, without a timer of their own."""

from __future__ import annotations

from typing import Generic, TypeVar

Waiter = TypeVar("Waiter")


class Waiting(Generic[Waiter]):
    """Those that wait for the same thing for the same time, so that who came first is due first."""

    __slots__ = ("_deadlines", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadlines: dict[Waiter, float] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def start(self, waiter: Waiter, now: float) -> None:
        """Waits from now on, whether or not it did before."""
        self._deadlines.pop(waiter, None)
        self._deadlines[waiter] = now + self.seconds

    def stop(self, waiter: Waiter) -> None:
        """Waits no more."""
        self._deadlines.pop(waiter, None)

    def take_due(self, now: float) -> list[Waiter]:
        """Those whose time is over; they wait no more."""
        due = []
        for waiter, deadline in self._deadlines.items():
            if deadline > now:
                break
            due.append(waiter)
        for waiter in due:
            del self._deadlines[waiter]
        return due
