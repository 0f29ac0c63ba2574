"""When each queue with an idle expiry (`idle_expiry_ms`) was last used.

The time counts from every start of the node, so nothing of it is stored. Only time in which the queue could have been used
counts: when the clock of the node is set forward, or its machine is suspended, it is unknown how much time passed, and that
step does not count. Otherwise the correction of a clock would delete a queue in use with its messages. So the node looks at
its clock every second.
"""

from __future__ import annotations

from penstock.backend.upkeep.upkeep_times import UpkeepTimes

LOOK_MS = 1_000
"""How often the node looks at its clock while there are such queues."""
LOOKS_AT_ONCE = 2
"""Where the clock shows that more time has passed than so many looks are apart, it was set, or the machine stood still."""
_LOOK_AGAIN_MS = 1_000


class IdleQueues:
    """When each queue that may be deleted was last used. Callers pass the time of the node; this keeps the time that counts."""

    def __init__(self) -> None:
        self._used_ms: dict[int, int] = {}
        self._times = UpkeepTimes()
        self._found: set[int] = set()
        """In a cluster: queues that were found idle; they go only when the whole cluster agrees."""
        self.woken: dict[int, None] = {}
        """Of the idle ones, those that a client uses after all."""
        self._looked_ms = 0
        """The node's clock at the last look."""
        self._passed_ms = 0
        """How much of its time has counted until then."""

    def __bool__(self) -> bool:
        return bool(self._used_ms)

    def _passed(self, now_ms: int) -> int:
        """The time that counts, now."""
        step_ms = now_ms - self._looked_ms
        if step_ms > 0:
            self._looked_ms = now_ms
            if step_ms <= LOOKS_AT_ONCE * LOOK_MS:
                self._passed_ms += step_ms
        return self._passed_ms

    def watch(self, partition_id: int, expiry_ms: int | None, now_ms: int) -> None:
        """The queue's settings are these; one that is not known yet counts as used now."""
        if expiry_ms is None:
            self.forget(partition_id)
        else:
            used_ms = self._used_ms.get(partition_id)
            if used_ms is None:
                used_ms = self._used_ms[partition_id] = self._passed(now_ms)
            self._times.ask(partition_id, used_ms + expiry_ms)

    def forget(self, partition_id: int) -> None:
        """The queue is gone, or no longer has an idle expiry."""
        if self._used_ms.pop(partition_id, None) is not None:
            self._times.forget(partition_id)
            self._found.discard(partition_id)
            self.woken.pop(partition_id, None)

    def used(self, partition_id: int, now_ms: int) -> None:
        """A client uses the queue."""
        if partition_id in self._used_ms:
            self._used_ms[partition_id] = self._passed(now_ms)
            if partition_id in self._found:
                self._found.discard(partition_id)
                self.woken[partition_id] = None
                self.look_again(partition_id, _LOOK_AGAIN_MS)

    def find(self, partition_id: int) -> None:
        """It is idle, until a client uses it."""
        self._found.add(partition_id)

    def is_found(self, partition_id: int) -> bool:
        """Whether it was found idle, and not used since."""
        return partition_id in self._found

    def look_again(self, partition_id: int, after_ms: int) -> None:
        """It could not be reported; check it again."""
        self._times.ask(partition_id, self._passed_ms + after_ms)

    def left_ms(self, partition_id: int, expiry_ms: int) -> int:
        """How long the queue has left, at the last look, if no client uses it."""
        return self._used_ms[partition_id] + expiry_ms - self._passed_ms

    def take_due(self, now_ms: int) -> list[int]:
        """Queues that may have been idle for long enough."""
        if not self._used_ms:
            return []
        return [
            partition_id
            for partition_id in self._times.take_due(self._passed(now_ms))
            if partition_id in self._used_ms
        ]

    def next_ms(self) -> int | None:
        """When to look next, by the node's clock."""
        next_ms = self._times.next_ms()
        return None if next_ms is None else self._looked_ms + min(next_ms - self._passed_ms, LOOK_MS)
