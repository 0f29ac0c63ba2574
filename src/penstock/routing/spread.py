"""Chooses among the partitions of a queue: where a batch goes, and where a receive looks first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from penstock.cluster.layout.entries import QueueEntry

REMEMBERED = 10_000
"""Queues and partitions; beyond, all are forgotten, which costs a detour at most."""
ATTEMPTS_REMEMBERED = 100_000
"""Attempts of receives, about 25 MB; beyond, the oldest goes. Partitions know their attempts for five minutes. So up to 333 a second
are known here for as long as there. One that is forgotten here may be given other messages by another partition, while the
first lease lasts; nothing is lost by that. It cannot be exact: another front end does not know the attempt either, and to ask
all partitions about every new attempt would cost each receive a round trip to all of them."""


class Spread:
    """The state of one front end for the queues that it serves."""

    def __init__(self, load: Callable[[int], float]) -> None:
        self._load = load
        """The load of a partition from this front end; infinite if it is not served."""
        self._sent: dict[int, int] = {}
        self._received: dict[int, int] = {}
        self._filled: set[int] = set()
        """Partitions that had something when they were last asked."""
        self._attempts: OrderedDict[tuple[int, bytes], int] = OrderedDict()

    def for_batch(self, queue: QueueEntry) -> int:
        """The ordinal for a batch that may go anywhere: the least loaded one, in turn among equals."""
        count = len(queue.partitions)
        start = self._next(self._sent, queue.queue_id)
        turn = [(start + step) % count for step in range(count)]
        return min(turn, key=lambda ordinal: self._load(queue.partitions[ordinal]))

    def for_receive(self, queue: QueueEntry, attempt: bytes) -> tuple[Sequence[int], Sequence[int]]:
        """Ordinals that should have something, in the order to ask them, and all others."""
        count = len(queue.partitions)
        start = self._next(self._received, queue.queue_id)
        turn = [(start + step) % count for step in range(count)]
        known = self.served(queue, attempt)
        likely = [ordinal for ordinal in turn if queue.partitions[ordinal] in self._filled]
        if known is not None:
            likely = [known, *(ordinal for ordinal in likely if ordinal != known)]
        return likely, [ordinal for ordinal in turn if ordinal not in likely]

    def served(self, queue: QueueEntry, attempt: bytes) -> int | None:
        """The ordinal of the partition that gave messages to an attempt, as far as is known here."""
        return self._attempts.get((queue.queue_id, attempt)) if attempt else None

    def received(self, queue: QueueEntry, ordinal: int, attempt: bytes, *, something: bool) -> None:
        """A partition was asked and had something, or nothing."""
        if not something:
            self._filled.discard(queue.partitions[ordinal])
            return
        self.filled(queue.partitions[ordinal])
        if attempt:
            self._attempts[queue.queue_id, attempt] = ordinal
            self._attempts.move_to_end((queue.queue_id, attempt))
            if len(self._attempts) > ATTEMPTS_REMEMBERED:
                self._attempts.popitem(last=False)

    def filled(self, partition: int) -> None:
        """A partition should have something."""
        if len(self._filled) >= REMEMBERED:
            self._filled.clear()
        self._filled.add(partition)

    def turn(self, queue_id: int) -> int:
        """A count that rises with every receive from a queue."""
        return self._next(self._received, queue_id)

    @staticmethod
    def _next(turns: dict[int, int], queue_id: int) -> int:
        if len(turns) >= REMEMBERED and queue_id not in turns:
            turns.clear()
        turn = turns.get(queue_id, -1) + 1
        turns[queue_id] = turn
        return turn
