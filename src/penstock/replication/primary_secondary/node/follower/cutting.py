"""Cutting a replica's log back: what the primary does not have was never committed, and the state is made anew without it."""

from __future__ import annotations

import logging
from functools import partial
from typing import Protocol

from penstock.backend.node.parts import NodeParts
from penstock.backend.node.whole_state import build
from penstock.model.errors import PenstockError
from penstock.queue import living_files
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.follower.follower_state import FollowedPartition
from penstock.storage.entry_read import RebuildJob
from penstock.storage.job import Job

logger = logging.getLogger("penstock.backend")


class Teller(Protocol):
    """Whoever follows, as far as its primary is told of a cut."""

    partitions: dict[int, FollowedPartition]

    def stand(self, followed: FollowedPartition) -> None: ...
    def tell_cut(
        self, followed: FollowedPartition, before: Partition, after: Partition, messages: int
    ) -> None: ...


class Cutter:
    """The cuts of a node: each waits for the disk and for a checkpoint, then for the state to be read back."""

    def __init__(self, parts: NodeParts, teller: Teller) -> None:
        self._parts = parts
        self._teller = teller
        self._to_cut: dict[int, FollowedPartition] = {}
        """Cuts that wait for the disk or for a checkpoint."""
        self._cuts: dict[Job, FollowedPartition] = {}
        self.jobs: list[Job] = []

    @property
    def is_cutting(self) -> bool:
        """While this holds no checkpoint may begin."""
        return bool(self._cuts)

    @property
    def has_cuts_to_begin(self) -> bool:
        """Whether a cut waits for the disk or for a checkpoint."""
        return bool(self._to_cut)

    def cut(self, followed: FollowedPartition, last: int, *, to_lead: bool = False) -> None:
        """The records after `last` are to go."""
        followed.cutting, followed.cuts_to_lead = last, to_lead
        followed.cut_after = self._parts.store.appended_position
        self._to_cut[followed.partition_id] = followed

    def step(self) -> None:
        """Begins cuts that wait for the disk or for a checkpoint."""
        parts, store = self._parts, self._parts.store
        for partition_id, followed in list(self._to_cut.items()):
            if parts.checkpointer.is_under_way:
                return
            if store.committed_position < followed.cut_after:
                continue
            del self._to_cut[partition_id]
            if followed.cutting is None or self._teller.partitions.get(partition_id) is not followed:
                continue
            partition = parts.catalogue.partitions[followed.partition_id]
            assert store.replica_log is not None
            initial = Partition(
                followed.partition_id, partition.name, partition.settings, partition.created_ms
            )
            job = store.replica_log.rebuild_job(
                followed.partition_id, followed.cutting, partial(build, initial)
            )
            if job is None or followed.partition_id in parts.catalogue.damage:
                self._failed(followed)
            else:
                self._cuts[job] = followed
                self.jobs.append(job)

    def job_done(self, job: Job) -> bool:
        """Takes a state that was made anew."""
        followed = self._cuts.pop(job, None)
        if followed is None:
            return False
        assert isinstance(job, RebuildJob)
        parts, partition_id, last = self._parts, followed.partition_id, followed.cutting
        partition: Partition | None = job.built
        if self._teller.partitions.get(partition_id) is not followed or last is None:
            return True  # it was dropped meanwhile
        if partition is None or partition.index != last or not self._has_files(partition):
            self._failed(followed)
        else:
            try:
                parts.logbook.write_cut(partition_id, last)
            except PenstockError:  # no room in the journal: from the start
                self._to_cut[partition_id] = followed
                return True
            before = parts.catalogue.partitions[partition_id]
            messages = before.totals.sent - partition.totals.sent
            self._teller.tell_cut(followed, before, partition, messages)
            parts.catalogue.partitions[partition_id] = partition
            parts.freeing.add(before)
            self._cut_done(followed)
        return True

    def _has_files(self, partition: Partition) -> bool:
        """Segments may be gone whose messages died by the very records that were cut."""
        store = self._parts.store
        return all(store.has_file(partition.partition_id, file) for file in living_files.files_of(partition))

    def _failed(self, followed: FollowedPartition) -> None:
        """The primary has to send everything; where this node is to lead, nobody else has more."""
        if followed.cuts_to_lead:
            followed.uncut_epoch = followed.known_epoch
        else:
            followed.needs_whole = True
        self._cut_done(followed)

    def _cut_done(self, followed: FollowedPartition) -> None:
        followed.cutting = None
        self._teller.stand(followed)


def replaced_messages(before: Partition, after: Partition) -> int:
    """How many messages a replica had that are not in the state that it is sent whole.

    Where a failover may have lost any, numbers were left out from the first of them on. Numbers that were left out and that this
    replica has not heard of say where its log and the other's part.
    """
    following, known = before.table.next, set(before.gaps.pairs())
    parted = [start for start, end in after.gaps.pairs() if (start, end) not in known and start < following]
    if parted:
        return before.gaps.messages(parted[0], following)
    return before.gaps.messages(after.table.next, following)


def report_cut(before: Partition, after: Partition, messages: int, unclean: int) -> int:
    """What was acknowledged and is cut is never hidden. How many messages those may be.

    `unclean`: the last epoch of the partition that began with an unclean election. If this replica heard of no epoch since,
    others went on without what it has.
    """
    if unclean > before.epochs.last:
        why = "an unclean election gave them up, which an operator allowed"
    elif before.settings.replication == "async":
        why = "an earlier primary may have acknowledged them before any other node had them (replication 'async')"
    else:
        why = ""
    if why and messages:
        logger.warning(
            "partition %(partition)d of %(queue)r: a failover lost %(messages)d messages that this "
            "node had: %(reason)s",
            {"partition": before.partition_id, "queue": before.name, "messages": messages, "reason": why},
        )
        return messages
    logger.info(
        "partition %(partition)d of %(queue)r was cut from record %(from_record)d to "
        "%(to_record)d: the records after it were never committed",
        {
            "partition": before.partition_id,
            "queue": before.name,
            "from_record": before.index,
            "to_record": after.index,
        },
    )
    return 0
