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
from penstock.replication.primary_secondary.node.follower.follower_state import FollowerState
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
        self.partitions: dict[int, FollowerState] = {}
        self._unflushed: deque[tuple[int, str, int, int, int, int]] = deque()
        """(journal position, node, partition, epoch, index, bytes taken) of what waits for the disk."""
        self.cutter = Cutter(parts, self)
        self.installer = Installer(parts)

    def follow(self, partition_id: int, epoch: int) -> FollowerState:
        """Follows the primary of this epoch, once it has called."""
        follower_state = self.partitions.get(partition_id)
        if follower_state is None:
            follower_state = self.partitions[partition_id] = FollowerState(partition_id)
            follower_state.needs_whole = has_only_former_life(self._parts, partition_id)
        follower_state.known_epoch = max(follower_state.known_epoch, epoch)
        if follower_state.epoch < epoch:
            follower_state.leader = None
            follower_state.forget_image()
        return follower_state

    def unfollow(self, partition_id: int) -> None:
        """This node leads the partition, or has it no more."""
        follower_state = self.partitions.pop(partition_id, None)
        if follower_state is not None:
            follower_state.forget_image()

    def lost(self, node: str) -> None:
        """The stream to a node is gone: it has to ask again where this replica stands."""
        for follower_state in self.partitions.values():
            if follower_state.leader == node:
                follower_state.leader = None
                follower_state.forget_image()

    # -- what a primary says ---------------------------------------------------------------------------------

    def lead(self, follower_state: FollowerState, stream: PeerStream, message: Lead) -> None:
        """Somebody says that it leads."""
        if not self._obeys(follower_state, stream, message.epoch):
            return
        follower_state.leader, follower_state.epoch, follower_state.unclean = (
            stream.node,
            message.epoch,
            message.unclean,
        )
        follower_state.forget_image()
        follower_state.too_old = False
        self._stand(follower_state, stream)

    def _obeys(self, follower_state: FollowerState, stream: PeerStream, epoch: int) -> bool:
        if epoch < follower_state.known_epoch:
            stream.send(Refuse(follower_state.partition_id, follower_state.known_epoch))
            return False
        follower_state.known_epoch = epoch
        return True

    def stand(self, follower_state: FollowerState) -> None:
        """Says to its primary where this replica stands, which is another place than before."""
        stream = self._streams.get(follower_state.leader or "")
        if stream is not None:
            self._stand(follower_state, stream)

    def _stand(self, follower_state: FollowerState, stream: PeerStream) -> None:
        parts, partition_id = self._parts, follower_state.partition_id
        partition = parts.catalogue.partitions[partition_id]
        if follower_state.cutting is not None:
            return  # it is said when that is done
        whole = (
            follower_state.needs_whole
            or partition_id in parts.catalogue.damage
            or is_missing_batches(partition)
        )
        epochs, last = ([], 0) if whole else (partition.epochs.pairs(), partition.index)
        follower_state.joined = self._layout.joined(partition_id, self._node)
        stream.send(Standing(partition_id, follower_state.epoch, epochs, last, whole, follower_state.joined))

    def layout_changed(self, follower_state: FollowerState) -> None:
        """The primary takes no word from a replica of another membership of this node than it knows: it is told of this one."""
        if follower_state.joined != self._layout.joined(follower_state.partition_id, self._node):
            self.stand(follower_state)

    def _follows(self, follower_state: FollowerState, stream: PeerStream, epoch: int) -> bool:
        """Whether what came is from the primary that it follows."""
        return (
            self._obeys(follower_state, stream, epoch)
            and (follower_state.leader, follower_state.epoch) == (stream.node, epoch)
            and follower_state.cutting is None
        )

    def append(
        self, follower_state: FollowerState, stream: PeerStream, message: Append, body: memoryview
    ) -> None:
        """Records came. Raises `PenstockError` where the journal has no room for them now: they must come again."""
        parts, partition_id = self._parts, follower_state.partition_id
        if not self._follows(follower_state, stream, message.epoch):
            self._note(stream, follower_state, len(body))
            return
        partition = parts.catalogue.partitions[partition_id]
        if (
            follower_state.needs_whole
            or follower_state.is_restoring
            or follower_state.too_old
            or partition_id in parts.catalogue.damage
        ):
            self._note(stream, follower_state, len(body))
            return
        secondary = Secondary(partition.epochs, partition.index, follower_state.known_epoch)
        judgement = secondary.judge(
            message.epoch, message.previous, message.previous_epoch, len(message.sizes)
        )
        match judgement:
            case Refused(epoch):
                stream.send(Refuse(partition_id, epoch))
            case OutOfStep():
                self._stand(follower_state, stream)
            case Ready(first):
                follower_state.committed = message.committed
                try:
                    self._append(partition, message.previous + 1, first, message.sizes, body)
                except TooOldError as error:
                    self._give_up(follower_state, partition.name, error.message)
        self._note(stream, follower_state, len(body))

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

    def _give_up(self, follower_state: FollowerState, name: str, why: str) -> None:
        """Nothing of it is written here, so that this version can read all of its own journal."""
        follower_state.too_old = True
        logger.error(
            "stopped following partition %(partition)d of %(queue)r: %(reason)s",
            {"partition": follower_state.partition_id, "queue": name, "reason": why},
        )

    # -- confirming ------------------------------------------------------------------------------------------

    def _note(self, stream: PeerStream, follower_state: FollowerState, body_bytes: int | None) -> None:
        """What came is confirmed when everything appended so far is on disk; None: its bytes are noted already."""
        partition = self._parts.catalogue.partitions[follower_state.partition_id]
        is_good = (
            follower_state.leader == stream.node
            and follower_state.cutting is None
            and not follower_state.needs_whole
            and not follower_state.too_old
            and follower_state.partition_id not in self._parts.catalogue.damage
            and not follower_state.is_restoring
            and partition.epochs.last == follower_state.epoch
            and not is_missing_batches(partition)
        )
        index = partition.index if is_good else 0
        self._unflushed.append(
            (
                self._parts.store.appended_position,
                stream.node,
                follower_state.partition_id,
                follower_state.epoch,
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
            follower_state = self.partitions.get(partition_id)
            if stream is None:
                continue
            stream.taken_bytes += size
            if (
                index
                and follower_state is not None
                and (follower_state.leader, follower_state.epoch) == (node, epoch)
                and not follower_state.needs_whole
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

    def cut(self, follower_state: FollowerState, stream: PeerStream, message: Cut) -> None:
        """The primary does not have the records after `last`: they were never committed."""
        if self._follows(follower_state, stream, message.epoch):
            self.cutter.cut(follower_state, message.last)

    def tell_cut(
        self, follower_state: FollowerState, before: Partition, after: Partition, messages: int
    ) -> None:
        """Another log took the place of the one that was here. The primary counts what went, in the statistics of the queue."""
        known = self._layout.get(follower_state.partition_id)
        unclean = max(known.entry.unclean if known is not None else 0, follower_state.unclean)
        if follower_state.cuts_to_lead:
            messages = 0  # none of them was ever committed: see `never_committed`
        lost = report_cut(before, after, messages, unclean)
        stream = self._streams.get(follower_state.leader or "")
        if stream is not None and lost:
            stream.send(Lost(follower_state.partition_id, follower_state.epoch, lost, before.epochs.last))

    # -- taking in a whole partition -------------------------------------------------------------------------

    def take_image(
        self, follower_state: FollowerState, stream: PeerStream, message: Image, body: memoryview
    ) -> None:
        """A part of the primary's state; with the last one it is installed."""
        if not self._follows(follower_state, stream, message.epoch):
            self._note(stream, follower_state, len(body))
            return
        if not message.part:
            follower_state.image, follower_state.image_index = [], message.index
        if (message.part, message.index) != (len(follower_state.image), follower_state.image_index):
            self._note(stream, follower_state, len(body))
            return
        follower_state.image.append(bytes(body))
        if message.part + 1 < message.parts:
            self._note(stream, follower_state, len(body))
            return
        received, follower_state.image = follower_state.image, []
        self.installer.begin(Installation(follower_state, message.index, received, stream))
        # The bytes count as taken now: where the installation is given up nothing else would say so.
        self._note(stream, follower_state, len(body))

    def install_some(self, now_ms: int) -> None:
        """Continues with states that are complete in memory, by a bounded step."""
        for outcome in self.installer.step(now_ms):
            follower_state = outcome.installation.follower_state
            match outcome:
                case Installed(installation, before, after):
                    follower_state.needs_whole = False
                    messages = replaced_messages(before, after)
                    if messages:
                        self.tell_cut(follower_state, before, after, messages)
                    self._note(installation.stream, follower_state, None)
                case Unreadable(_, why):
                    name = self._parts.catalogue.partitions[follower_state.partition_id].name
                    self._give_up(follower_state, name, why)
                case _ as unreachable:
                    assert_never(unreachable)

    def take_batches(
        self, follower_state: FollowerState, stream: PeerStream, message: Batches, body: memoryview
    ) -> None:
        """Batches that the state refers to."""
        if not self._follows(follower_state, stream, message.epoch) or follower_state.is_restoring:
            self._note(stream, follower_state, len(body))
            return
        partition = self._parts.catalogue.partitions[follower_state.partition_id]
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
                        follower_state.partition_id, message.index, head, payload
                    )
                    stored.append((sent, position))
                offset = end
        finally:
            place_batches(partition, stored)  # also where the journal had no room for all: those come again
        self._note(stream, follower_state, len(body))


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
