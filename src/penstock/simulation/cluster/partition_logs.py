"""The records of every partition of a cluster, for checkers that look where messages went."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.entries import PartitionEntry
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.observer import Observer
from penstock.simulation.whereabouts import PartitionLog


def partition_logs(
    metadata: SimulatedMetadata,
    machines: Mapping[str, ClusterMachine],
    observer: Observer,
    there: Collection[int],
) -> Iterator[PartitionLog]:
    """The records of every partition that anything was ever sent to, dropped ones too; `there` are those that are left."""
    last: dict[int, PartitionEntry] = {}
    for change in metadata.log:
        if change.key.startswith(layout.PARTITIONS) and change.value is not None:
            entry = layout.decode_partition(change.value)
            last[entry.partition] = entry
    for number, entry in last.items():
        node = machines[entry.primary].replicated if number in there and entry.primary else None
        held = node._parts.catalogue.partitions.get(number) if node is not None else None
        if held is not None:
            records = observer.log_of(held)
        elif number not in there:
            records = observer.committed_log(number)
        else:
            continue
        yield PartitionLog(
            number,
            entry.queue_id,
            entry.ordinal,
            entry.queue,
            entry.settings,
            records,
            is_there=number in there,
            unclean=entry.unclean > 0,
        )
