"""When each queue must be checked next: one time for each queue, however often it changes.

A time may come too early, never too late: a queue that is checked asks for its next time.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

_STALE_AT_LEAST = 64


def earliest(*times: int | None) -> int | None:
    """The first of several times, of which those that are None never come. A node asks several times a turn."""
    first: int | None = None
    for time in times:
        if time is not None and (first is None or time < first):
            first = time
    return first


class UpkeepTimes:
    """The earliest requested time of each queue."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        """(time, queue); those that are not in `_times` stay until they come up or are too many."""

    def __len__(self) -> int:
        return len(self._heap)

    def ask(self, partition_id: int, due_ms: int) -> None:
        """The queue must be checked by then; an earlier request stays valid."""
        known_ms = self._times.get(partition_id)
        if known_ms is not None and known_ms <= due_ms:
            return
        self._times[partition_id] = due_ms
        heappush(self._heap, (due_ms, partition_id))
        if len(self._heap) > 2 * len(self._times) + _STALE_AT_LEAST:
            self._heap = [(time_ms, queue) for queue, time_ms in self._times.items()]
            heapify(self._heap)

    def forget(self, partition_id: int) -> None:
        """The queue is gone."""
        self._times.pop(partition_id, None)

    def take_due(self, now_ms: int) -> list[int]:
        """The queues whose time has come, the earliest first; they must ask again."""
        due: list[int] = []
        while self._heap and self._heap[0][0] <= now_ms:
            time_ms, partition_id = heappop(self._heap)
            if self._times.get(partition_id) == time_ms:
                del self._times[partition_id]
                due.append(partition_id)
        return due

    def next_ms(self) -> int | None:
        """When the next queue is due."""
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
