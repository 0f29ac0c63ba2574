"""After a restart a replica has everything that it confirmed, or it knows that something is missing (I10).

A confirmation counts towards a commit. So a node that comes back with less, and could be elected with it, may lose what
was acknowledged; this check sees it at the restart, however rarely an election follows.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.backend.node.whole_state import is_missing_batches
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.simulation.cluster.lineage import Lineage


class Confirmations:
    """By node and partition, the last record that was confirmed: its index and the newest epoch of the log."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._confirmed: dict[str, dict[int, tuple[int, int]]] = {}
        self.damaged: str | None = None
        """The node whose disk is damaged or replaced in this run: nothing is expected of it."""
        self._appended: dict[str, int] = {}
        """By node: the end of its journal when its partitions were last checked."""

    def watch(self, name: str, node: ReplicatedNode) -> None:
        """A life of a node begins: everything that it confirms is seen from now on."""
        follower, confirmed = node.replication.follower, self._confirmed.setdefault(name, {})
        self._appended.pop(name, None)
        confirm = follower.confirm

        def seen() -> None:
            for stream in node.replication.state.streams.values():
                for partition_id, (_, index) in stream.confirmations.items():
                    partition = node._parts.catalogue.partitions.get(partition_id)
                    if partition is not None and index <= partition.index:
                        epoch = self._lineage.at(partition_id, partition.epochs.last, index)
                        confirmed[partition_id] = (index, epoch)
            confirm()

        follower.confirm = seen  # type: ignore[method-assign]  # for one life of one node

    def turned(self, name: str, node: ReplicatedNode) -> None:
        """Confirmations of what was cut, dropped, or replaced since no longer count.

        Each of these, like every other change of a log, is written to the journal at the same moment.
        """
        position = node._parts.store.appended_position
        if self._appended.get(name) == position:
            return
        self._appended[name] = position
        confirmed, partitions = self._confirmed.get(name, {}), node._parts.catalogue.partitions
        gone: list[int] = []
        for partition_id, (index, epoch) in confirmed.items():
            partition = partitions.get(partition_id)
            if partition is None:
                gone.append(partition_id)
                continue
            last_epoch = partition.epochs.last
            if last_epoch == epoch and index <= partition.index:
                continue  # the usual case: the record is one of the newest epoch, and still there
            if not self._has(partition_id, partition.index, last_epoch, index, epoch):
                gone.append(partition_id)
        for partition_id in gone:
            del confirmed[partition_id]

    def restarted(self, name: str, node: ReplicatedNode) -> Iterator[str]:
        """What a node lacks after its start without knowing it."""
        parts = node._parts
        if name == self.damaged:
            return
        for partition_id, (index, epoch) in self._confirmed.get(name, {}).items():
            partition = parts.catalogue.partitions.get(partition_id)
            if partition is None or self._has(
                partition_id, partition.index, partition.epochs.last, index, epoch
            ):
                continue
            if not partition.index or partition_id in parts.catalogue.damage or is_missing_batches(partition):
                continue  # it says so, and is sent everything
            yield (
                f"partition {partition_id}: {name} had confirmed record {index} of epoch {epoch}, starts with record "
                f"{partition.index} of epoch {partition.epochs.last}, and takes that for everything"
            )

    def _has(self, partition_id: int, last: int, last_epoch: int, index: int, epoch: int) -> bool:
        return index <= last and self._lineage.at(partition_id, last_epoch, index) == epoch
