"""Sends that wait for the clock to become certain, by queue, in the order of arrival."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Send


class HeldSend(NamedTuple):
    """A send as it arrived; its body is a copy, because it outlives the turn."""

    connection: int
    request_id: int
    request: Send
    body: bytes
    until_ms: int


class HeldSends:
    """All held sends of a node, bounded in number and in bytes for each queue, and in bytes for all."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self._most_bytes = limits.SENDS_HELD_BYTES_PER_NODE if most_bytes is None else most_bytes
        self._by_partition: dict[int, deque[HeldSend]] = {}
        self._bytes: dict[int, int] = {}
        self._all_bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_partition.values()))

    def __bool__(self) -> bool:
        """Whether any are held. Lines without a send are not kept."""
        return bool(self._by_partition)

    def queues(self) -> list[int]:
        """Queues with sends that are held."""
        return list(self._by_partition)

    def waiting(self, partition_id: int) -> bool:
        """Whether sends to the queue are held."""
        return partition_id in self._by_partition

    def add(self, send: HeldSend, reason: str) -> None:
        """Holds one more; raises where there are too many already."""
        partition_id = send.request.queue_id
        line = self._by_partition.get(partition_id, deque())
        size = self._bytes.get(partition_id, 0) + len(send.body)
        if (
            len(line) >= limits.SENDS_HELD_PER_QUEUE
            or size > limits.SENDS_HELD_BYTES_PER_QUEUE
            or self._all_bytes + len(send.body) > self._most_bytes
        ):
            raise PenstockError(
                ErrorCode.CLOCK_UNCERTAIN,
                f"{reason}; {len(line)} sends are held for the queue already, {len(self)} for all queues, and there "
                "is no room for more",
            )
        line.append(send)
        self._by_partition[partition_id] = line
        self._bytes[partition_id] = size
        self._all_bytes += len(send.body)

    def first(self, partition_id: int) -> HeldSend | None:
        """Who waits longest."""
        line = self._by_partition.get(partition_id)
        return line[0] if line else None

    def take(self, partition_id: int) -> HeldSend:
        """Takes out who waits longest."""
        line = self._by_partition[partition_id]
        taken = line.popleft()
        self._bytes[partition_id] -= len(taken.body)
        self._all_bytes -= len(taken.body)
        if not line:
            self._forget(partition_id)
        return taken

    def overdue(self, partition_id: int, now_ms: int) -> list[HeldSend]:
        """Takes out who has waited for too long."""
        found: list[HeldSend] = []
        while (first := self.first(partition_id)) is not None and first.until_ms <= now_ms:
            found.append(self.take(partition_id))
        return found

    def drop_queue(self, partition_id: int) -> list[HeldSend]:
        """The queue takes nothing in any more; returns who waited."""
        dropped = list(self._by_partition.get(partition_id, ()))
        self._forget(partition_id)
        return dropped

    def leave_connection(self, connection: int) -> None:
        """The client is gone: what it sent was not taken in."""
        for partition_id, line in list(self._by_partition.items()):
            kept = deque(send for send in line if send.connection != connection)
            if kept:
                size = sum(len(send.body) for send in kept)
                self._all_bytes += size - self._bytes[partition_id]
                self._by_partition[partition_id], self._bytes[partition_id] = kept, size
            else:
                self._forget(partition_id)

    def _forget(self, partition_id: int) -> None:
        self._by_partition.pop(partition_id, None)
        self._all_bytes -= self._bytes.pop(partition_id, 0)
