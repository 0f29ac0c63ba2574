"""The replication model of a single server: every partition has one replica, and everything on its disk is committed."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.backend.lifecycle.reports import LifecycleReports
from penstock.backend.node.parts import NodeParts
from penstock.backend.send.moves import move_some
from penstock.replication.interface import Need
from penstock.storage.job import Job
from penstock.wire.messages import ReplicaStatus


class Alone:
    """See `ReplicationModel`."""

    makes_queues = True

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._reports = LifecycleReports(parts)

    # -- what handlers ask -----------------------------------------------------------------------------------

    def needs(self, about: int | Sequence[int], *, served_only: bool) -> Sequence[Need]:
        """Nothing: everything on the disk is committed."""
        return ()

    def is_committed(self, need: Need) -> bool | None:
        """No answer needs anything."""
        return True

    def has_copies(self, need: Need) -> bool:
        """One copy is promised."""
        return True

    def check_takes_sends(self, partition_id: int) -> None:
        """There is always the one replica."""

    def understood(self, partition_id: int, kinds: int) -> bool:
        """This version reads what it writes."""
        return True

    def incarnation_of(self, name: str) -> int | None:
        """By the catalogue."""
        partition = self._parts.catalogue.named(name)
        return partition.partition_id if partition is not None else None

    def found_idle(self, partition_id: int) -> None:
        """The node has deleted it."""

    def damaged(self, partition_id: int) -> None:
        """There is no other replica for a repair."""

    def may_begin_checkpoint(self) -> bool:
        """Always: no whole state arrives."""
        return True

    def describe(self, partition_id: int) -> ReplicaStatus | None:
        """There are no replicas."""
        return None

    def name(self) -> str:
        """The name that the storage was given when it was made."""
        return self._parts.store.identity.node

    def count(self) -> tuple[int, int]:
        """None is led, none is followed."""
        return 0, 0

    # -- turns -----------------------------------------------------------------------------------------------

    def request_arrives(self, now_ms: int) -> None:
        """Nothing ends by time alone."""

    def tick(self, now_ms: int) -> None:
        """Nothing is due."""

    def next_wakeup_ms(self) -> int | None:
        """When rows about messages are to be reported."""
        return self._reports.next_ms()

    def move_some(self, partition_id: int, now_ms: int) -> None:
        """The target of every move is on this node."""
        move_some(self._parts, partition_id, now_ms)

    def end_turn(self, now_ms: int) -> None:
        """Reports to the lifecycle log."""
        self._reports.report_due(now_ms)

    def flushed(self, now_ms: int) -> None:
        """The position of the disk says it all."""

    def take_jobs(self) -> list[Job]:
        """None."""
        return []

    def job_done(self, job: Job, now_ms: int) -> None:
        """None is its own."""

    def has_more(self) -> bool:
        """No work continues by itself."""
        return False

    def close(self, now_ms: int) -> None:
        """Rows about messages wait for company no longer."""
        self._reports.report_all(now_ms)
