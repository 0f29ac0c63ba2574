"""When each of the queues was last used that go when nobody uses them (`idle_expiry_ms`).

The time counts anew from every start of the node, so nothing of it is stored.
"""

from __future__ import annotations

from penstock.backend.upkeep_times import UpkeepTimes


class IdleQueues:
    """When each queue that may go was last used."""

    def __init__(self) -> None:
        self._used_ms: dict[int, int] = {}
        self._times = UpkeepTimes()

    def __bool__(self) -> bool:
        return bool(self._used_ms)

    def watch(self, queue_id: int, expiry_ms: int | None, now_ms: int) -> None:
        """The queue's settings are these; one that is not known yet counts as used now."""
        if expiry_ms is None:
            self.forget(queue_id)
        else:
            self._times.ask(queue_id, self._used_ms.setdefault(queue_id, now_ms) + expiry_ms)

    def forget(self, queue_id: int) -> None:
        """The queue is gone, or may stay for good."""
        if self._used_ms.pop(queue_id, None) is not None:
            self._times.forget(queue_id)

    def used(self, queue_id: int, now_ms: int) -> None:
        """Somebody uses the queue."""
        if queue_id in self._used_ms:
            self._used_ms[queue_id] = now_ms

    def look_again(self, queue_id: int, at_ms: int) -> None:
        """It could not be told by now."""
        self._times.ask(queue_id, at_ms)

    def used_ms(self, queue_id: int) -> int:
        """When the queue was last used."""
        return self._used_ms[queue_id]

    def take_due(self, now_ms: int) -> list[int]:
        """Queues that may have been idle for long enough."""
        return [queue_id for queue_id in self._times.take_due(now_ms) if queue_id in self._used_ms]

    def next_ms(self) -> int | None:
        """When to look next."""
        return self._times.next_ms()
