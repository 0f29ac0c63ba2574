"""Virtual time: the order of events, on one thread, determined by the seed alone.

There are two times. *Elapsed* time orders events and never jumps. The simulated node and its observers read the *clock*;
it runs with elapsed time, and a step moves it forward without any event, as when a machine was suspended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Protocol

Call = Callable[[], None]

_MORNING_MS = 500
"""Clients do not all resume in the same millisecond."""


class Times(Protocol):
    """Time on one computer: its own clock, and its future events."""

    @property
    def now_ms(self) -> int:
        """The clock."""

    @property
    def elapsed_ms(self) -> int:
        """The time that orders events."""

    @property
    def is_within(self) -> bool:
        """Whether an event is under way that lets time pass."""

    def after(self, delay_ms: int, call: Call) -> None:
        """Plans a call."""

    def pass_within(self, duration_ms: int) -> None:
        """Lets time pass in the middle of an event."""


class Schedule:
    """Events to come. Those of one moment happen in the order in which they were planned."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.elapsed_ms = 0
        self._stepped_ms = 0
        self._events: list[tuple[int, int, Call]] = []
        self._planned = 0
        self.is_within = False
        """Whether an event is under way that lets time pass."""
        self.nights: Sequence[tuple[int, int]] = ()
        """Periods in elapsed time in which clients and faults are inactive."""

    @property
    def now_ms(self) -> int:
        """The clock."""
        return self.start_ms + self.elapsed_ms + self._stepped_ms

    @property
    def true_us(self) -> int:
        """Perfect time in microseconds, which is never stepped."""
        return (self.start_ms + self.elapsed_ms) * 1_000

    @property
    def since_start_ms(self) -> int:
        """The clock, for people."""
        return self.elapsed_ms + self._stepped_ms

    def after(self, delay_ms: int, call: Call) -> None:
        """Plans a call; with delay 0 it comes after what is planned for now already."""
        self._planned += 1
        at_ms = self.elapsed_ms + delay_ms if delay_ms > 0 else self.elapsed_ms
        heappush(self._events, (at_ms, self._planned, call))

    def after_rest(self, delay_ms: int, call: Call) -> None:
        """Plans a call of a client that is inactive at night: a call in the night comes in the morning."""
        if not self.nights:
            self.after(delay_ms, call)
            return
        at_ms = self.elapsed_ms + max(0, delay_ms)
        for begins_ms, ends_ms in self.nights:
            if begins_ms <= at_ms < ends_ms:
                at_ms = ends_ms + (at_ms - begins_ms) % _MORNING_MS
        self.after(at_ms - self.elapsed_ms, call)

    def step_clock(self, forward_ms: int) -> None:
        """The clock jumps."""
        self._stepped_ms += forward_ms

    def run(self, until: Callable[[], bool], most_ms: int) -> bool:
        """Lets things happen until the condition holds; False if it does not within that much time."""
        events, end_ms = self._events, self.elapsed_ms + most_ms
        while not until():
            if not events or events[0][0] > end_ms:
                self.elapsed_ms = max(self.elapsed_ms, end_ms)  # time may have passed within an event
                return until()
            self.elapsed_ms, _, call = heappop(events)
            call()
        return True

    def pass_within(self, duration_ms: int) -> None:
        """Lets that much time pass in the middle of an event; not within one that does so already."""
        self.is_within = True
        self.run_for(duration_ms)
        self.is_within = False

    def run_for(self, duration_ms: int) -> None:
        """Lets that much time pass."""
        events, end_ms = self._events, self.elapsed_ms + duration_ms
        while events and events[0][0] <= end_ms:
            self.elapsed_ms, _, call = heappop(events)
            call()
        self.elapsed_ms = max(self.elapsed_ms, end_ms)  # time may have passed within an event


def recur(
    after: Callable[[int, Call], None], random: Random, every_ms: int, call: Call, is_over: Callable[[], bool]
) -> None:
    """Plans a call about every so often, with the pauses that the dice give, until it is over."""

    def strike() -> None:
        if not is_over():
            call()
            recur(after, random, every_ms, call, is_over)

    after(random.randint(every_ms // 3, every_ms * 2), strike)
