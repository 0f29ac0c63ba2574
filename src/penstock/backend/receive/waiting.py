"""Receivers that wait for messages: long polls and subscriptions with credit, served in order of waiting.

A waiter costs nothing while it waits: it is an entry in its queue's line, used only when a message became ready, its time
ended or it got credit. A receiver of several queues has a place in the line of each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError

_STALE_AT_LEAST = 64
"""A waiter that has left stays in a line or among the deadlines until there are so many, and more than the others."""


@dataclass(slots=True, eq=False)
class Waiter:
    """A receiver in line. `deadline_ms` None: a subscription, which stays until cancelled."""

    connection: int
    request_id: int
    partition_id: int
    messages: int
    """How many it may still take: the batch of a receiver, the credit of a subscription."""
    batch_messages: int
    max_bytes: int
    visibility_timeout_ms: int | None
    deadline_ms: int | None = None
    max_leased: int | None = None
    attempt: bytes = b""
    impatient: bool = False
    """It waits for its connection only, not for messages."""
    consumer: str = ""
    """Its own name, if it is not the name of its connection."""
    in_line: bool = field(default=False)
    cancelled: bool = field(default=False)
    parked: bool = field(default=False)
    places: tuple[Waiter, ...] = ()
    """A receiver of several queues is in no line itself; these are, one in the line of each queue."""
    whole: Waiter | None = None
    """Of such a place: the receiver that it represents."""
    take: Callable[[int], bool] | None = None
    """Of such a place: serves the whole from all its queues, given the time; False where nothing is ready."""

    @property
    def partition_ids(self) -> tuple[int, ...]:
        """The queues it waits for."""
        return tuple(place.partition_id for place in self.places) or (self.partition_id,)

    @property
    def is_subscription(self) -> bool:
        """Whether it stays after being served."""
        return self.deadline_ms is None


class WaitingRoom:
    """All waiters of a node."""

    def __init__(self, *, of_front_ends: bool = False) -> None:
        """`of_front_ends`: who connects is a front end, which waits for all its clients, and bounds how often each of them waits.

        So does this process itself, whose connections have numbers below 0. One client must not use up the places of the others.
        """
        self._of_front_ends = of_front_ends
        self._lines: dict[int, deque[Waiter]] = {}
        self._left: dict[int, int] = {}
        """How many in the line of a queue have left and are still in it."""
        self._by_connection: dict[int, dict[int, Waiter]] = {}
        self._deadlines: list[tuple[int, int, Waiter]] = []
        self._parked: dict[int, list[Waiter]] = {}
        """Out of line until their connection has taken what it has been given."""
        self._present: dict[int, int] = {}
        """How many wait for each queue, those without credit and the parked included."""
        self.deserted: set[int] = set()
        """Queues that lost their last waiter; the node takes them from here."""
        self._entered = 0
        self._receivers = 0
        """Those who wait and have a deadline."""
        self.awake: set[int] = set()
        """Queues whose line should be checked."""

    def enter(self, waiter: Waiter) -> None:
        """Joins the line of its queue; raises when the line is too long or the request id is in use."""
        mine = self._by_connection.get(waiter.connection, {})
        if waiter.request_id in mine:
            raise PenstockError(ErrorCode.BAD_REQUEST, f"request id {waiter.request_id} is in use")
        is_shared = self._of_front_ends or waiter.connection < 0
        if len(mine) >= limits.WAITING_PER_CONNECTION and not is_shared:
            raise PenstockError(
                ErrorCode.TOO_MANY_WAITING,
                f"{len(mine)} receivers and subscriptions wait on this connection already, which is the limit",
            )
        in_line = max(map(self.count, waiter.partition_ids))
        if in_line >= limits.WAITING_RECEIVERS_PER_QUEUE:
            raise PenstockError(
                ErrorCode.TOO_MANY_WAITING,
                f"{in_line} receivers wait on the queue already; the limit is {limits.WAITING_RECEIVERS_PER_QUEUE}",
            )
        mine[waiter.request_id] = waiter
        self._by_connection[waiter.connection] = mine
        for partition_id in waiter.partition_ids:
            self._present[partition_id] = self._present.get(partition_id, 0) + 1
        if waiter.deadline_ms is not None:
            self._watch(waiter, waiter.deadline_ms)
        self.line_up(waiter)

    def _watch(self, waiter: Waiter, deadline_ms: int) -> None:
        self._receivers += 1
        self._entered += 1
        heappush(self._deadlines, (deadline_ms, self._entered, waiter))
        if len(self._deadlines) > 2 * self._receivers + _STALE_AT_LEAST:
            self._deadlines = [entry for entry in self._deadlines if not entry[2].cancelled]
            heapify(self._deadlines)

    def line_up(self, waiter: Waiter) -> None:
        """Puts it at the end of the line, if it may get messages; a receiver of several queues, of each line."""
        for place in waiter.places:
            self.line_up(place)
        if waiter.places:
            return
        if waiter.messages > 0 and not waiter.in_line and not waiter.cancelled:
            waiter.in_line = True
            self._lines.setdefault(waiter.partition_id, deque()).append(waiter)
            self.awake.add(waiter.partition_id)

    def next_in_line(self, partition_id: int) -> Waiter | None:
        """Takes the first out of the line."""
        line = self._lines.get(partition_id)
        while line:
            waiter = line.popleft()
            waiter.in_line = False
            if not waiter.cancelled:
                return waiter
            self._left[partition_id] -= 1
        self._drop_line(partition_id)
        return None

    def _drop_line(self, partition_id: int) -> None:
        self._lines.pop(partition_id, None)
        self._left.pop(partition_id, None)

    def back_to_front(self, waiter: Waiter) -> None:
        """Nothing was ready for it after all: it keeps its place."""
        waiter.in_line = True
        self._lines.setdefault(waiter.partition_id, deque()).appendleft(waiter)

    def park(self, waiter: Waiter) -> None:
        """Its connection is behind with reading: it leaves the line until that has caught up."""
        waiter = waiter.whole or waiter
        if waiter.parked:
            return
        waiter.parked = True
        parked = self._parked.setdefault(waiter.connection, [])
        parked.append(waiter)
        if len(parked) > 2 * len(self._by_connection.get(waiter.connection, ())) + _STALE_AT_LEAST:
            parked[:] = [waiter for waiter in parked if not waiter.cancelled]

    def unpark(self, connection: int) -> None:
        """The connection may be given more: its waiters are in line again."""
        for waiter in self._parked.pop(connection, ()):
            waiter.parked = False
            self.line_up(waiter)

    def has_line(self, partition_id: int) -> bool:
        """Whether there is a waiter for this queue."""
        return partition_id in self._lines

    def must_wait(self, place: Waiter) -> bool:
        """Whether another waiter is before it in its line."""
        line = self._lines.get(place.partition_id)
        if line is None or not place.in_line:
            return False
        while line[0].cancelled:
            line.popleft().in_line = False
            self._left[place.partition_id] -= 1
        return line[0] is not place

    def is_awaited(self, partition_id: int) -> bool:
        """Whether there is any waiter for the queue, also without credit or behind a slow connection."""
        return partition_id in self._present

    def wake(self, partition_id: int) -> None:
        """Something in the queue may have become ready."""
        if partition_id in self._lines:
            self.awake.add(partition_id)

    def find(self, connection: int, request_id: int) -> Waiter | None:
        """The receiver or subscription with that request id, if it still waits."""
        return self._by_connection.get(connection, {}).get(request_id)

    def leave(self, waiter: Waiter) -> None:
        """The waiter was served or cancelled; a place leaves with all others of its receiver."""
        waiter = waiter.whole or waiter
        waiter.cancelled = True
        mine = self._by_connection.get(waiter.connection)
        if mine is None or mine.get(waiter.request_id) is not waiter:
            return  # it was served before it had to wait
        del mine[waiter.request_id]
        if not mine:
            del self._by_connection[waiter.connection]
        if not waiter.is_subscription:
            self._receivers -= 1
        if waiter.in_line:
            self._left_line(waiter.partition_id)
        for place in waiter.places:
            place.cancelled = True
            if place.in_line:
                self._left_line(place.partition_id)
        for partition_id in waiter.partition_ids:
            self._present[partition_id] -= 1
            if not self._present[partition_id]:
                del self._present[partition_id]
                self.deserted.add(partition_id)

    def _left_line(self, partition_id: int) -> None:
        """A waiter has left the line; without messages, the line would never be swept otherwise."""
        line = self._lines.get(partition_id)
        if line is None:
            return
        left = self._left[partition_id] = self._left.get(partition_id, 0) + 1
        if left > _STALE_AT_LEAST and 2 * left > len(line):
            self._lines[partition_id] = deque(waiter for waiter in line if not waiter.cancelled)
            self._left[partition_id] = 0

    def leave_connection(self, connection: int) -> None:
        """The client is gone."""
        self._parked.pop(connection, None)
        for waiter in list(self._by_connection.get(connection, {}).values()):
            self.leave(waiter)

    def leave_queue(self, partition_id: int) -> list[Waiter]:
        """The queue is gone; returns who waited for it."""
        self._drop_line(partition_id)
        self.awake.discard(partition_id)
        waiters = [
            w
            for mine in self._by_connection.values()
            for w in mine.values()
            if partition_id in w.partition_ids
        ]
        for waiter in waiters:
            self.leave(waiter)
        return waiters

    def timed_out(self, now_ms: int) -> list[Waiter]:
        """Receivers whose time is over; they have left."""
        found = []
        while self._deadlines and (self._deadlines[0][0] <= now_ms or self._deadlines[0][2].cancelled):
            _, _, waiter = heappop(self._deadlines)
            if not waiter.cancelled:
                self.leave(waiter)
                found.append(waiter)
        return found

    def next_ms(self) -> int | None:
        """When the next receiver's time is up."""
        while self._deadlines and self._deadlines[0][2].cancelled:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def count(self, partition_id: int) -> int:
        """How many wait for the queue."""
        return len(self._lines.get(partition_id, ())) - self._left.get(partition_id, 0)
