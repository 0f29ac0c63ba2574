"""When each queue with an idle expiry (`idle_expiry_ms`) was last used.

The time counts from every start of the node, so nothing of it is stored.
"""

from __future__ import annotations

from penstock.backend.upkeep.upkeep_times import UpkeepTimes

_LOOK_AGAIN_MS = 1_000


class IdleQueues:
    """When each queue that may be deleted was last used."""

    def __init__(self) -> None:
        self._used_ms: dict[int, int] = {}
        self._times = UpkeepTimes()
        self._found: set[int] = set()
        """In a cluster: queues that were found idle; they go only when the whole cluster agrees."""
        self.woken: dict[int, None] = {}
        """Of the idle ones, those that a client uses after all."""

    def __bool__(self) -> bool:
        return bool(self._used_ms)

    def watch(self, partition_id: int, expiry_ms: int | None, now_ms: int) -> None:
        """The queue's settings are these; one that is not known yet counts as used now."""
        if expiry_ms is None:
            self.forget(partition_id)
        else:
            self._times.ask(partition_id, self._used_ms.setdefault(partition_id, now_ms) + expiry_ms)

    def forget(self, partition_id: int) -> None:
        """The queue is gone, or no longer has an idle expiry."""
        if self._used_ms.pop(partition_id, None) is not None:
            self._times.forget(partition_id)
            self._found.discard(partition_id)
            self.woken.pop(partition_id, None)

    def used(self, partition_id: int, now_ms: int) -> None:
        """A client uses the queue."""
        if partition_id in self._used_ms:
            self._used_ms[partition_id] = now_ms
            if partition_id in self._found:
                self._found.discard(partition_id)
                self.woken[partition_id] = None
                self._times.ask(partition_id, now_ms + _LOOK_AGAIN_MS)

    def find(self, partition_id: int) -> None:
        """It is idle, until a client uses it."""
        self._found.add(partition_id)

    def is_found(self, partition_id: int) -> bool:
        """Whether it was found idle, and not used since."""
        return partition_id in self._found

    def look_again(self, partition_id: int, at_ms: int) -> None:
        """It could not be reported; check it again."""
        self._times.ask(partition_id, at_ms)

    def used_ms(self, partition_id: int) -> int:
        """When the queue was last used."""
        return self._used_ms[partition_id]

    def take_due(self, now_ms: int) -> list[int]:
        """Queues that may have been idle for long enough."""
        return [
            partition_id for partition_id in self._times.take_due(now_ms) if partition_id in self._used_ms
        ]

    def next_ms(self) -> int | None:
        """When to look next."""
        return self._times.next_ms()
