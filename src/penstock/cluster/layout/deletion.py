"""How a partition of a deleted queue comes to its end: two writes to its entry.

    the queue       its state is `deleting`: for clients there is no such queue any more
    the partition   `deleted`: its primary serves no clients, sends on what has to leave, and is replaced where it fails
    the partition   given up: everybody who holds anything of it drops that, and takes itself off the list

The front end that deletes a queue marks its partitions; where it dies before, the manager does. From then on the entry says
everything, so the queue's own entry goes and its name is free, while messages may still be on their way. Only the primary
knows when nothing of the partition is on its way any more, so it gives the partition up itself (`backend/replication/draining`).
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.entries import PartitionEntry


def marked(entry: PartitionEntry, *, abandoned: bool = False) -> PartitionEntry:
    """The entry of a partition whose queue is deleted, or was begun and never made, as it seems."""
    reason = (
        f"the queue {entry.queue} is deleted: what is on its way to other queues has to arrive there first"
    )
    return msgspec.structs.replace(entry, deleted=True, abandoned=abandoned, reason=reason)


def taken_back(entry: PartitionEntry) -> PartitionEntry:
    """The entry of a partition that was taken for one whose queue was never made, and that messages were sent to."""
    reason = f"messages were sent to it, so the queue {entry.queue} was made, though its entry was missing"
    return msgspec.structs.replace(entry, deleted=False, abandoned=False, kept=True, reason=reason)


def given_up(entry: PartitionEntry, reason: str) -> PartitionEntry:
    """The entry of a partition that no node is to hold any more."""
    return msgspec.structs.replace(
        entry,
        primary=None,
        primary_started_ms=0,
        hand_over_to=None,
        replicas=[],
        in_sync=[],
        leaving=[*entry.leaving, *(node for node in entry.replicas if node not in entry.leaving)],
        reason=reason,
    )
