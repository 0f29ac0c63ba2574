"""The smallest replication model beside the product's: one replica, no replication, and answers that wait for a record's flush.

It shows that a model is a class of its own: no line of `backend/` knows it. Unlike a model of the product it writes no rows of
lifecycles: see `LifecycleReports` in `backend/node/alone.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.backend.node.parts import NodeParts
from penstock.backend.send.moves import move_some
from penstock.replication.interface import Need
from penstock.storage.job import Job
from penstock.wire.messages import ReplicaStatus


class SoleReplica:
    """See `ReplicationModel`. A partition is committed as far as a flush has ended."""

    makes_queues = True

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._flushed: dict[int, int] = {}
        self.asked = 0
        """How many answers have waited for this model's word."""

    # -- what an answer waits for ----------------------------------------------------------------------------

    def needs(self, about: int | Sequence[int], *, served_only: bool) -> Sequence[Need]:
        partitions = self._parts.catalogue.partitions
        ids = [about] if isinstance(about, int) else about
        return [(one, 0, partitions[one].index, 0) for one in ids if one in partitions]

    def is_committed(self, need: Need) -> bool | None:
        self.asked += 1
        return need[2] <= self._flushed.get(need[0], 0)

    def has_copies(self, need: Need) -> bool:
        return True

    # -- what handlers ask -----------------------------------------------------------------------------------

    def check_takes_sends(self, partition_id: int) -> None: ...

    def understood(self, partition_id: int, kinds: int) -> bool:
        return True

    def incarnation_of(self, name: str) -> int | None:
        partition = self._parts.catalogue.named(name)
        return partition.partition_id if partition is not None else None

    def found_idle(self, partition_id: int) -> None: ...

    def damaged(self, partition_id: int) -> None: ...

    def may_begin_checkpoint(self) -> bool:
        return True

    def describe(self, partition_id: int) -> ReplicaStatus | None:
        return None

    def name(self) -> str:
        return "sole"

    def count(self) -> tuple[int, int]:
        return len(self._parts.catalogue.partitions), 0

    # -- turns -----------------------------------------------------------------------------------------------

    def request_arrives(self, now_ms: int) -> None: ...

    def tick(self, now_ms: int) -> None: ...

    def next_wakeup_ms(self) -> int | None:
        return None

    def move_some(self, partition_id: int, now_ms: int) -> None:
        move_some(self._parts, partition_id, now_ms)

    def end_turn(self, now_ms: int) -> None: ...

    def flushed(self, now_ms: int) -> None:
        if self._parts.store.committed_position < self._parts.store.appended_position:
            return
        for partition in self._parts.catalogue.partitions.values():
            self._flushed[partition.partition_id] = partition.index
            self._parts.outbox.replicated(partition.partition_id, self._parts.connections)

    def take_jobs(self) -> list[Job]:
        return []

    def job_done(self, job: Job, now_ms: int) -> None: ...

    def has_more(self) -> bool:
        return False

    def close(self, now_ms: int) -> None: ...
