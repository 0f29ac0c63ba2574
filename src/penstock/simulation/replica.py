"""A second copy of the node's state, made only from the node's records, to compare with after a crash.

Recovery must give exactly the result of some prefix of the log, and that prefix must contain everything that was committed
before the crash. So the copy replays the surviving records and the two states are compared, value by value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.backend.admin.catalogue import Catalogue
from penstock.backend.node.node import Node
from penstock.model.batch import Batch
from penstock.model.records import (
    CATALOGUE,
    QueueCreated,
    QueueDeleted,
    QueueRemoved,
    Sent,
    decode_record,
)
from penstock.queue.partition import Partition
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.partition_state import differences


class _Logged(NamedTuple):
    boot: int
    record: AppendedRecord


class Replica:
    """The log since the last comparison, and the state before it."""

    def __init__(self) -> None:
        self._catalogue = Catalogue()
        self._log: list[_Logged] = []
        self._boot = 0
        self._committed_position = 0
        self._damaged: set[int] = set()

    def on_append(self, boot: int, record: AppendedRecord) -> None:
        """The node wrote a record."""
        self._log.append(_Logged(boot, record))

    def stopping(self, committed_position: int) -> None:
        """The node goes down; this much of the log was on disk for certain."""
        self._committed_position = committed_position

    def recovered(self, boot: int, node: Node) -> Iterator[str]:
        """The node has started again: the differences from the log."""
        parts = node._parts
        before, last_boot = self._log, self._boot
        old = [entry.record for entry in before if entry.boot == last_boot]
        new = [entry.record for entry in before if entry.boot == boot]
        self._log, self._boot = [], boot
        self._damaged.update(parts.catalogue.damage)
        indexes = {
            partition_id: partition.index for partition_id, partition in parts.catalogue.partitions.items()
        }
        indexes[CATALOGUE] = parts.logbook.catalogue_index
        for record in new:
            indexes[record.partition] -= 1
        cut = 0
        for place, record in enumerate(old, 1):
            if record.partition in self._damaged:
                continue
            if record.number <= indexes.get(record.partition, -1):
                cut = place
            elif record.position < self._committed_position:
                if record.partition in indexes:
                    yield (
                        f"record {record.number} of partition {record.partition} was committed before the stop and "
                        f"is not there after the start: {decode_record(record.head)!r:.200}"
                    )
                cut = place
        for record in old[:cut]:
            if record.partition not in self._damaged and record.number > indexes.get(
                record.partition, record.number
            ):
                yield f"record {record.number} of partition {record.partition} is missing though later ones are there"
        yield from self._apply([*old[:cut], *new])
        yield from self._compare(node)

    def live(self, node: Node) -> Iterator[str]:
        """The node is running: the differences from the log."""
        self._damaged.update(node._parts.catalogue.damage)
        log, self._log = self._log, []
        yield from self._apply([entry.record for entry in log if entry.boot == self._boot])
        yield from self._compare(node)

    def _apply(self, records: list[AppendedRecord]) -> Iterator[str]:
        for appended in records:
            record = decode_record(appended.head)
            if isinstance(record, QueueCreated | QueueDeleted | QueueRemoved):
                self._catalogue.apply(record)
                continue
            partition = self._catalogue.partitions.get(appended.partition)
            if partition is None or appended.partition in self._damaged:
                continue
            batch = Batch(appended.payload) if isinstance(record, Sent) else None
            try:
                partition.apply(record, batch, appended.position)
            except Exception as error:  # the node wrote what its own state does not allow
                self._damaged.add(appended.partition)
                yield f"queue {partition.name!r}: record {record!r:.200} cannot be applied: {error!r}"

    def _compare(self, node: Node) -> Iterator[str]:
        mine, theirs = self._catalogue, node._parts.catalogue
        for name, left, right in (
            ("queues", sorted(mine.partitions), sorted(theirs.partitions)),
            ("names", sorted(mine.names.items()), sorted(theirs.names.items())),
            ("queues being deleted", sorted(mine.deleting), sorted(theirs.deleting)),
        ):
            if left != right:
                yield f"the log gives {name} {left}, the node has {right}"
        for partition_id, partition in sorted(theirs.partitions.items()):
            other: Partition | None = mine.partitions.get(partition_id)
            if other is not None and partition_id not in self._damaged:
                for difference in differences(other, partition):
                    yield f"queue {partition.name!r}: {difference}"
