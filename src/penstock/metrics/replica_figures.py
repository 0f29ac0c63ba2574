"""The metrics of a node's replicas, from the descriptions of its partitions. Without a cluster there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.metrics.exposition import Family, Sample
from penstock.wire.messages import NodeDescription, QueueDescription


def replica_families(node: NodeDescription, queues: Sequence[QueueDescription]) -> Iterator[Family]:
    """Leaders, in-sync sets, and the lag of the others."""
    replicas = [(queue.name, queue.replica) for queue in queues if queue.replica is not None]
    asked = {queue.name: queue.settings.replicas for queue in queues}
    if not replicas and not node.leads and not node.follows:
        return
    yield Family(
        "penstock_node_leads", "gauge", "Partitions whose primary is this node.", [Sample(node.leads)]
    )
    yield Family(
        "penstock_node_follows",
        "gauge",
        "Partitions of which this node has a secondary replica.",
        [Sample(node.follows)],
    )
    yield Family(
        "penstock_replica_primary",
        "gauge",
        "1 if this node is the primary of the partition, 0 if it is a secondary.",
        [Sample(int(replica.role == "primary"), {"queue": name}) for name, replica in replicas],
    )
    yield Family(
        "penstock_replica_epoch",
        "gauge",
        "Epoch of the replica; it rises with every change of primary.",
        [Sample(replica.epoch, {"queue": name}) for name, replica in replicas],
    )
    led = [(name, replica) for name, replica in replicas if replica.role == "primary"]
    yield Family(
        "penstock_replica_in_sync",
        "gauge",
        "Replicas in sync, including the primary; reported by the primary.",
        [Sample(len(replica.in_sync), {"queue": name}) for name, replica in led],
    )
    yield Family(
        "penstock_replica_missing",
        "gauge",
        "Configured replicas that are not in sync or do not exist; reported by the primary.",
        [Sample(max(0, asked[name] - len(replica.in_sync)), {"queue": name}) for name, replica in led],
    )
    yield Family(
        "penstock_replica_behind_records",
        "gauge",
        "Records that another replica has not confirmed; reported by the primary.",
        [
            Sample(records, {"queue": name, "replica": other})
            for name, replica in led
            for other, records in replica.behind.items()
        ],
    )
