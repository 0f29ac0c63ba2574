"""Sees every node after every turn: what it leads, what is committed and what is acknowledged (I8, I10).

One primary writes in an epoch, so two logs with the same epoch at an index are the same up to it; this is checked too,
record by record (I9). So one pair, (index, epoch that wrote it), identifies what a primary has committed, and every later
primary must have it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from penstock.model.records import CATALOGUE, EpochBegan, Sent, decode_record
from penstock.queue.partition import Partition
from penstock.replication.interface import Need
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.simulation.cluster.lineage import Lineage
from penstock.simulation.cluster.restarts import Confirmations
from penstock.simulation.cluster.seen_commitment import SeenCommitment
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.schedule import Schedule
from penstock.simulation.violation import Violation

LOSS_MS = 4_000
"""A primary that cannot renew its lease serves no longer than that, and no replica that lags for longer can be elected. A
primary counts from its beginning: if one after another fails, each may lose as much.
"""


class _Committed:
    """The known committed part of one partition."""

    def __init__(self) -> None:
        self.marks: dict[int, int] = {}
        """Epoch that wrote it → the highest index known to be committed, by all in sync."""
        self.newest_epoch = 0
        """Of the newest primary that committed something: its epoch is the newest of its log."""
        self.newest_index = 0
        self.newest_began_ms = 0
        """When it first did, in elapsed time."""


class Observer:
    """Remembers what it saw; each violation is reported once."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.lineage = Lineage()
        self.confirmations = Confirmations(self.lineage)
        self._nodes: dict[str, ReplicatedNode] = {}
        self._leaders: dict[tuple[int, int], tuple[str, int]] = {}
        self._committed: dict[int, _Committed] = {}
        self._seen: dict[tuple[int, int], int] = {}
        """(partition, epoch) → how much of it was committed when last looked."""
        self._records: dict[tuple[int, int, int], tuple[AppendedRecord, str]] = {}
        """(partition, index, epoch that wrote it) → (record, who wrote it first)."""
        self._stood: dict[str, tuple[int, int]] = {}
        """By node: its last pause in the middle of a turn, by its own clock and in elapsed time."""
        self.violations: list[Violation] = []
        self._said: set[str] = set()
        self._written: dict[str, dict[tuple[int, int], AppendedRecord]] = {}
        """By node: what it appended in this turn."""
        self.returned: dict[int, list[range]] = {}
        """By partition: records that a primary was elected with and that the one before it did not have (an unclean election)."""
        self.uncut: dict[int, list[range]] = {}
        """By partition: numbers of messages that were never committed, that others were given since, and that a primary could not cut off."""
        self._loose: dict[int, list[tuple[int, int, int]]] = {}
        """By `async` partition: (index, when, by which epoch) of what was acknowledged and no failover has lost."""

    @property
    def epochs(self) -> int:
        """The number of epochs that began."""
        return len(self._leaders)

    @property
    def partitions(self) -> int:
        """The number of partitions that had a primary."""
        return len({partition_id for partition_id, _ in self._leaders})

    # -- what nodes do ---------------------------------------------------------------------------------------

    def started(self, name: str, node: ReplicatedNode) -> None:
        """A life of a node begins: every answer that leaves because something is committed is seen from now on."""
        self._written.pop(name, None)
        self._nodes[name] = node
        for sentence in self.confirmations.restarted(name, node):
            self._violated("I10", sentence)
        self.confirmations.watch(name, node)
        outbox = node._parts.outbox
        outbox.commitment = SeenCommitment(outbox.commitment, partial(self._acknowledged, name, node))

    def stood_still(self, name: str, since_ms: int) -> None:
        """A process is about to pause in the middle of a turn: since when by its own clock."""
        self._stood[name] = (since_ms, self._schedule.elapsed_ms)

    def appended(self, name: str, record: AppendedRecord) -> None:
        """A node appended a record of its own, or a received one."""
        if record.partition != CATALOGUE:
            written = self._written.setdefault(name, {})
            written[record.partition, record.number] = record
            began = decode_record(record.head)
            if isinstance(began, EpochBegan):  # it is not applied yet: the last epoch is the one before
                node = self._nodes[name]
                partition = node._parts.catalogue.partitions[record.partition]
                self.lineage.begin(record.partition, began.epoch, record.number, partition.epochs.last)
                self._look_for_uncut(node, partition, began.epoch)

    def _look_for_uncut(self, node: ReplicatedNode, partition: Partition, epoch: int) -> None:
        """A primary begins an epoch with everything that it has, also with what it should have cut off (ADR 29)."""
        followed = node.replication.follower.partitions.get(partition.partition_id)
        known = node.replication.state.layout.get(partition.partition_id)
        if followed is not None and followed.uncut_epoch == epoch and known is not None:
            given = next(first for dense, _, first in known.entry.dense if dense > partition.epochs.last)
            again = range(given, partition.table.next)
            self.uncut.setdefault(partition.partition_id, []).append(again)

    def turned(self, name: str, life: int, node: ReplicatedNode) -> None:
        """A node has ended its turn."""
        me = (name, life)
        for partition_id, led in node.replication.state.led.items():
            key = (partition_id, led.epoch)
            leader = self._leaders.setdefault(key, me)
            if leader != me:
                self._violated(
                    "I8", f"epoch {led.epoch} of partition {partition_id} is led by {leader} and by {me}"
                )
            committed = led.primary.committed
            if committed <= self._seen.get(key, 0):
                continue
            known = node.replication.state.layout.get(partition_id)
            if known is None or known.entry.serving != led.epoch:
                continue  # it has acknowledged nothing yet, and may be replaced by one in sync before (`in_sync_before`)
            self._seen[key] = committed
            self._advanced(
                name,
                partition_id,
                led.epoch,
                committed,
                synchronous=led.primary.synchronous,
                unclean=known.entry.unclean,
            )
        self.confirmations.turned(name, node)
        written = self._written.pop(name, None)
        if written:
            self._compare(name, node, written)

    def ended(self, name: str, node: ReplicatedNode) -> None:
        """A process ends, perhaps in the middle of a turn: the next one may find what it wrote in that turn on its disk."""
        self._compare(name, node, self._written.pop(name, {}))

    def log_of(self, partition: Partition) -> list[AppendedRecord]:
        """Everything that was ever written to a partition and is part of its log, wherever that was seen."""
        return self._log(partition.partition_id, partition.epochs.last, partition.index)

    def committed_log(self, partition_id: int) -> list[AppendedRecord]:
        """The same of a partition that was deleted: as much of it as was ever committed."""
        known = self._committed.get(partition_id)
        if known is None:
            return []
        return self._log(partition_id, known.newest_epoch, known.newest_index)

    def committed(self, partition_id: int, unclean: int) -> Mapping[int, int]:
        """Epoch → the highest record of it that all in sync are known to have had.

        `unclean`: the newest epoch that began with an unclean election. Until it serves, it is not known what that left.
        """
        known = self._committed.get(partition_id)
        return known.marks if known is not None and unclean <= known.newest_epoch else {}

    def written(self) -> dict[int, set[int]]:
        """By partition: the numbers of all messages that any primary ever wrote, lost ones too."""
        found: dict[int, set[int]] = {}
        for (partition_id, _, _), (written, _) in self._records.items():
            record = decode_record(written.head)
            if isinstance(record, Sent):
                numbers = range(record.first, record.first + record.count)
                found.setdefault(partition_id, set()).update(numbers)
        return found

    def seen(self) -> Iterator[AppendedRecord]:
        """Every record of every log that any replica ever had, lost ones too."""
        return (record for record, _ in self._records.values())

    def _log(self, partition_id: int, last_epoch: int, last: int) -> list[AppendedRecord]:
        keys = (
            (partition_id, index, self.lineage.at(partition_id, last_epoch, index))
            for index in range(1, last + 1)
        )
        return [self._records[key][0] for key in keys]

    def _compare(
        self, name: str, node: ReplicatedNode, written: dict[tuple[int, int], AppendedRecord]
    ) -> None:
        """Every replica has the same record under an index and the epoch that wrote it."""
        partitions = node._parts.catalogue.partitions
        for (partition_id, index), record in written.items():
            partition = partitions.get(partition_id)
            if partition is None or index > partition.index:
                continue  # it was dropped or cut meanwhile
            epoch = self.lineage.at(partition_id, partition.epochs.last, index)
            first, writer = self._records.setdefault((partition_id, index, epoch), (record, name))
            if (first.head, first.payload) != (record.head, record.payload):
                self._violated(
                    "I9",
                    f"partition {partition_id}: record {index} of epoch {epoch} is one on {writer} and another on {name}",
                )

    def _advanced(
        self, name: str, partition_id: int, epoch: int, index: int, *, synchronous: bool, unclean: int
    ) -> None:
        known = self._committed.setdefault(partition_id, _Committed())
        if epoch >= known.newest_epoch:
            if epoch > known.newest_epoch:
                # An operator who lets a replica lead that is not in sync accepts that it may lack any amount.
                bounded = unclean <= known.newest_epoch
                if bounded:
                    self._check_has_all(known, name, partition_id, epoch, index)
                else:
                    self._keep_marks(known, partition_id, epoch, index)
                self._count_lost(known, partition_id, epoch, index, bounded=bounded)
                known.newest_began_ms = self._schedule.elapsed_ms
            known.newest_epoch, known.newest_index = epoch, index
        elif synchronous and not self._has(known, partition_id, epoch, index):
            self._violated(
                "I8",
                f"partition {partition_id}: {name} was deposed by epoch {known.newest_epoch} and still committed record "
                f"{index} in epoch {epoch}",
            )
        # records that a primary committed alone may be lost, also if the queue is `sync` by now
        if synchronous:
            writer = self.lineage.at(partition_id, epoch, index)
            known.marks[writer] = max(index, known.marks.get(writer, 0))

    def _has(self, known: _Committed, partition_id: int, epoch: int, index: int) -> bool:
        """Whether the newest primary has the record that a primary of an older epoch has under an index."""
        at = self.lineage.at
        return index <= known.newest_index and at(partition_id, known.newest_epoch, index) == at(
            partition_id, epoch, index
        )

    def _check_has_all(self, known: _Committed, name: str, partition_id: int, epoch: int, index: int) -> None:
        for writer, marked in known.marks.items():
            if index < marked or self.lineage.at(partition_id, epoch, marked) != writer:
                self._violated(
                    "I10",
                    f"partition {partition_id}: {name} leads epoch {epoch} without record {marked} of epoch "
                    f"{writer}, which was committed",
                )

    def _keep_marks(self, known: _Committed, partition_id: int, epoch: int, index: int) -> None:
        """The committed part that remains after an unclean election."""
        newest = (known.newest_epoch, known.newest_index)
        common = self.lineage.last_common(partition_id, newest, (epoch, index))
        marks = ((writer, min(marked, common)) for writer, marked in known.marks.items())
        known.marks = {
            writer: marked
            for writer, marked in marks
            if self.lineage.at(partition_id, epoch, marked) == writer
        }

    def _count_lost(
        self, known: _Committed, partition_id: int, epoch: int, index: int, *, bounded: bool
    ) -> None:
        """With `async` a new primary need not have everything."""
        newest = (known.newest_epoch, known.newest_index)
        common = self.lineage.last_common(partition_id, newest, (epoch, index))
        back = range(common + 1, self.lineage.first_of(partition_id, epoch))
        if back:
            self.returned.setdefault(partition_id, []).append(back)
        rows = self._loose.get(partition_id, [])
        lost = [(when_ms, by) for acknowledged, when_ms, by in rows if acknowledged > common]
        # The next failover may lose what this one left.
        self._loose[partition_id] = [row for row in rows if row[0] <= common]
        for writer in sorted({by for _, by in lost}) if bounded else ():
            times = [when_ms for when_ms, by in lost if by == writer]
            if times[-1] - times[0] > LOSS_MS:
                self._violated(
                    "I1",
                    f"partition {partition_id} lost what the primary of epoch {writer} acknowledged in "
                    f"{times[-1] - times[0]} ms, though 'async' may lose that of {LOSS_MS} ms",
                )

    def _acknowledged(self, name: str, node: ReplicatedNode, need: Need) -> None:
        """An answer leaves. A deposed primary may only say what its successor has too."""
        partition_id, epoch, index, _ = need
        known = self._committed.get(partition_id)
        led = node.replication.state.led.get(partition_id)
        if led is not None and not led.primary.synchronous:
            acknowledged = self._loose.setdefault(partition_id, [])
            if not acknowledged or acknowledged[-1][0] < index:
                acknowledged.append((index, self._schedule.elapsed_ms, led.epoch))
        if known is None or epoch >= known.newest_epoch:
            return
        since_ms, elapsed_ms = self._stood.get(name, (-1, 0))
        if (
            led is not None
            and not led.primary.synchronous
            and node.replication.state.now_ms <= since_ms
            and elapsed_ms <= known.newest_began_ms
        ):
            return  # it decided that before its pause; this is like a slow answer
        if not self._has(known, partition_id, epoch, index):
            self._violated(
                "I8",
                f"partition {partition_id}: {name} acknowledged record {index} in epoch {epoch}, although epoch "
                f"{known.newest_epoch} is served and does not have it",
            )

    def _violated(self, checker: str, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self.violations.append(Violation(checker, self._schedule.now_ms, sentence))
