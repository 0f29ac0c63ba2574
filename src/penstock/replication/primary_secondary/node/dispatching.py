"""Dispatches messages from other nodes. If the journal has no room for one, it waits, and so does everything that follows it."""

from __future__ import annotations

import logging
from collections import deque
from typing import assert_never

import msgspec

from penstock.model.document import TooOldError
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import MessagesLost
from penstock.queue.decisions.decision import PendingRecord
from penstock.replication.primary_secondary.core.roles import Event
from penstock.replication.primary_secondary.node.follower.follower import Follower
from penstock.replication.primary_secondary.node.follower.follower_state import FollowerState
from penstock.replication.primary_secondary.node.leader.leader import Leader
from penstock.replication.primary_secondary.node.moves.cluster_moves import ClusterMoves
from penstock.replication.primary_secondary.node.peer_stream import PeerStream, weight
from penstock.replication.primary_secondary.node.roles import Roles
from penstock.replication.primary_secondary.node.state import ClusterState
from penstock.wire.frames import Frame
from penstock.wire.peer_messages import (
    Append,
    Arrived,
    AskArrived,
    Batches,
    Confirm,
    Cut,
    Image,
    Lead,
    Lost,
    MovedIn,
    MoveDone,
    MoveIn,
    PeerMessage,
    Refuse,
    Standing,
    decode_peer_message,
)

logger = logging.getLogger("penstock.backend")

FromPrimary = Lead | Append | Cut | Image | Batches


