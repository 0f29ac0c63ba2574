"""Deleted queues and removed nodes: their entries are removed when no node holds anything of them any more.

Data is deleted only on an explicit entry. The state `deleting` of a queue marks its partitions as deleted. Each primary
gives its partition up when no message of it is moving to another queue (`layout/deletion.py`). Each node drops its data
and removes itself from the list. Then the entry is removed. The name of the queue is free when all of its partitions are
marked. A partition whose queue is only missing is left unchanged, unless it was created ten minutes to an hour ago: then
the creator of its queue has died. The queue is then written as being deleted, on condition that the entry does not exist,
so a creator that was only slow finds the name in use. It is written as `abandoned`: a primary that ever accepted a message
withdraws that, because somebody may have removed the entry of a completed queue. A missing node keeps the entry of a
deleted partition in place until it comes back and drops its replica, or an operator removes the node.
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.changes import Change, change_partition
from penstock.cluster.layout.deletion import given_up, marked
from penstock.cluster.layout.entries import (
    PartitionEntry,
    QueueEntry,
    drain_key,
    partition_key,
    queue_key,
)
from penstock.cluster.layout.view import ClusterView, Seen
from penstock.cluster.manager.settings import ManagerSettings

FORMER_REMEMBERED = 64
_ABSENT = 0


def retire(view: ClusterView, seen: Seen[PartitionEntry]) -> Change | None:
    """The change for a partition that is given up or whose queue is being deleted; None: nothing."""
    entry = seen.entry
    if not entry.retired:
        queue = view.queue_of(entry)
        if not entry.deleted and (queue is None or queue.state != "deleting"):
            return None
        abandoned = entry.abandoned or (queue is not None and queue.abandoned)
        if abandoned and entry.kept:
            return None
        if not entry.serving:
            return _give_up(seen, f"the queue {entry.queue} is deleted, and nothing was ever sent to it")
        if not abandoned and all(view.members.removed(node) for node in entry.replicas):
            return _give_up(
                seen, f"the queue {entry.queue} is deleted, and all nodes that held it are removed"
            )
        return None if entry.deleted else change_partition(seen.version, marked(entry, abandoned=abandoned))
    if not entry.leaving:
        reason = f"no node holds data of partition {entry.partition} of {entry.queue} any more"
        return Change(partition_key(entry.partition), seen.version, None, reason)
    return None


def forget_removed(view: ClusterView, seen: Seen[PartitionEntry]) -> Change | None:
    """Nodes that will not come back need drop nothing."""
    entry = seen.entry
    removed = [node for node in entry.leaving if view.members.removed(node)]
    if not removed:
        return None
    left = [node for node in entry.leaving if node not in removed]
    former = noted_former(entry, removed)
    reason = f"{', '.join(removed)} was removed and need not drop its replica"
    changed = msgspec.structs.replace(entry, leaving=left, former=former, reason=reason)
    return change_partition(seen.version, changed)


def noted_former(entry: PartitionEntry, removed: list[str]) -> list[str]:
    """The former holders of a partition, with some more; of very many the first are forgotten."""
    return [*(node for node in entry.former if node not in removed), *removed][-FORMER_REMEMBERED:]


def call_back(view: ClusterView, seen: Seen[PartitionEntry]) -> Change | None:
    """Nodes that were removed and have come back drop what they held before."""
    entry = seen.entry
    back = [node for node in entry.former if node in view.members.living]
    if not back:
        return None
    reason = f"{', '.join(back)} was removed, has come back, and must drop its former replica"
    changed = msgspec.structs.replace(
        entry,
        former=[node for node in entry.former if node not in back],
        leaving=[*entry.leaving, *(node for node in back if node not in (*entry.leaving, *entry.replicas))],
        reason=reason,
    )
    return change_partition(seen.version, changed)


def finish_queues(view: ClusterView) -> list[Change]:
    """Removes the entries of queues whose partitions are all marked: their names are free again."""
    return [
        Change(queue_key(name), seen.version, None, f"the queue {name} is deleted, and its name is free")
        for name, seen in view.queues.items()
        if seen.entry.state == "deleting" and _is_known(view, seen.entry)
    ]


def clear_abandoned(view: ClusterView, now_ms: int, settings: ManagerSettings) -> list[Change]:
    """Marks the partitions of queues whose creators died before they were complete."""
    left: dict[int, list[Seen[PartitionEntry]]] = {}
    for seen in view.partitions.values():
        if not seen.entry.retired and not seen.entry.deleted and view.queue_of(seen.entry) is None:
            left.setdefault(seen.entry.queue_id, []).append(seen)
    changes: list[Change] = []
    for queue_id, partitions in left.items():
        entry = partitions[0].entry
        key = queue_key(entry.queue)
        ages = [now_ms - seen.entry.made_ms for seen in partitions]
        if min(ages) < settings.abandoned_ms or max(ages) >= settings.never_abandoned_ms:
            continue
        if key in view.unreadable or any(seen.entry.kept for seen in partitions):
            continue
        if entry.queue in view.queues:
            changes += [
                change_partition(seen.version, marked(seen.entry, abandoned=True)) for seen in partitions
            ]
            continue
        reason = (
            f"the queue {entry.queue} was begun and never made: its {len(partitions)} partitions are deleted"
        )
        queue = QueueEntry(
            name=entry.queue,
            queue_id=queue_id,
            settings=entry.settings,
            created_ms=now_ms,
            partitions=sorted(seen.entry.partition for seen in partitions),
            state="deleting",
            abandoned=True,
        )
        changes.append(Change(key, _ABSENT, queue, reason))
    return changes


def _give_up(seen: Seen[PartitionEntry], reason: str) -> Change:
    return change_partition(seen.version, given_up(seen.entry, reason))


def _is_known(view: ClusterView, queue: QueueEntry) -> bool:
    partitions = [view.partitions.get(partition) for partition in queue.partitions]
    return all(
        seen is None or seen.entry.deleted or seen.entry.retired or (queue.abandoned and seen.entry.kept)
        for seen in partitions
    )


def finish_removals(view: ClusterView) -> list[Change]:
    """Nodes that were to be removed, are gone and are named nowhere."""
    removed = [name for name in view.drains if view.members.removed(name)]
    if not removed:
        return []
    named = {
        node
        for seen in view.partitions.values()
        for node in (*seen.entry.replicas, *seen.entry.leaving, *seen.entry.in_sync)
    }
    return [
        Change(
            drain_key(name), view.drains[name].version, None, f"{name} is removed: nothing names it any more"
        )
        for name in removed
        if name not in named
    ]
