"""Cuts a replica's log: records that the primary does not have were never committed, and the state is rebuilt without them."""

from __future__ import annotations

import logging
from functools import partial
from typing import Protocol

from penstock.backend.node.parts import NodeParts
from penstock.backend.node.whole_state import build
from penstock.model.errors import PenstockError
from penstock.queue import living_files
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.follower.follower_state import FollowerState
from penstock.storage.entry_read import RebuildJob
from penstock.storage.job import Job

logger = logging.getLogger("penstock.backend")


class Teller(Protocol):
    """The follower, for the messages to a primary about a cut."""

    partitions: dict[int, FollowerState]

    def stand(self, follower_state: FollowerState) -> None: ...
    def tell_cut(
        self, follower_state: FollowerState, before: Partition, after: Partition, messages: int
    ) -> None: ...


class Cutter:
    """The cuts of a node: each waits for the disk and for a checkpoint, then for the rebuilt state."""

    def __init__(self, parts: NodeParts, teller: Teller) -> None:
        self._parts = parts
        self._teller = teller
        self._to_cut: dict[int, FollowerState] = {}
        """Cuts that wait for the disk or for a checkpoint."""
        self._cuts: dict[Job, FollowerState] = {}
        self.jobs: list[Job] = []

    @property
    def is_cutting(self) -> bool:
        """While this holds no checkpoint may begin."""
        return bool(self._cuts)

    @property
    def has_cuts_to_begin(self) -> bool:
        """Whether a cut waits for the disk or for a checkpoint."""
        return bool(self._to_cut)

    def cut(self, follower_state: FollowerState, last: int, *, to_lead: bool = False) -> None:
        """The records after `last` are to go."""
        follower_state.cutting, follower_state.cuts_to_lead = last, to_lead
        follower_state.cut_after = self._parts.store.appended_position
        self._to_cut[follower_state.partition_id] = follower_state

    def step(self) -> None:
        """Begins cuts that wait for the disk or for a checkpoint."""
        parts, store = self._parts, self._parts.store
        for partition_id, follower_state in list(self._to_cut.items()):
            if parts.checkpointer.is_under_way:
                return
            if store.committed_position < follower_state.cut_after:
                continue
            del self._to_cut[partition_id]
            if (
                follower_state.cutting is None
                or self._teller.partitions.get(partition_id) is not follower_state
            ):
                continue
            partition = parts.catalogue.partitions[follower_state.partition_id]
            assert store.replica_log is not None
            initial = Partition(
                follower_state.partition_id, partition.name, partition.settings, partition.created_ms
            )
            job = store.replica_log.rebuild_job(
                follower_state.partition_id, follower_state.cutting, partial(build, initial)
            )
            if job is None or follower_state.partition_id in parts.catalogue.damage:
                self._failed(follower_state)
            else:
                self._cuts[job] = follower_state
                self.jobs.append(job)

    def job_done(self, job: Job) -> bool:
        """Takes a state that was made anew."""
        follower_state = self._cuts.pop(job, None)
        if follower_state is None:
            return False
        assert isinstance(job, RebuildJob)
        parts, partition_id, last = self._parts, follower_state.partition_id, follower_state.cutting
        partition: Partition | None = job.built
        if self._teller.partitions.get(partition_id) is not follower_state or last is None:
            return True  # it was dropped meanwhile
        if partition is None or partition.index != last or not self._has_files(partition):
            self._failed(follower_state)
        else:
            try:
                parts.logbook.write_cut(partition_id, last)
            except PenstockError:  # no room in the journal: from the start
                self._to_cut[partition_id] = follower_state
                return True
            before = parts.catalogue.partitions[partition_id]
            messages = before.totals.sent - partition.totals.sent
            self._teller.tell_cut(follower_state, before, partition, messages)
            parts.catalogue.partitions[partition_id] = partition
            parts.freeing.add(before)
            self._cut_done(follower_state)
        return True

    def _has_files(self, partition: Partition) -> bool:
        """Segments may be gone whose messages were deleted by the very records that were cut."""
        store = self._parts.store
        return all(store.has_file(partition.partition_id, file) for file in living_files.files_of(partition))

    def _failed(self, follower_state: FollowerState) -> None:
        """The primary has to send everything; where this node is to lead, nobody else has more."""
        if follower_state.cuts_to_lead:
            follower_state.uncut_epoch = follower_state.known_epoch
        else:
            follower_state.needs_whole = True
        self._cut_done(follower_state)

    def _cut_done(self, follower_state: FollowerState) -> None:
        follower_state.cutting = None
        self._teller.stand(follower_state)


def replaced_messages(before: Partition, after: Partition) -> int:
    """How many messages a replica had that are not in the whole state that it gets.

    If a failover may have lost any, numbers were skipped from the first of them on. Skipped numbers that this replica does
    not know show where its log and the other one diverge.
    """
    following, known = before.table.next, set(before.gaps.pairs())
    parted = [start for start, end in after.gaps.pairs() if (start, end) not in known and start < following]
    if parted:
        return before.gaps.messages(parted[0], following)
    return before.gaps.messages(after.table.next, following)


def report_cut(before: Partition, after: Partition, messages: int, unclean: int) -> int:
    """Reports acknowledged messages that are cut, and how many there may be.

    `unclean`: the last epoch of the partition that began with an unclean election. If this replica knows no later epoch,
    the others continued without its records.
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
