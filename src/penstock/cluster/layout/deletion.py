"""How a partition of a deleted queue ends: by two writes to its entry.

    the queue       its state is `deleting`: clients find no such queue any more
    the partition   `deleted`: its primary serves no clients, moves the messages that must leave, and is replaced if it fails
    the partition   given up: every node that holds anything of it drops that, and removes itself from the list

The front end that deletes a queue marks its partitions; if it dies before, the manager does. From then on the entries of
the partitions contain everything, so the queue's own entry is removed and its name is free, while messages may still be
moving. Only the primary knows when no message of the partition is moving any more, so it gives the partition up itself
(`replication/primary_secondary/node/leader/draining.py`).
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.entries import PartitionEntry


def marked(entry: PartitionEntry, *, abandoned: bool = False) -> PartitionEntry:
    """The entry of a partition whose queue is deleted, or was apparently never completed."""
    reason = f"the queue {entry.queue} is deleted: its moving messages must first arrive in other queues"
    return msgspec.structs.replace(entry, deleted=True, abandoned=abandoned, reason=reason)


def taken_back(entry: PartitionEntry) -> PartitionEntry:
    """The entry of a partition that was wrongly taken for one of an incomplete queue: it has received messages."""
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
