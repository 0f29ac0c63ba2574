"""The node's part in a cluster: which partitions it leads and follows, by the layout, and what that makes it do.

Driven like the node itself: layout, frames of other nodes, time and flushes come in; frames, jobs and wished changes of
the layout go out. What is led is in `leadership`, what is followed in `following`, what others say in `dispatching`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from penstock.backend.outbox import Need
from penstock.backend.parts import NodeParts
from penstock.backend.replication.dispatching import Dispatch
from penstock.backend.replication.draining import Draining
from penstock.backend.replication.fitness import describe, has_lost_everything
from penstock.backend.replication.following import Follower
from penstock.backend.replication.holding import Holding
from penstock.backend.replication.layout_view import KnownEntry
from penstock.backend.replication.leadership import Leadership
from penstock.backend.replication.lifecycle_sending import LifecycleSending
from penstock.backend.replication.peer_stream import PeerStream
from penstock.backend.replication.proposing import Proposer
from penstock.backend.replication.state import ClusterState
from penstock.cluster.layout import NodeEntry, PartitionEntry
from penstock.cluster.sequence_numbers import understood
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.storage.entry_read import EntryReadJob
from penstock.storage.job import Job
from penstock.wire.messages import ReplicaStatus

log = logging.getLogger("penstock.backend")

_AGAIN_MS = 10
"""What found no room in the journal is tried again so soon."""


class Replication:
    """What one node leads and follows. Owned by the node's thread."""

    def __init__(self, parts: NodeParts, node: str, started_ms: int, now_ms: int) -> None:
        self.state = ClusterState(parts, node, now_ms)
        self.started_ms = started_ms
        """Of this node's entry: partitions that were given to an earlier life of it are not led."""
        self.follower = Follower(parts, self.state.streams, self.state.layout, node)
        self.holding = Holding(parts)
        self.proposer = Proposer(self.state)
        self.leadership = Leadership(self.state, self.follower, self.holding, self.proposer)
        self.dispatch = Dispatch(self.state, self.leadership, self.follower)
        self.lifecycle = LifecycleSending(self.state)
        self.draining = Draining(self.state, self.dispatch.moves)
        self.proposer.ends = self.draining.wanted
        self.leadership.deposed = self._deposed
        self._to_act: dict[int, None] = {}
        """Partitions whose entry could not be acted upon yet."""
        self._prepared_ms = 0
        parts.cluster = self

    def _deposed(self, queue_id: int) -> None:
        self.dispatch.moves.deposed(queue_id)
        self.draining.deposed(queue_id)
        self.lifecycle.deposed(queue_id)

    # -- what handlers ask -----------------------------------------------------------------------------------

    def needs(self, about: int | Sequence[int], *, served_only: bool) -> Sequence[Need]:
        """See `ClusterPart`."""
        return self.leadership.needs(about, served_only=served_only)

    def check_takes_sends(self, queue_id: int) -> None:
        """See `ClusterPart`."""
        self.leadership.check_takes_sends(queue_id)

    def understood(self, queue_id: int, kinds: int) -> bool:
        """See `ClusterPart`."""
        known = self.state.layout.get(queue_id)
        return known is not None and understood(known.entry.replicas, self.state.nodes, kinds)

    def found_idle(self, queue_id: int) -> None:
        """See `ClusterPart`."""
        self.proposer.look_at(queue_id)

    def describe(self, queue_id: int) -> ReplicaStatus | None:
        """See `ClusterPart`."""
        return describe(self.state, self.follower, queue_id)

    def name(self) -> str:
        """See `ClusterPart`."""
        return self.state.node

    def count(self) -> tuple[int, int]:
        """See `ClusterPart`."""
        return len(self.state.led), len(self.follower.partitions)

    def incarnation_of(self, name: str) -> int | None:
        """See `ClusterPart`."""
        entry = self.state.layout.find(name)
        return entry.queue_id if entry is not None else None

    def damaged(self, queue_id: int) -> None:
        """See `ClusterPart`: who leads it leads no more, and gets it whole from whoever leads next."""
        if queue_id in self.state.led:
            self.leadership.stand_down(queue_id, "what this node has of it is damaged")
        followed = self.follower.partitions.get(queue_id)
        if followed is not None and followed.leader is not None and followed.leader in self.state.streams:
            followed.forget_image()
            self.follower.stand(followed)
        self.proposer.look_at(queue_id)

    # -- the layout ------------------------------------------------------------------------------------------

    def apply_nodes(self, nodes: Mapping[str, NodeEntry]) -> None:
        """The nodes that live, by the store."""
        self.state.nodes = dict(nodes)

    def apply_layout(self, changes: Iterable[tuple[PartitionEntry, int]], now_ms: int) -> None:
        """Entries as they are in the store now, with their versions."""
        self.state.now_ms = now_ms
        for entry, version in changes:
            if self.state.layout.put(entry, version):
                self.proposer.settled(entry.partition, version)
                self._to_act[entry.partition] = None
        self._act()
        self.dispatch.moves.layout_changed()

    def partition_gone(self, partition: int, *, unreadable: bool = False) -> None:
        """An entry is no longer in the store, or not readable: nothing is deleted by that, but no node leads it either."""
        self.state.layout.gone(partition, unreadable=unreadable)
        if not unreadable:
            self.dispatch.moves.arrivals.source_gone(partition)
        self.leadership.stand_down(partition, "it is no longer in the layout")
        self.proposer.gone(partition)
        self.dispatch.moves.layout_changed()

    def queue_named(self, name: str, queue_id: int | None) -> None:
        """The queue that clients find under a name is this one; None: there is none."""
        if self.state.layout.name(name, queue_id):
            self.dispatch.moves.layout_changed()

    def new_life(self, started_ms: int, now_ms: int) -> None:
        """The node's lease was lost and made anew: what it led is for somebody to give it again."""
        self.state.now_ms = now_ms
        self.started_ms = started_ms
        for queue_id in list(self.state.led):
            self.leadership.stand_down(queue_id, "the node's lease was lost")

    def _act(self) -> None:
        """Does what entries say that could not be acted upon yet."""
        for partition in list(self._to_act):
            known = self.state.layout.get(partition)
            if known is None:
                del self._to_act[partition]
                continue
            try:
                done = self._act_on(known)
            except PenstockError:  # no room in the journal: again soon
                continue
            if done:
                del self._to_act[partition]

    def _act_on(self, known: KnownEntry) -> bool:
        entry = known.entry
        queue_id = entry.partition
        led = self.state.led.get(queue_id)
        self.proposer.look_now(queue_id)
        if self.holding.is_of_another_queue(entry):
            self.holding.refuse(entry)
            self.leadership.stand_down(queue_id, "its entry is of another queue")
            self.follower.unfollow(queue_id)
            return True
        if (led is not None or self.state.node not in entry.replicas) and self._is_over(entry):
            if led is not None:
                self.leadership.hold_back(led)
            return True
        if self.state.node not in entry.replicas:
            self.leadership.stand_down(queue_id, "this node holds it no more")
            if self.state.node in entry.leaving:
                partition = self.state.parts.catalogue.partitions.get(queue_id)
                if partition is not None and partition.totals.sent and not entry.serving:
                    log.error(
                        "partition %d of %r is not dropped: by the layout it never served, and messages were sent to it",
                        queue_id,
                        entry.queue,
                    )
                    return True
                if partition is not None and not self.lifecycle.may_drop(
                    partition, entry, led is not None, self.state.now_ms
                ):
                    return False
                self.follower.unfollow(queue_id)
                self.holding.drop(queue_id, self.state.now_ms)
            return True
        if led is not None and led.epoch == entry.epoch and entry.primary in (None, self.state.node):
            self.leadership.update(led, known)
            return True
        if led is not None:
            self.leadership.stand_down(queue_id, f"epoch {entry.epoch} has begun, led by {entry.primary}")
        if entry.primary == self.state.node and entry.primary_started_ms == self.started_ms:
            return self.leadership.lead(known)
        partition = self.holding.hold(entry, self.state.now_ms)
        is_new = queue_id not in self.follower.partitions
        followed = self.follower.follow(queue_id, entry.epoch)
        if is_new and has_lost_everything(self.state.parts, self.state.node, entry):
            # A log that grows from its first record looks whole at every length; a state that comes in does not.
            followed.needs_whole = True
        self.follower.layout_changed(followed)
        self.dispatch.local_is_there(partition.queue_id)
        return True

    def _is_over(self, entry: PartitionEntry) -> bool:
        """Whether this node knows a later epoch: the entry is old news, or somebody has put it back. Nothing goes by its word."""
        queue_id = entry.partition
        partition = self.state.parts.catalogue.partitions.get(queue_id)
        followed, led = self.follower.partitions.get(queue_id), self.state.led.get(queue_id)
        known = max(
            partition.epochs.last if partition is not None else 0,
            followed.known_epoch if followed is not None else 0,
            led.epoch if led is not None else 0,
        )
        if entry.epoch >= known:
            return False
        log.warning(
            "partition %d of %r: the layout tells of epoch %d, and this node knows epoch %d: what it has stays as it is",
            queue_id,
            entry.queue,
            entry.epoch,
            known,
        )
        return True

    # -- other nodes -----------------------------------------------------------------------------------------

    def peer_connected(self, node: str, now_ms: int) -> None:
        """There is a stream to another node."""
        self.peer_disconnected(node, now_ms)
        stream = self.state.streams[node] = PeerStream(node)
        self.leadership.connected(stream)

    def peer_disconnected(self, node: str, now_ms: int) -> None:
        """The stream is gone, with whatever was on it."""
        self.state.now_ms = now_ms
        if self.state.streams.pop(node, None) is None:
            return
        self.proposer.last_seen_ms[node] = now_ms
        self.follower.forget_stream(node)
        self.dispatch.lost(node)
        self.leadership.disconnected(node)

    # -- turns, flushes, time --------------------------------------------------------------------------------

    def prepare(self, now_ms: int) -> None:
        """Before a flush is taken: what found no room in the journal before may find some now."""
        self.state.now_ms = self._prepared_ms = now_ms
        if self._to_act:
            self._act()
        self.follower.cutter.step()
        self.follower.installer.step(now_ms)
        self.dispatch.retry()
        woken = self.state.parts.idle.woken
        for queue_id in woken:
            self.proposer.look_now(queue_id)
        woken.clear()

    @property
    def is_waiting(self) -> bool:
        """Whether `prepare` may have something to do though nothing arrives."""
        return (
            bool(self._to_act)
            or self.dispatch.is_stalled
            or self.follower.cutter.has_cuts_to_begin
            or self.follower.installer.is_waiting
        )

    def take_output(self) -> list[tuple[str, list[Buffer]]]:
        """What is to be written to other nodes now."""
        self.leadership.ship()
        self.follower.confirm()
        return [
            (node, output) for node, stream in self.state.streams.items() if (output := stream.take_output())
        ]

    def take_jobs(self) -> list[Job]:
        """Work for the helper thread."""
        jobs = [*self.leadership.sender.jobs, *self.follower.cutter.jobs]
        self.leadership.sender.jobs, self.follower.cutter.jobs = [], []
        return jobs

    def job_done(self, job: Job, now_ms: int) -> None:
        """Takes a job that was read or made for a replica."""
        self.state.now_ms = now_ms
        if self.follower.cutter.job_done(job) or not isinstance(job, EntryReadJob):
            return
        queue_id = job.partition
        led = queue_id in self.state.led
        partition = self.state.parts.catalogue.partitions.get(queue_id)
        self.leadership.sender.job_done(job, partition if led else None, now_ms)
        if job.damaged is not None and led:
            self.state.parts.fence(queue_id, job.damaged)

    def next_wakeup_ms(self) -> int | None:
        """When something is to be looked at though nothing arrives."""
        times = [
            self.proposer.next_ms(),
            self.dispatch.moves.next_ms(),
            self.lifecycle.next_ms(),
            self.leadership.next_ms(),
        ]
        if self.is_waiting:
            times.append(self._prepared_ms + _AGAIN_MS)
        return min((time for time in times if time is not None), default=None)