class Dispatch:
    """Dispatches messages from peer nodes."""

    def __init__(
        self,
        state: ClusterState,
        roles: Roles,
        leadership: Leader,
        follower: Follower,
        moves: ClusterMoves,
    ) -> None:
        self._state = state
        self._roles = roles
        self._leadership = leadership
        self._follower = follower
        self.moves = moves
        self._early: dict[int, tuple[str, Lead]] = {}
        """Calls of primaries about partitions that this node does not know yet."""
        self._stalled: dict[str, deque[tuple[PeerMessage, bytes]]] = {}
        """By node: messages that wait for room in the journal."""
        self._held: dict[int, deque[tuple[PeerStream, FromPrimary, bytes]]] = {}
        """By partition: messages that wait until an earlier whole state is installed."""
        self._left_out: set[tuple[str, str]] = set()
        """Kinds of messages of newer nodes that were logged already."""

    @property
    def is_stalled(self) -> bool:
        """Whether an earlier message still waits."""
        return bool(self._stalled or self._held)

    def frame(self, node: str, frame: Frame) -> None:
        """A frame of another node; raises where it is none of this protocol."""
        stream = self._state.streams.get(node)
        if stream is None:
            return
        try:
            message = decode_peer_message(frame.head)
        except TooOldError as error:
            self._leave_out(stream, error, len(frame.body))
            return
        except msgspec.DecodeError as error:
            raise PenstockError(
                ErrorCode.BAD_FRAME, f"node {node} sent an invalid message: {error}"
            ) from None
        stalled = self._stalled.get(node)
        if stalled is not None and isinstance(message, FromPrimary):
            stalled.append((message, bytes(frame.body)))
            return
        try:
            self._handle(stream, message, frame.body)
        except PenstockError:
            self._stalled.setdefault(node, deque()).append((message, bytes(frame.body)))

    def _leave_out(self, stream: PeerStream, error: TooOldError, body_bytes: int) -> None:
        """A newer node sent an unknown message. It gets no confirmation, which is all that it needs to know."""
        if (stream.node, error.message) not in self._left_out:
            self._left_out.add((stream.node, error.message))
            logger.warning(
                "ignored a message from node %(node)s: %(error)s",
                {"node": stream.node, "error": error.message},
            )
        if body_bytes:
            stream.taken_bytes += weight(body_bytes)

    def retry(self) -> None:
        """There may be room in the journal now."""
        if not self.is_stalled:
            return
        for node, stalled in list(self._stalled.items()):
            stream = self._state.streams.get(node)
            while stalled and stream is not None:
                message, body = stalled[0]
                try:
                    self._handle(stream, message, memoryview(body))
                except PenstockError:
                    break
                stalled.popleft()
            if not stalled or stream is None:
                self._stalled.pop(node, None)
        for partition_id in list(self._held):
            self._take_held(partition_id)

    def _take_held(self, partition_id: int) -> None:
        held = self._held[partition_id]
        while held and not self._is_installing(partition_id):
            stream, message, body = held[0]
            try:
                self._take(stream, message, memoryview(body))
            except PenstockError:
                return
            held.popleft()
        if not held:
            del self._held[partition_id]

    def _is_installing(self, partition_id: int) -> bool:
        follower_state = self._follower.partitions.get(partition_id)
        return follower_state is not None and bool(follower_state.installing)

    def lost(self, node: str) -> None:
        """The stream to a node is gone."""
        self._stalled.pop(node, None)
        for partition_id, held in list(self._held.items()):
            left = deque(row for row in held if row[0].node != node)
            if left:
                self._held[partition_id] = left
            else:
                del self._held[partition_id]
        self._early = {partition_id: row for partition_id, row in self._early.items() if row[0] != node}
        self.moves.lost(node)

    def local_is_there(self, partition_id: int) -> None:
        """The node follows a partition now; its primary may have called already."""
        row = self._early.pop(partition_id, None)
        if row is not None and row[0] in self._state.streams:
            self._handle(self._state.streams[row[0]], row[1], memoryview(b""))

    def _handle(self, stream: PeerStream, message: PeerMessage, body: memoryview) -> None:
        node = stream.node
        match message:
            case Lead() | Append() | Cut() | Image() | Batches():
                self._from_primary(stream, message, body)
            case Standing():
                led = self._state.led.get(message.partition)
                if led is not None and led.epoch == message.epoch and led.is_member(node, message.joined):
                    partition = self._state.parts.catalogue.partitions[message.partition]
                    self._leadership.sender.approach(led, partition, stream, message, self._state.now_ms)
            case Refuse():
                led = self._state.led.get(message.partition)
                if led is not None and message.epoch > led.epoch:
                    why = f"{node} knows epoch {message.epoch}"
                    self._roles.happened(message.partition, Event.SUPERSEDED, why)
            case Confirm():
                stream.taken(message.taken_bytes)
                self._leadership.confirmed(node, message.rows)
            case Lost():
                led = self._state.led.get(message.partition)
                if led is not None and led.epoch == message.epoch:
                    partition = self._state.parts.catalogue.partitions[message.partition]
                    more = message.messages - led.lost.get(message.cut_epoch, 0)
                    if more > 0:
                        record = MessagesLost(more, self._state.now_ms)
                        self._state.parts.write(partition, [PendingRecord(record)])
                        led.lost[message.cut_epoch] = message.messages
            case MoveIn():
                self.moves.arrivals.move_in(node, message, body)
            case MovedIn():
                self.moves.moved_in(message)
            case MoveDone():
                self.moves.arrivals.move_done(message)
            case AskArrived():
                self.moves.arrivals.asked(message)
            case Arrived():
                self.moves.arrived(message)
            case _ as unreachable:
                assert_never(unreachable)

    def _from_primary(self, stream: PeerStream, message: FromPrimary, body: memoryview) -> None:
        partition_id = message.partition
        if partition_id in self._held or self._is_installing(partition_id):
            self._held.setdefault(partition_id, deque()).append((stream, message, bytes(body)))
            return
        self._take(stream, message, body)

    def _take(self, stream: PeerStream, message: FromPrimary, body: memoryview) -> None:
        partition_id = message.partition
        if isinstance(message, Lead) and self._is_of_another_queue(message):
            logger.error(
                "node %(node)s leads partition %(partition)d as a partition of %(queue)r, but the data "
                "on this node belongs to another queue: this node does not follow it",
                {"node": stream.node, "partition": partition_id, "queue": message.name},
            )
            return
        led = self._state.led.get(partition_id)
        if led is not None and message.epoch > led.epoch:
            why = f"{stream.node} leads epoch {message.epoch}"
            self._roles.happened(partition_id, Event.SUPERSEDED, why)
        elif led is not None:
            stream.send(Refuse(partition_id, led.epoch))
        follower_state = self._follower.partitions.get(partition_id)
        if partition_id not in self._state.led and follower_state is not None:
            self._follow(follower_state, stream, message, body)
            return
        if isinstance(message, Lead):
            early = self._early.get(partition_id)
            if led is None and (early is None or early[1].epoch <= message.epoch):
                self._early[partition_id] = (stream.node, message)
        elif not isinstance(message, Cut):
            stream.taken_bytes += weight(len(body))

    def _is_of_another_queue(self, message: Lead) -> bool:
        partition = self._state.parts.catalogue.partitions.get(message.partition)
        return partition is not None and bool(message.name) and message.name != partition.name

    def _follow(
        self,
        follower_state: FollowerState,
        stream: PeerStream,
        message: FromPrimary,
        body: memoryview,
    ) -> None:
        match message:
            case Append():
                self._follower.append(follower_state, stream, message, body)
            case Lead():
                self._follower.lead(follower_state, stream, message)
            case Cut():
                self._follower.cut(follower_state, stream, message)
            case Image():
                self._follower.take_image(follower_state, stream, message, body)
            case Batches():
                self._follower.take_batches(follower_state, stream, message, body)
