"""The partitions that this node follows: records are appended and applied as they arrive, and confirmed when they are on disk."""

from __future__ import annotations

import logging
from collections import deque
from typing import assert_never

from penstock.backend.node.parts import NodeParts
from penstock.backend.node.whole_state import is_missing_batches, is_wanted, place_batches
from penstock.model.batch import Batch
from penstock.model.document import TooOldError
from penstock.model.records import QueueCreated, QueueDeleted, QueueRemoved, Sent, decode_record
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.core.secondary import OutOfStep, Ready, Refused, Secondary
from penstock.replication.primary_secondary.node.follower.cutting import Cutter, replaced_messages, report_cut
from penstock.replication.primary_secondary.node.follower.follower_state import FollowedPartition
from penstock.replication.primary_secondary.node.follower.installing import (
    Installation,
    Installed,
    Installer,
    Unreadable,
)
from penstock.replication.primary_secondary.node.layout_view import LayoutView
from penstock.replication.primary_secondary.node.peer_stream import PeerStream, weight
from penstock.wire.peer_messages import (
    Append,
    Batches,
    Confirm,
    Cut,
    Image,
    Lead,
    Lost,
    Refuse,
    Sizes,
    Standing,
)

logger = logging.getLogger("penstock.backend")


class Follower:
    """Everything that this node follows."""

    def __init__(
        self, parts: NodeParts, streams: dict[str, PeerStream], layout: LayoutView, node: str
    ) -> None:
        self._parts = parts
        self._node = node
        self._streams = streams
        self._layout = layout
        self.partitions: dict[int, FollowedPartition] = {}
        self._unflushed: deque[tuple[int, str, int, int, int, int]] = deque()
        """(journal position, node, partition, epoch, index, bytes taken) of what waits for the disk."""
        self.cutter = Cutter(parts, self)
        self.installer = Installer(parts)

    def follow(self, partition_id: int, epoch: int) -> FollowedPartition:
        """Follows the primary of this epoch, once it has called."""
        followed = self.partitions.get(partition_id)
        if followed is None:
            followed = self.partitions[partition_id] = FollowedPartition(partition_id)
            followed.needs_whole = has_only_former_life(self._parts, partition_id)
        followed.known_epoch = max(followed.known_epoch, epoch)
        if followed.epoch < epoch:
            followed.leader = None
            followed.forget_image()
        return followed

    def unfollow(self, partition_id: int) -> None:
        """This node leads the partition, or no longer has it."""
        followed = self.partitions.pop(partition_id, None)
        if followed is not None:
            followed.forget_image()

    def lost(self, node: str) -> None:
        """The stream to a node is gone: it must ask again for this replica's position."""
        for followed in self.partitions.values():
            if followed.leader == node:
                followed.leader = None
                followed.forget_image()

    # -- what a primary says ---------------------------------------------------------------------------------

    def lead(self, followed: FollowedPartition, stream: PeerStream, message: Lead) -> None:
        """A node announces that it leads."""
        if not self._obeys(followed, stream, message.epoch):
            return
        followed.leader, followed.epoch, followed.unclean = stream.node, message.epoch, message.unclean
        followed.forget_image()
        followed.too_old = False
        self._stand(followed, stream)

    def _obeys(self, followed: FollowedPartition, stream: PeerStream, epoch: int) -> bool:
        if epoch < followed.known_epoch:
            stream.send(Refuse(followed.partition_id, followed.known_epoch))
            return False
        followed.known_epoch = epoch
        return True

    def stand(self, followed: FollowedPartition) -> None:
        """Reports the position of this replica to its primary, after it changed."""
        stream = self._streams.get(followed.leader or "")
        if stream is not None:
            self._stand(followed, stream)

    def _stand(self, followed: FollowedPartition, stream: PeerStream) -> None:
        parts, partition_id = self._parts, followed.partition_id
        partition = parts.catalogue.partitions[partition_id]
        if followed.cutting is not None:
            return  # it is reported when that is done
        whole = (
            followed.needs_whole or partition_id in parts.catalogue.damage or is_missing_batches(partition)
        )
        epochs, last = ([], 0) if whole else (partition.epochs.pairs(), partition.index)
        followed.joined = self._layout.joined(partition_id, self._node)
        stream.send(Standing(partition_id, followed.epoch, epochs, last, whole, followed.joined))

    def layout_changed(self, followed: FollowedPartition) -> None:
        """Reports the current membership to the primary, which ignores messages of a replica with another membership of this
        node.
        """
        if followed.joined != self._layout.joined(followed.partition_id, self._node):
            self.stand(followed)

    def _follows(self, followed: FollowedPartition, stream: PeerStream, epoch: int) -> bool:
        """Whether a message is from the primary that it follows."""
        return (
            self._obeys(followed, stream, epoch)
            and (followed.leader, followed.epoch) == (stream.node, epoch)
            and followed.cutting is None
        )

    def append(
        self, followed: FollowedPartition, stream: PeerStream, message: Append, body: memoryview
    ) -> None:
        """Appends received records. Raises `PenstockError` if the journal has no room now: they must come again."""
        parts, partition_id = self._parts, followed.partition_id
        if not self._follows(followed, stream, message.epoch):
            self._note(stream, followed, len(body))
            return
        partition = parts.catalogue.partitions[partition_id]
        if (
            followed.needs_whole
            or followed.is_restoring
            or followed.too_old
            or partition_id in parts.catalogue.damage
        ):
            self._note(stream, followed, len(body))
            return
        secondary = Secondary(partition.epochs, partition.index, followed.known_epoch)
        judgement = secondary.judge(
            message.epoch, message.previous, message.previous_epoch, len(message.sizes)
        )
        match judgement:
            case Refused(epoch):
                stream.send(Refuse(partition_id, epoch))
            case OutOfStep():
                self._stand(followed, stream)
            case Ready(first):
                followed.committed = message.committed
                try:
                    self._append(partition, message.previous + 1, first, message.sizes, body)
                except TooOldError as error:
                    self._give_up(followed, partition.name, error.message)
        self._note(stream, followed, len(body))

    def _append(self, partition: Partition, number: int, first: int, sizes: Sizes, body: memoryview) -> None:
        offset = 0
        logbook = self._parts.logbook
        try:
            for head_size, payload_size in sizes:
                middle, end = offset + head_size, offset + head_size + payload_size
                if number >= first:
                    head = bytes(body[offset:middle])
                    record = decode_record(head)
                    if isinstance(record, QueueCreated | QueueDeleted | QueueRemoved):
                        raise TooOldError(f"a record {type(record).__name__} in the log of a partition")
                    # A copy, so that a batch in memory does not keep the whole frame.
                    batch = Batch(bytes(body[middle:end])) if isinstance(record, Sent) else None
                    logbook.copy(partition, record, head, batch)
                number += 1
                offset = end
        finally:
            self._parts.take_leavings(partition)

    def _give_up(self, followed: FollowedPartition, name: str, why: str) -> None:
        """Stops following without writing anything, so that this version can read all of its own journal."""
        followed.too_old = True
        logger.error(
            "stopped following partition %(partition)d of %(queue)r: %(reason)s",
            {"partition": followed.partition_id, "queue": name, "reason": why},
        )

    # -- confirming ------------------------------------------------------------------------------------------

    def _note(self, stream: PeerStream, followed: FollowedPartition, body_bytes: int | None) -> None:
        """Received data is confirmed when everything appended so far is on disk; None: its bytes are noted already."""
        partition = self._parts.catalogue.partitions[followed.partition_id]
        is_good = (
            followed.leader == stream.node
            and followed.cutting is None
            and not followed.needs_whole
            and not followed.too_old
            and followed.partition_id not in self._parts.catalogue.damage
            and not followed.is_restoring
            and partition.epochs.last == followed.epoch
            and not is_missing_batches(partition)
        )
        index = partition.index if is_good else 0
        self._unflushed.append(
            (
                self._parts.store.appended_position,
                stream.node,
                followed.partition_id,
                followed.epoch,
                index,
                weight(body_bytes) if body_bytes is not None else 0,
            )
        )

    def flushed(self, position: int) -> None:
        """This node's journal is on disk up to here."""
        unflushed = self._unflushed
        while unflushed and unflushed[0][0] <= position:
            _, node, partition_id, epoch, index, size = unflushed.popleft()
            stream = self._streams.get(node)
            followed = self.partitions.get(partition_id)
            if stream is None:
                continue
            stream.taken_bytes += size
            if (
                index
                and followed is not None
                and (followed.leader, followed.epoch) == (node, epoch)
                and not followed.needs_whole
                and partition_id not in self._parts.catalogue.damage
            ):
                stream.confirmations[partition_id] = (epoch, index)

    def confirm(self) -> None:
        """Confirms to all nodes what is on disk here."""
        for stream in self._streams.values():
            if stream.taken_bytes or stream.confirmations:
                rows = [(partition_id, *row) for partition_id, row in stream.confirmations.items()]
                stream.send(Confirm(rows, stream.taken_bytes))
                stream.taken_bytes = 0
                stream.confirmations = {}

    def forget_stream(self, node: str) -> None:
        """Data that a node sent before it reconnected is not confirmed."""
        self._unflushed = deque(row for row in self._unflushed if row[1] != node)
        self.lost(node)

    # -- cutting ---------------------------------------------------------------------------------------------

    def cut(self, followed: FollowedPartition, stream: PeerStream, message: Cut) -> None:
        """The primary does not have the records after `last`: they were never committed."""
        if self._follows(followed, stream, message.epoch):
            self.cutter.cut(followed, message.last)

    def tell_cut(
        self, followed: FollowedPartition, before: Partition, after: Partition, messages: int
    ) -> None:
        """Another log took the place of the one that was here. The primary counts what went, in the statistics of the queue."""
        known = self._layout.get(followed.partition_id)
        unclean = max(known.entry.unclean if known is not None else 0, followed.unclean)
        if followed.cuts_to_lead:
            messages = 0  # none of them was ever committed: see `never_committed`
        lost = report_cut(before, after, messages, unclean)
        stream = self._streams.get(followed.leader or "")
        if stream is not None and lost:
            stream.send(Lost(followed.partition_id, followed.epoch, lost, before.epochs.last))

    # -- taking in a whole partition -------------------------------------------------------------------------

    def take_image(
        self, followed: FollowedPartition, stream: PeerStream, message: Image, body: memoryview
    ) -> None:
        """A part of the primary's state; with the last one it is installed."""
        if not self._follows(followed, stream, message.epoch):
            self._note(stream, followed, len(body))
            return
        if not message.part:
            followed.image, followed.image_index = [], message.index
        if (message.part, message.index) != (len(followed.image), followed.image_index):
            self._note(stream, followed, len(body))
            return
        followed.image.append(bytes(body))
        if message.part + 1 < message.parts:
            self._note(stream, followed, len(body))
            return
        received, followed.image = followed.image, []
        self.installer.begin(Installation(followed, message.index, received, stream))
        # The bytes count as taken now: if the installation is abandoned, they would never be confirmed.
        self._note(stream, followed, len(body))

    def install_some(self, now_ms: int) -> None:
        """Continues with states that are complete in memory, by a bounded step."""
        for outcome in self.installer.step(now_ms):
            followed = outcome.installation.followed
            match outcome:
                case Installed(installation, before, after):
                    followed.needs_whole = False
                    messages = replaced_messages(before, after)
                    if messages:
                        self.tell_cut(followed, before, after, messages)
                    self._note(installation.stream, followed, None)
                case Unreadable(_, why):
                    name = self._parts.catalogue.partitions[followed.partition_id].name
                    self._give_up(followed, name, why)
                case _ as unreachable:
                    assert_never(unreachable)

    def take_batches(
        self, followed: FollowedPartition, stream: PeerStream, message: Batches, body: memoryview
    ) -> None:
        """Batches that the state refers to."""
        if not self._follows(followed, stream, message.epoch) or followed.is_restoring:
            self._note(stream, followed, len(body))
            return
        partition = self._parts.catalogue.partitions[followed.partition_id]
        stored: list[tuple[Sent, int]] = []
        offset = 0
        try:
            for head_size, payload_size in message.sizes:
                middle, end = offset + head_size, offset + head_size + payload_size
                head = bytes(body[offset:middle])
                sent = decode_record(head)
                if not isinstance(sent, Sent):
                    raise TooOldError(f"a record {type(sent).__name__} before a batch")
                if is_wanted(partition, sent):  # else it came before, or none of its messages lives
                    payload = bytes(body[middle:end])
                    position = self._parts.logbook.write_batch(
                        followed.partition_id, message.index, head, payload
                    )
                    stored.append((sent, position))
                offset = end
        finally:
            place_batches(partition, stored)  # also where the journal had no room for all: those come again
        self._note(stream, followed, len(body))


def has_only_former_life(parts: NodeParts, partition_id: int) -> bool:
    """Whether there is nothing of a partition except records, in the journal, of an earlier time at which it was held.

    This also holds after a restart, and until a whole state has arrived: the log cannot continue from its first record
    then.
    """
    partition, replica_log = parts.catalogue.partitions.get(partition_id), parts.store.replica_log
    return (
        (partition is None or not partition.index)
        and replica_log is not None
        and replica_log.had(partition_id)
    )
