"""State that all requests of one router share, and the lookup of a request's queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.cluster.layout.decoder import partition_of_key
from penstock.cluster.layout.entries import QueueEntry, queue_key
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.send_turns import SendTurns
from penstock.routing.spread import REMEMBERED, Spread
from penstock.steps.step import Look, Steps
from penstock.wire.read_ticket import TicketSeal


class FreeIds:
    """Ids of queues and partitions that were reserved in the store and not used yet."""

    def __init__(self) -> None:
        self._free = range(0)
        self.above = 1
        """All that this process took, or saw in the layout, are below this; the store's count may have been put back."""
        self.counting = False
        """Whether a request is reserving more in the store."""
        self.wanted = 0
        """How many those need who wait for that."""

    def take(self, count: int) -> range | None:
        """So many; None where there are too few."""
        if len(self._free) < count:
            return None
        taken, self._free = self._free[:count], self._free[count:]
        return taken

    def set_aside(self, ids: range) -> None:
        """More ids were reserved; the rest of earlier ones is never used."""
        self._free = ids
        self.above = max(self.above, ids.stop)
        self.wanted = 0


class ReadOffer(NamedTuple):
    """What readers get who want to read at the nodes directly."""

    seal: TicketSeal
    authority: Callable[[], str]
    """The authority that signs the certificates of nodes (PEM), at present; empty: they use no TLS."""
    certified_name: Callable[[str], str]
    """The name that the certificate of a node must have when a client connects to a host; empty: names are not checked."""


class RoutingContext:
    """The shared parts of a router."""

    def __init__(
        self,
        cluster: ClusterMap,
        *,
        producer: int,
        now_ms: Callable[[], int],
        load: Callable[[int], float],
        replicas: int = 1,
    ) -> None:
        self.map = cluster
        self.producer = producer
        """The id of this router as a producer, for the nodes' detection of repeated batches; never 0."""
        self.now_ms = now_ms
        self.replicas = replicas
        """The number of replicas of queues created without one."""
        self.spread = Spread(load)
        self._numbers: dict[int, int] = {}
        self._highest_forgotten = 0
        """No number up to this is given again: a partition that seemed gone may be back, and know its batches."""
        self.ids = FreeIds()
        self.turns = SendTurns()
        self.looking: set[int] = set()
        """Ids of queues that a request is looking for in the store right now (`routing/unheard.py`)."""
        self.looks = 0
        """Requests that look for such a queue, or wait until another one has."""
        self.offer: ReadOffer | None = None
        """None: all reading goes through this router."""
        self._credits: dict[tuple[tuple[int, int], ...], list[float]] = {}
        cluster.listen(self._changed)

    def _changed(self, key: str) -> None:
        """Drops the id counters of partitions that no longer exist."""
        partition = partition_of_key(key)
        if partition is not None and partition not in self.map.partitions:
            self._highest_forgotten = max(self._highest_forgotten, self._numbers.pop(partition, 0))

    def next_number(self, partition: int) -> int:
        """The number of the next batch of this router's own for a partition."""
        number = self._numbers.get(partition, self._highest_forgotten) + 1
        self._numbers[partition] = number
        return number

    def weighted_shares(self, queues: tuple[tuple[int, int], ...], messages: int) -> list[int]:
        """Splits a number of messages among queues by weight; the remainder rotates from call to call."""
        if not queues:
            return []
        if len(self._credits) >= REMEMBERED and queues not in self._credits:
            self._credits.clear()
        owed = self._credits.setdefault(queues, [0.0] * len(queues))
        total = sum(weight for _, weight in queues)
        for place, (_, weight) in enumerate(queues):
            owed[place] += messages * weight / total
        shares = [max(0, int(due)) for due in owed]
        by_rest = sorted(range(len(queues)), key=lambda place: shares[place] - owed[place])
        for place in by_rest[: max(0, messages - sum(shares))]:
            shares[place] += 1
        for place, share in enumerate(shares):
            owed[place] -= share
        return shares

    def turn_of(self, queue_id: int, count: int) -> int:
        """Which of so many is first this time."""
        return self.spread.turn(queue_id) % count

    def queue(self, queue_id: int) -> QueueEntry:
        """The queue of an id; raises where there is none, or not this incarnation any more."""
        entry = self.map.incarnation(queue_id)
        if entry is None:
            raise PenstockError(
                ErrorCode.QUEUE_NOT_FOUND, f"there is no queue with id {queue_id}; look it up again"
            )
        return entry

    def found(self, name: str) -> Steps[QueueEntry]:
        """The queue of a name, looked up in the store where the map has none: another may just have made it."""
        entry = self.map.ready(name)
        if entry is None:
            yield Look(queue_key(name))
            entry = self.map.ready(name)
        if entry is None:
            raise self.missing(name)
        return entry

    def missing(self, name: str) -> PenstockError:
        """Why a queue cannot be used that the map does not have."""
        why = self.map.why_too_new(name)
        if why is not None:
            return PenstockError(ErrorCode.UNSUPPORTED_VERSION, f"queue {name!r}: {why}")
        return no_such_queue(name)


def partition_of(queue: QueueEntry, ordinal: int) -> int:
    """The id of a partition; raises where the queue has none of that ordinal."""
    if not 0 <= ordinal < len(queue.partitions):
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"queue {queue.name!r} has {len(queue.partitions)} partitions, and the sequence number belongs to another partition",
        )
    return queue.partitions[ordinal]


def no_such_queue(name: str) -> PenstockError:
    """The error for an unknown queue name."""
    return PenstockError(ErrorCode.QUEUE_NOT_FOUND, f"there is no queue {name!r}")
