"""What a node leads: how an epoch begins, what is committed in it, which answers may leave, and how it ends.

Nothing of an epoch is sent before its beginning is on this node's own disk: so after a crash the node knows that the epoch
was used, and never writes other records under the same number. Nothing is answered before `Primary` says that it is
committed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence

from penstock.backend.upkeep.upkeep_times import earliest
from penstock.cluster.layout.entries import PartitionEntry
from penstock.cluster.layout.sequence_numbers import acts_synchronously, may_give_out
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import EpochBegan, SettingsChanged
from penstock.queue.decisions.decision import PendingRecord
from penstock.replication.interface import Need
from penstock.replication.primary_secondary.core.primary import Primary
from penstock.replication.primary_secondary.core.roles import Event
from penstock.replication.primary_secondary.node.fitness import is_fit
from penstock.replication.primary_secondary.node.follower.follower import Follower
from penstock.replication.primary_secondary.node.holding import Holding
from penstock.replication.primary_secondary.node.layout_view import KnownEntry
from penstock.replication.primary_secondary.node.leader.number_skips import beginning, gives_back
from penstock.replication.primary_secondary.node.leader.read_proofs import ReadProofs
from penstock.replication.primary_secondary.node.leader.recent_entries import RecentEntries
from penstock.replication.primary_secondary.node.leader.sender import LedPartition, Sender
from penstock.replication.primary_secondary.node.leader.service import Service
from penstock.replication.primary_secondary.node.moves.cluster_moves import ClusterMoves
from penstock.replication.primary_secondary.node.peer_stream import PeerStream
from penstock.replication.primary_secondary.node.proposing import Proposer
from penstock.replication.primary_secondary.node.state import ClusterState

logger = logging.getLogger("penstock.backend")


class Leader:
    """The partitions that this node leads."""

    def __init__(
        self,
        state: ClusterState,
        follower: Follower,
        holding: Holding,
        proposer: Proposer,
        moves: ClusterMoves,
    ) -> None:
        self.state = state
        self._moves = moves
        self.follower = follower
        self.holding = holding
        self.proposer = proposer
        self._recent = RecentEntries(state.parts.logbook.note_written())
        self.sender = Sender(state.parts.store, self._recent, state.parts.captures)
        self._service = Service(state)
        self._reads = ReadProofs(state, self.sender)
        self._deposed: list[int] = []
        self.lease_until_ms = 0
        """Until then no other node can be elected in its place; afterwards `async` partitions are not served."""
        self.lease_is_alive = False
        self._unflushed: deque[tuple[int, LedPartition, int]] = deque()
        """(journal position, partition, index) of what waits for this node's disk."""
        self._awaiting: dict[int, None] = {}
        """Partitions whose commits wait for a replica that joins."""

    # -- what is committed -----------------------------------------------------------------------------------

    def needs(self, about: int | Sequence[int], *, served_only: bool) -> Sequence[Need]:
        """See `Commitment`. Epoch 0 has no primary, so an answer that needs it never leaves."""
        found: list[Need] = []
        partitions = self.state.parts.catalogue.partitions
        for partition_id in (about,) if isinstance(about, int) else dict.fromkeys(about):
            led = self.state.led.get(partition_id)
            if led is not None and self.state.serves(partition_id):
                index = partitions[partition_id].index
                since_ms = 0 if served_only else self._reads.known_since(led, index)
                found.append((partition_id, led.epoch, index, since_ms))
            elif not served_only:
                found.append((partition_id, 0, 0, 0))
        return found

    def is_committed(self, need: Need) -> bool | None:
        """Whether it is; None where this node does not lead in that epoch any more."""
        partition_id, epoch, index, since_ms = need
        led = self.state.led.get(partition_id)
        if led is None or led.epoch != epoch or not self._has_lease(led):
            return None
        return led.primary.committed >= index and (not since_ms or led.primary.leads_since(since_ms))

    def has_copies(self, need: Need) -> bool:
        """Whether as many replicas have it as the queue asks for; it is known to be committed."""
        led = self.state.led.get(need[0])
        return led is not None and led.primary.copied >= need[2]

    def check_takes_sends(self, partition_id: int) -> None:
        """See `ClusterPart`."""
        led = self.state.led.get(partition_id)
        if led is None:
            return
        led.check_numbers(self.state.parts.catalogue.partitions[partition_id])
        if not led.primary.takes_sends:
            raise PenstockError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(led.primary.in_sync)} replicas are in sync ({', '.join(sorted(led.primary.in_sync))}), and "
                f"{led.primary.least_in_sync} are needed",
            )

    def _has_lease(self, led: LedPartition) -> bool:
        return led.primary.synchronous or self.state.now_ms < self.lease_until_ms

    def pass_time(self, now_ms: int) -> None:
        """The lease may have ended by the clock, or been renewed."""
        self.state.parts.now_ms = now_ms
        alive = now_ms < self.lease_until_ms
        if alive is not self.lease_is_alive:
            self.lease_is_alive = alive
            for led in list(self.state.led.values()):
                if not led.primary.synchronous:
                    self._advance(led)

    def tick(self, now_ms: int) -> None:
        """Ends waits for replicas that are over."""
        self.pass_time(now_ms)
        for partition_id in list(self._awaiting):
            led = self.state.led.get(partition_id)
            if led is not None:
                led.primary.end_waits(now_ms)
                if led.primary.awaited_until_ms() is not None:
                    continue
                self._advance(led)
            del self._awaiting[partition_id]

    def next_ms(self) -> int | None:
        """When `tick` has something to do."""
        first_ms = self.lease_until_ms if self.lease_is_alive else None
        for partition_id in self._awaiting:
            led = self.state.led.get(partition_id)
            until_ms = led.primary.awaited_until_ms() if led is not None else None
            first_ms = earliest(first_ms, until_ms if until_ms is not None else self.state.now_ms)
        return first_ms

    # -- epochs ----------------------------------------------------------------------------------------------

    def lead(self, known: KnownEntry) -> bool:
        """Begins the epoch, if this node can; False: not yet."""
        entry = known.entry
        state, partition_id = self.state, entry.partition
        follower_state = self.follower.partitions.get(partition_id)
        if follower_state is not None and follower_state.cutting is not None:
            return False
        if follower_state is not None and entry.epoch < follower_state.known_epoch:
            return True  # somebody else leads a later one; the layout will say so
        if follower_state is not None:
            follower_state.forget_image()  # of an epoch that is over: what is here counts, and goes on from where it stands
        if not is_fit(self.state.parts, self.follower, entry, is_elected=True):
            logger.warning(
                "partition %(partition)d: this node cannot be primary: its data is damaged or missing",
                {"partition": partition_id},
            )
            if partition_id in self.state.parts.catalogue.partitions:
                self.follower.follow(partition_id, entry.epoch)
            return True
        partition = self.holding.hold(entry, self.state.now_ms)
        if entry.epoch <= partition.epochs.last:
            return True  # an earlier life of this node used the epoch; the manager gives another
        if gives_back(self.follower, entry, partition):
            return False
        self._recent.forget(partition_id)
        begun, following = partition.index + 1, partition.table.next
        skips, is_dense = beginning(partition, entry, state.nodes, state.now_ms)
        self.state.parts.write(partition, [PendingRecord(EpochBegan(entry.epoch, self.state.now_ms))])
        self.follower.unfollow(partition_id)
        primary = Primary(
            self.state.node,
            last=partition.index,
            replicas=entry.replicas,
            in_sync=entry.in_sync,
            synchronous=acts_synchronously(entry, entry.epoch),
            least_in_sync=entry.settings.least_in_sync,
            now_ms=self.state.now_ms,
        )
        led = self.state.led[partition_id] = LedPartition(
            partition, entry.epoch, primary, begun, self.state.now_ms
        )
        logger.info(
            "partition %(partition)d of %(queue)r: this node is the primary of epoch %(epoch)d",
            {"partition": partition_id, "queue": entry.queue, "epoch": entry.epoch},
        )
        # A replica may have been created with other settings than this one: the settings in the log count for all.
        led.tells_settings = begun == 1
        led.skips = skips
        if is_dense:
            led.dense = (entry.epoch, partition.epochs.first_after(entry.serving) or begun, following)
        self.update(led, known)
        return True

    def _ask_all(self, led: LedPartition) -> None:
        for node in led.primary.followers:
            stream = self.state.streams.get(node)
            if stream is not None and node not in led.cursors:
                self.sender.ask(led, stream, self.state.now_ms)

    def update(self, led: LedPartition, known: KnownEntry) -> None:
        """The entry of a partition that this node leads has changed.

        It raises if the journal has no room, and is called again with the same entry. The entry counts from the first call
        on, once: it does not decide a change of the in-sync set that is proposed after it.
        """
        if known.version > led.version:
            led.version = known.version
            self._take_in(led, known.entry)
        settings = known.entry.settings
        partition = self.state.parts.catalogue.partitions[led.partition_id]
        self._ask_all(led)
        if led.skips is not None:
            self.state.parts.write(partition, [PendingRecord(led.skips)])
            led.skips = None
        if partition.settings != settings or led.tells_settings:
            self.state.parts.write(partition, [PendingRecord(SettingsChanged(settings, self.state.now_ms))])
            led.tells_settings = False
        self._advance(led)

    def _take_in(self, led: LedPartition, entry: PartitionEntry) -> None:
        """Applies the store's decision."""
        primary, settings = led.primary, entry.settings
        unknown = primary.set_replicas(entry.replicas, entry.joined, self.state.now_ms)
        for node in unknown | (led.cursors.keys() - primary.followers.keys()):
            led.cursors.pop(node, None)
        primary.synchronous = acts_synchronously(entry, led.epoch)
        led.numbers_to, led.unclean = may_give_out(entry, led.epoch), entry.unclean
        primary.least_in_sync = settings.least_in_sync
        primary.decided(entry.in_sync)
        led.closes = False

    def _advance(self, led: LedPartition) -> None:
        """More may be committed, or known, than before."""
        partition_id, parts = led.partition_id, self.state.parts
        known = self.state.layout.get(partition_id)
        acts = (
            known is not None
            and known.entry.serving == known.entry.epoch == led.epoch
            and known.entry.hand_over_to is None
            and led.primary.committed >= led.begun
            and self._has_lease(led)
        )
        deleted = known is not None and known.entry.deleted
        closed = led.closes or (known is not None and known.entry.expiry == "closed")
        is_kept = (
            known is not None
            and known.entry.abandoned
            and parts.catalogue.partitions[partition_id].totals.sent
        )
        serves = acts and not deleted and not closed
        if serves:
            self._service.may(partition_id, Event.MAY_SERVE)
        elif acts and deleted and not is_kept:
            self._service.may(partition_id, Event.MAY_DRAIN)
        else:
            self._service.may(partition_id, Event.MAY_NEITHER)
        for step in led.take_everywhere():
            self._moves.carry_out(step)
        parts.outbox.replicated(partition_id, self.state.parts.connections)
        if serves:
            self.proposer.look_at(partition_id)
        else:  # it waits for the word that it serves, or for its successor
            self.proposer.look_now(partition_id)

    def hold_back(self, led: LedPartition) -> None:
        """The layout names an earlier epoch: this one is not served until the layout names it again."""
        self._advance(led)

    def stand_down(self, partition_id: int, why: str) -> None:
        """This node does not lead the partition any more; nothing that it has not committed is ever answered."""
        led = self.state.led.pop(partition_id, None)
        if led is None:
            return
        logger.info(
            "partition %(partition)d: this node is no longer the primary of epoch %(epoch)d: %(reason)s",
            {"partition": partition_id, "epoch": led.epoch, "reason": why},
        )
        led.cursors.clear()  # nothing is sent any more, and no state is made: another one may take its place, or none
        self._service.turn_away(partition_id)
        self.state.drains.discard(partition_id)
        self.state.parts.idle.forget(partition_id)
        self._recent.forget(partition_id)
        self.state.parts.outbox.replicated(partition_id, self.state.parts.connections)
        self._deposed.append(partition_id)
        if partition_id in self.state.parts.catalogue.partitions:
            self.follower.follow(partition_id, led.epoch)

    def take_deposed(self) -> list[int]:
        """An effect: partitions that this node no longer leads. Everything else that is kept about them as primary must be
        dropped.
        """
        deposed, self._deposed = self._deposed, []
        return deposed

    def close(self, led: LedPartition) -> None:
        """The store is asked to close an idle partition: clients that use it from now on are too late."""
        led.closes = True
        self._service.turn_away(led.partition_id)

    # -- replicas --------------------------------------------------------------------------------------------

    def connected(self, stream: PeerStream) -> None:
        """There is a stream to another node: its replicas are asked for their positions."""
        for led in self.state.led.values():
            if stream.node in led.primary.followers:
                self.sender.ask(led, stream, self.state.now_ms)
                self.proposer.look_at(led.partition_id)

    def disconnected(self, node: str) -> None:
        """The confirmations of a node no longer count until it repeats them."""
        for led in list(self.state.led.values()):
            if led.cursors.pop(node, None) is not None:
                led.primary.lost(node)
                self._advance(led)

    def confirmed(self, node: str, rows: Iterable[tuple[int, int, int]]) -> None:
        """A replica says up to where its disk has the logs."""
        for partition_id, epoch, index in rows:
            led = self.state.led.get(partition_id)
            if led is not None and led.epoch == epoch and led.has_stood(node):
                led.primary.confirmed(node, index, self.state.now_ms)
                self.sender.answered(led, self.state.streams[node])
                if node not in led.primary.in_sync and led.primary.awaited_until_ms() is not None:
                    self._awaiting[partition_id] = None
                self._advance(led)

    def ship(self) -> None:
        """Sends written records to the replicas while the disk is still writing them."""
        now_ms = self.state.now_ms
        position = self.state.parts.store.appended_position
        for partition_id in self._recent.take_touched():
            led = self.state.led.get(partition_id)
            if led is None:
                continue
            index = self.state.parts.catalogue.partitions[partition_id].index
            led.primary.appended(index, now_ms)
            self._unflushed.append((position, led, index))
            self._mark_ready(led)
        for partition_id in self._reads.ask():
            self.proposer.look_at(partition_id)
        for stream in self.state.streams.values():
            self._fill(stream)

    def _mark_ready(self, led: LedPartition) -> None:
        for node in led.cursors:
            self.state.streams[node].ready[led.partition_id] = None
        self.proposer.look_at(led.partition_id)

    def _fill(self, stream: PeerStream) -> None:
        is_full = not stream.has_room
        if is_full or not stream.ready:
            return
        ready, stream.ready = stream.ready, {}
        for partition_id in ready:
            led = self.state.led.get(partition_id)
            if led is not None and stream.has_room:
                partition = self.state.parts.catalogue.partitions[partition_id]
                self.sender.fill(led, partition, stream, self.state.now_ms)
            elif led is not None:
                stream.ready[partition_id] = None

    def flushed(self, now_ms: int) -> None:
        """This node's disk has more."""
        self.state.parts.now_ms = now_ms
        position = self.state.parts.store.committed_position
        touched: dict[int, LedPartition] = {}
        while self._unflushed and self._unflushed[0][0] <= position:
            _, led, index = self._unflushed.popleft()
            if self.state.led.get(led.partition_id) is not led:
                continue
            led.primary.flushed(index)
            touched[led.partition_id] = led
            if not led.may_send and index >= led.begun:
                led.may_send = True
                self._mark_ready(led)
        for led in touched.values():
            self._advance(led)
        self.follower.flushed(position)
        for stream in self.state.streams.values():
            self._fill(stream)
