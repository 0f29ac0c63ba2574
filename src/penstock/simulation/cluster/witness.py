"""Sees every node after every turn: who leads what, and what is committed where (I8, I10); and all replicas at the end (I9).

One primary writes in an epoch, so two logs with the same epoch at an index are the same up to it. What a primary has
committed is therefore told by one pair, (index, epoch that wrote it), which every later primary must have too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.backend.replication.replicated_node import ReplicatedNode
from penstock.cluster.layout import PartitionEntry
from penstock.replication.primary_secondary.epochs import EpochHistory
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.partition_state import differences, inconsistencies
from penstock.simulation.schedule import Schedule
from penstock.simulation.violation import Violation


class _Committed:
    """What is known to be committed of one partition."""

    def __init__(self) -> None:
        self.marks: dict[int, int] = {}
        """Epoch that wrote it → the highest index known to be committed."""
        self.newest_epoch = 0
        self.newest = EpochHistory()
        self.newest_index = 0


class Witness:
    """Remembers what it saw; violations are said once."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._leaders: dict[tuple[int, int], tuple[str, int]] = {}
        self._committed: dict[int, _Committed] = {}
        self._seen: dict[tuple[int, int], int] = {}
        """(partition, epoch) → how much of it was committed when last looked."""
        self.violations: list[Violation] = []
        self._said: set[str] = set()

    @property
    def epochs(self) -> int:
        """How many times somebody began to lead."""
        return len(self._leaders)

    def turned(self, machine: ClusterMachine, node: ReplicatedNode) -> None:
        """A node has ended its turn."""
        for queue_id, led in node.replication.state.led.items():
            me = (machine.name, machine.starts)
            leader = self._leaders.setdefault((queue_id, led.epoch), me)
            if leader != me:
                self._violated(
                    "I8", f"epoch {led.epoch} of partition {queue_id} is led by {leader} and by {me}"
                )
            committed = led.primary.committed
            if committed > self._seen.get((queue_id, led.epoch), 0):
                self._seen[queue_id, led.epoch] = committed
                epochs = node._parts.catalogue.partitions[queue_id].epochs
                self._advanced(machine.name, queue_id, led.epoch, committed, epochs)

    def _advanced(self, name: str, queue_id: int, epoch: int, index: int, epochs: EpochHistory) -> None:
        known = self._committed.setdefault(queue_id, _Committed())
        if epoch >= known.newest_epoch:
            if epoch > known.newest_epoch:
                for writer, marked in known.marks.items():
                    if index < marked or epochs.at(marked) != writer:
                        self._violated(
                            "I10",
                            f"partition {queue_id}: {name} leads epoch {epoch} without record {marked} of epoch "
                            f"{writer}, which was committed",
                        )
            known.newest_epoch, known.newest_index = epoch, index
            known.newest = EpochHistory(epochs.pairs())
        elif index > known.newest_index or known.newest.at(index) != epochs.at(index):
            self._violated(
                "I8",
                f"partition {queue_id}: {name} was deposed by epoch {known.newest_epoch} and still committed record "
                f"{index} in epoch {epoch}",
            )
        known.marks[epochs.at(index)] = max(index, known.marks.get(epochs.at(index), 0))

    def _violated(self, checker: str, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self.violations.append(Violation(checker, self._schedule.now_ms, sentence))

    # -- the end ---------------------------------------------------------------------------------------------

    def unlike(
        self, machines: Mapping[str, ClusterMachine], entries: Mapping[int, PartitionEntry]
    ) -> Iterator[str]:
        """Replicas that are not what their primary is."""
        for entry in entries.values():
            primary = machines[entry.primary or ""].replicated
            if primary is None:
                yield f"partition {entry.partition}: its primary {entry.primary} is down"
                continue
            expected = primary._parts.catalogue.partitions[entry.partition]
            for name in entry.replicas:
                node = machines[name].replicated
                found = node._parts.catalogue.partitions.get(entry.partition) if node is not None else None
                if found is None:
                    yield f"partition {entry.partition}: {name} has nothing of it"
                    continue
                for sentence in differences(expected, found):
                    yield f"partition {entry.partition} on {name} (primary {entry.primary}): {sentence}"
                for sentence in inconsistencies(found):
                    yield f"partition {entry.partition} on {name}: {sentence}"
