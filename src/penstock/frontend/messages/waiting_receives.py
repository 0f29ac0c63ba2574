"""Receives that wait for messages, so that all can be ended when the server stops, and one when its user loses the right."""

from __future__ import annotations

from typing import Protocol

from penstock.metadata.store.interface import Change


class PendingReceive(Protocol):
    """A receive under way."""

    def stop_waiting(self) -> None:
        """Answers now, with what there is."""
        ...

    def review(self, change: Change) -> None:
        """Users or policies have changed: refuses where what was allowed is allowed no longer."""
        ...


class WaitingReceives:
    """The waiting receives of one front end. After `end`, later ones are answered at once."""

    __slots__ = ("_ended", "_waiters")

    def __init__(self) -> None:
        self._waiters: set[PendingReceive] = set()
        self._ended = False

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, waiter: PendingReceive) -> None:
        """A receive waits from now on."""
        self._waiters.add(waiter)
        if self._ended:
            waiter.stop_waiting()

    def discard(self, waiter: PendingReceive) -> None:
        """It was answered."""
        self._waiters.discard(waiter)

    def review(self, change: Change) -> None:
        """Users, or a queue's metadata, have changed: ends receives that are no longer allowed."""
        for waiter in list(self._waiters):
            waiter.review(change)

    def end(self) -> None:
        """Answers all waiting receives, and all later ones at once."""
        self._ended = True
        for waiter in list(self._waiters):
            waiter.stop_waiting()
