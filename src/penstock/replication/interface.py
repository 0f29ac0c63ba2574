"""What a node asks of a replication model.

A node (`backend/node`) knows nothing about replicas. It asks its model which partitions it may answer for, when an answer
may leave, and what to do in its turn. The model knows nothing about sockets or the store. `backend/node/alone.py` is the
model of a node without replicas, `primary_secondary` the one with a leader for each partition. A further model is a folder
beside it. `cluster_interface.py` is the interface for the process around a cluster's node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.storage.job import Job
from penstock.wire.messages import ReplicaStatus

Need = tuple[int, int, int, int]
"""(partition, epoch, index, time): what must be committed before an answer may leave, and since when the primary must be
known to be the only one (0: the commit proves it).
"""


class Commitment(Protocol):
    """What an answer must wait for."""

    def needs(self, about: int | Sequence[int], *, served_only: bool) -> Sequence[Need]:
        """What must be committed before a client may learn the current state of these partitions.

        If this node does not serve one of them, nothing may be told; with `served_only`, such partitions are ignored.
        """

    def is_committed(self, need: Need) -> bool | None:
        """Whether something is committed; None: it never will be, as far as this node can tell."""

    def has_copies(self, need: Need) -> bool:
        """Whether what is committed is on as many disks as a send is promised to be."""


class PartitionRoles(Protocol):
    """The questions of request handlers about partitions on this node."""

    makes_queues: bool
    """Whether this node makes, alters and deletes queues by itself; otherwise the layout of a cluster says what there is."""

    def check_takes_sends(self, partition_id: int) -> None:
        """Raises where too few replicas are in sync."""

    def understood(self, partition_id: int, kinds: int) -> bool:
        """Whether all living replicas can read records of these kinds (`KINDS`)."""

    def incarnation_of(self, name: str) -> int | None:
        """The id of the queue that has that name, or of a partition of it; None: there is none."""

    def found_idle(self, partition_id: int) -> None:
        """The partition was not used for as long as its idle expiry is, on a node that does not delete queues by itself."""

    def damaged(self, partition_id: int) -> None:
        """Stored data of the partition is not what was written."""

    def may_begin_checkpoint(self) -> bool:
        """Whether no state is on its way to the disk that a snapshot would show in part."""

    def describe(self, partition_id: int) -> ReplicaStatus | None:
        """The node's part in a partition, for people; None: there are no replicas."""

    def name(self) -> str:
        """The name of this node."""

    def count(self) -> tuple[int, int]:
        """How many partitions this node leads, and how many it follows."""


class ModelTurns(Protocol):
    """The model's part in the turns of a node."""

    def request_arrives(self, now_ms: int) -> None:
        """A client's request arrives: expirations that are due must be applied before it is answered."""

    def tick(self, now_ms: int) -> None:
        """Does what is due by now."""

    def next_wakeup_ms(self) -> int | None:
        """When `tick` has something to do next."""

    def move_some(self, partition_id: int, now_ms: int) -> None:
        """One bounded step of the moves out of a partition; raises `PenstockError` where the journal has no room."""

    def end_turn(self, now_ms: int) -> None:
        """All requests of the turn were handled: the last moment to append something before the flush is handed out."""

    def flushed(self, now_ms: int) -> None:
        """A flush has ended. Says to the outbox what is committed by that, before answers leave."""

    def take_jobs(self) -> list[Job]:
        """Work for the helper thread."""

    def job_done(self, job: Job, now_ms: int) -> None:
        """A job of any owner has ended."""

    def has_more(self) -> bool:
        """Whether another turn is wanted though nothing arrives."""

    def close(self, now_ms: int) -> None:
        """The node is closed after this: the last moment to append something."""


class ReplicationModel(Commitment, PartitionRoles, ModelTurns, Protocol):
    """Everything that a node asks of its model."""
