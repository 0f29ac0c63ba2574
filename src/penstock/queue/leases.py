"""Leases: which runs are out, until when. A lease is an entry, whatever the number of its messages.

Invariant: a message in state LEASED belongs to exactly one lease here, and every run here is LEASED.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from penstock.model.runs import Runs, difference, intersection, normalized

Part = tuple[int, Runs]
"""(until, runs): the messages of a lease that end together."""


class Lease:
    """What one receive handed out and is still out."""

    __slots__ = ("at_ms", "parts")

    def __init__(self, at_ms: int, parts: list[Part]) -> None:
        self.at_ms = at_ms
        self.parts = parts

    def runs(self) -> Runs:
        """Everything still out under this lease."""
        if len(self.parts) == 1:
            return self.parts[0][1]
        return normalized(run for _, runs in self.parts for run in runs)


class LeaseTable:
    """All live leases of a partition, by number."""

    def __init__(self) -> None:
        self.next = 1
        self.leases: dict[int, Lease] = {}
        self._heap: list[tuple[int, int]] = []

    def add(self, number: int, runs: Runs, at_ms: int, until_ms: int) -> None:
        """A new lease; numbers only rise."""
        self.next = number + 1
        self.leases[number] = Lease(at_ms, [(until_ms, runs)])
        heappush(self._heap, (until_ms, number))

    def get(self, number: int) -> Lease | None:
        """The lease, if it is live."""
        return self.leases.get(number)

    def remove(self, number: int, runs: Runs) -> None:
        """Takes messages out of a lease; an empty lease is gone."""
        lease = self.leases.get(number)
        if lease is None:
            return
        if len(lease.parts) == 1 and lease.parts[0][1] == runs:
            del self.leases[number]
            return
        lease.parts = [(until, rest) for until, part in lease.parts if (rest := difference(part, runs))]
        if not lease.parts:
            del self.leases[number]

    def remove_anywhere(self, runs: Runs) -> None:
        """Takes messages out of whichever leases hold them; for the rare end that comes from elsewhere."""
        for number in [number for number, lease in self.leases.items() if intersection(lease.runs(), runs)]:
            self.remove(number, runs)

    def extend(self, number: int, runs: Runs, until_ms: int) -> None:
        """Some or all messages of a lease now end at another time."""
        lease = self.leases[number]
        rest = [(until, left) for until, part in lease.parts if (left := difference(part, runs))]
        lease.parts = [*rest, (until_ms, runs)]
        heappush(self._heap, (until_ms, number))

    def next_ms(self) -> int | None:
        """When the next lease may end; never later than it really does."""
        while self._heap and self._heap[0][1] not in self.leases:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int, most: int) -> list[tuple[int, Runs]]:
        """Up to `most` (lease, runs) that have ended; the caller turns each into a record."""
        found: list[tuple[int, Runs]] = []
        seen: set[int] = set()
        while self._heap and self._heap[0][0] <= now_ms and len(found) < most:
            _, number = heappop(self._heap)
            lease = self.leases.get(number)
            if lease is None or number in seen:
                continue
            seen.add(number)
            over = normalized(run for until, runs in lease.parts if until <= now_ms for run in runs)
            if over:  # parts that end later have an entry of their own
                found.append((number, over))
        return found

    def clear(self) -> None:
        """Nothing is out any more; numbers go on."""
        self.leases.clear()
        self._heap.clear()

    def dump(self) -> list[tuple[int, int, list[Part]]]:
        """For the snapshot."""
        return [(number, lease.at_ms, lease.parts) for number, lease in self.leases.items()]

    def load(self, dumped: list[tuple[int, int, list[Part]]]) -> None:
        """From the snapshot."""
        self.leases = {number: Lease(at_ms, parts) for number, at_ms, parts in dumped}
        self._heap = [(until, number) for number, _, parts in dumped for until, _ in parts]
        heapify(self._heap)
