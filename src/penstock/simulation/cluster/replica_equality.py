"""Whether replicas are equal when all faults have ended: their state, their totals, and every byte (I9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.records import Sent, decode_record
from penstock.queue import living_files
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.partition_state import differences, inconsistencies


def unlike(
    machines: Mapping[str, ClusterMachine], entries: Mapping[int, PartitionEntry], *, has_damage: bool
) -> Iterator[str]:
    """Replicas that are not what their primary is; with damage, bytes that a replica knows to be bad are no lie."""
    for entry in entries.values():
        primary = machines[entry.primary].replicated if entry.primary is not None else None
        if primary is None:
            yield f"partition {entry.partition}: its primary {entry.primary} is down"
            continue
        expected = primary._parts.catalogue.partitions[entry.partition]
        stored = dict(_batches(primary, expected))
        for name in entry.replicas:
            node = machines[name].replicated
            found = node._parts.catalogue.partitions.get(entry.partition) if node is not None else None
            if node is None or found is None:
                yield f"partition {entry.partition}: {name} has nothing of it"
                continue
            where = f"partition {entry.partition} on {name}"
            for sentence in differences(expected, found):
                yield f"{where} (primary {entry.primary}): {sentence}"
            for sentence in inconsistencies(found):
                yield f"{where}: {sentence}"
            for first, data in _batches(node, found):
                if data is None or stored.get(first) is None:
                    if not has_damage:
                        yield f"{where}: the batch from {first} on is damaged, or the primary's is"
                elif data != stored[first]:
                    yield f"{where}: the batch from {first} on is not the primary's (byte for byte)"


def left_over(machines: Mapping[str, ClusterMachine], entries: Mapping[int, PartitionEntry]) -> Iterator[str]:
    """A node has no data that no entry assigns to it: moved elsewhere, or deleted with its queue."""
    for name, machine in machines.items():
        node = machine.replicated
        for partition_id in node._parts.catalogue.partitions if node is not None else ():
            entry = entries.get(partition_id)
            if entry is None or name not in entry.replicas:
                yield f"partition {partition_id}: {name} still has it, and no entry says that it should"


def _batches(node: ReplicatedNode, partition: Partition) -> Iterator[tuple[int, bytes | None]]:
    """(first sequence number, bytes) of every batch of which something lives; None: they cannot be read.

    Read as for a replica, beside the node's own reader: looking must change nothing.
    """
    store = node._parts.store
    assert store.replica_log is not None
    left = living_files.living_positions(partition)
    while left:
        job = store.replica_log.batches_job(partition.partition_id, left)
        job.run()
        store.job_done(job)
        for position, entry in zip(left, job.entries, strict=False):
            sent = decode_record(entry.head)
            if isinstance(sent, Sent):
                yield sent.first, bytes(entry.payload)
            else:  # a misdirected write put another entry of the partition there
                yield position, None
        left = left[len(job.entries) :]
        if job.damaged is not None:
            yield left.pop(0), None
