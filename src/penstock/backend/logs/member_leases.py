"""Until when each member of a consumer group counts as alive without another message."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

_STALE_AT_LEAST = 64

Member = tuple[int, str, str]
"""Queue, group, member."""


class MemberLeases:
    """One time for each member; a renewal costs an entry in the heap only now and then."""

    def __init__(self) -> None:
        self._ends: dict[Member, int] = {}
        self._heap: list[tuple[int, Member]] = []
        """Times may be too early, never too late: a member that comes up early is put back."""

    def renew(self, member: Member, until_ms: int) -> None:
        """The member is alive, and must send a message by then."""
        known = self._ends.get(member)
        self._ends[member] = until_ms
        if known is None or until_ms < known:
            heappush(self._heap, (until_ms, member))
            if len(self._heap) > 2 * len(self._ends) + _STALE_AT_LEAST:
                self._heap = [(end_ms, member) for member, end_ms in self._ends.items()]
                heapify(self._heap)

    def forget(self, member: Member) -> None:
        """It has left."""
        self._ends.pop(member, None)

    def forget_queue(self, partition_id: int) -> None:
        """The queue is gone, and with it all of its groups."""
        for member in [member for member in self._ends if member[0] == partition_id]:
            del self._ends[member]

    def take_due(self, now_ms: int) -> list[Member]:
        """The members whose time is over; they are forgotten."""
        due: list[Member] = []
        while self._heap and self._heap[0][0] <= now_ms:
            _, member = heappop(self._heap)
            end_ms = self._ends.get(member)
            if end_ms is None:
                continue
            if end_ms <= now_ms:
                del self._ends[member]
                due.append(member)
            else:
                heappush(self._heap, (end_ms, member))
        return due

    def next_ms(self) -> int | None:
        """When the next time may be over."""
        while self._heap and self._heap[0][1] not in self._ends:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._ends)
