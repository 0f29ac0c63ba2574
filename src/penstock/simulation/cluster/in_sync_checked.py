"""Every member written into the in-sync set of a partition has everything that was ever committed (I10).

Only members may lead. So a replica that joins the set with less may lose what was acknowledged, however rarely an election
follows: this check sees it when the store gets the write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.cluster.layout.entries import PARTITIONS, PartitionEntry, decode_partition
from penstock.cluster.membership.store_requests import Put, Request
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.observer import Observer
from penstock.simulation.schedule import Schedule
from penstock.simulation.violation import Violation

NAME = "I10"


class InSyncCheck:
    """Sees every write of a node just before it takes effect."""

    def __init__(
        self,
        metadata: SimulatedMetadata,
        observer: Observer,
        machines: Mapping[str, ClusterMachine],
        schedule: Schedule,
    ) -> None:
        self._metadata = metadata
        self._observer = observer
        self._machines = machines
        self._schedule = schedule
        self.violations: list[Violation] = []
        metadata.arriving.append(self._arrives)

    def _arrives(self, request: Request) -> None:
        if not isinstance(request, Put) or not request.key.startswith(PARTITIONS):
            return
        present = self._metadata.entries.get(request.key)
        if present is None or request.version not in (None, present.version):
            return
        before, after = decode_partition(present.value), decode_partition(request.value)
        if after.settings.replication == "sync" and after.epoch == before.epoch:
            for node in set(after.in_sync) - set(before.in_sync):
                self.violations += [
                    Violation(NAME, self._schedule.now_ms, sentence) for sentence in self._lacks(node, after)
                ]

    def _lacks(self, name: str, entry: PartitionEntry) -> Iterator[str]:
        """What a replica lacks; unknown if it is down, or its disk is damaged."""
        machine = self._machines[name]
        if machine.replicated is None or name == self._observer.confirmations.damaged:
            return
        partition = machine.replicated._parts.catalogue.partitions.get(entry.partition)
        for epoch, index in self._observer.committed(entry.partition, entry.unclean).items():
            has = partition.index if partition is not None else 0
            if (
                partition is None
                or has < index
                or self._observer.lineage.at(entry.partition, partition.epochs.last, index) != epoch
            ):
                yield (
                    f"partition {entry.partition}: {name} counts as in sync with {has} records, without record {index} of "
                    f"epoch {epoch}, which was committed"
                )
