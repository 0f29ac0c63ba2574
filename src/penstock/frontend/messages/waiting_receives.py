"""Receives that wait for messages, so that all of them can be ended when the server stops, and one when its user may no longer."""

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
    """Those of one front end. Once they are ended nobody waits any more: who comes late is answered at once."""

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
        """Users, or what is kept of a queue, have changed: who was let in before may have to go."""
        for waiter in list(self._waiters):
            waiter.review(change)

    def end(self) -> None:
        """Answers everybody who waits, and everybody who would from now on."""
        self._ended = True
        for waiter in list(self._waiters):
            waiter.stop_waiting()
