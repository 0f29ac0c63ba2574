"""The timer of one of the product's state machines, by the clock of its computer, which may run slow or jump."""

from __future__ import annotations

from collections.abc import Callable

from penstock.simulation.schedule import Times


class Alarm:
    """`next_ms` says when it is due, `ring` makes the machine tick; calls may come too early."""

    def __init__(self, times: Times, next_ms: Callable[[], int | None], ring: Callable[[], None]) -> None:
        self._times = times
        self._next_ms = next_ms
        self._ring = ring
        self._set_to_ms: int | None = None
        """When it rings, in elapsed time; None: it is not set."""

    def set(self) -> None:
        """The machine may be due at another time than before."""
        due_ms = self._next_ms()
        if due_ms is None:
            return
        rings_ms = self._times.elapsed_ms + max(1, due_ms - self._times.now_ms)
        if self._set_to_ms is None or rings_ms < self._set_to_ms:
            self._set_to_ms = rings_ms
            self._times.after(rings_ms - self._times.elapsed_ms, lambda: self._rang(rings_ms))

    def _rang(self, set_to_ms: int) -> None:
        if self._set_to_ms == set_to_ms:
            self._set_to_ms = None
            self._ring()
