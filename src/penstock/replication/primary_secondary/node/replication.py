"""The replication model with a primary and secondaries, on one node: the interface for the node and for the process around
it.

The node calls it like any model (`replication/interface.py`). The process passes on the layout (`apply_layout`,
`apply_nodes`, …), messages of other nodes and renewals of the lease. It writes `take_peer_output` to the other nodes after
every turn, before it waits for a flush, and carries out `take_proposals`. `leader/` has what this node leads, `follower/`
what it follows, `roles` applies the layout, and `dispatching` handles messages of other nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.backend.node.parts import NodeParts
from penstock.backend.upkeep.upkeep_times import earliest
from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, Position
from penstock.cluster.layout.sequence_numbers import understood
from penstock.model.batch import Buffer
from penstock.replication.cluster_interface import LifecycleReport, Proposal
from penstock.replication.interface import Need
from penstock.replication.primary_secondary.core.roles import Event
from penstock.replication.primary_secondary.node.dispatching import Dispatch
from penstock.replication.primary_secondary.node.fitness import describe, positions
from penstock.replication.primary_secondary.node.follower.follower import Follower
from penstock.replication.primary_secondary.node.holding import Holding
from penstock.replication.primary_secondary.node.leader.draining import Draining
from penstock.replication.primary_secondary.node.leader.leader import Leader
from penstock.replication.primary_secondary.node.leader.lifecycle_sending import LifecycleSending
from penstock.replication.primary_secondary.node.moves.cluster_moves import ClusterMoves
from penstock.replication.primary_secondary.node.peer_stream import PeerStream
from penstock.replication.primary_secondary.node.proposing import Proposer
from penstock.replication.primary_secondary.node.roles import Roles
from penstock.replication.primary_secondary.node.state import ClusterState
from penstock.storage.entry_read import EntryReadJob
from penstock.storage.job import Job
from penstock.wire.frames import Frame
from penstock.wire.messages import ReplicaStatus

_AGAIN_MS = 10
"""The delay before work is repeated that found no room in the journal."""


class Replication:
    """What one node leads and follows. Owned by the node's thread."""

    makes_queues = False

    def __init__(self, parts: NodeParts, node: str, started_ms: int) -> None:
        self._parts = parts
        self.state = ClusterState(parts, node)
        self.follower = Follower(parts, self.state.streams, self.state.layout, node)
        self.holding = Holding(parts)
        self.moves = ClusterMoves(self.state)
        self.draining = Draining(self.state, self.moves)
        self.lifecycle = LifecycleSending(self.state)
        self.proposer = Proposer(self.state, self.draining)
        self.leadership = Leader(self.state, self.follower, self.holding, self.proposer, self.moves)
        self.roles = Roles(
            self.state,
            started_ms,
            self.holding,
            self.leadership,
            self.follower,
            self.proposer,
            self.lifecycle,
        )
        self.dispatch = Dispatch(self.state, self.roles, self.leadership, self.follower, self.moves)
        self._looked_ms = parts.now_ms
        """When it was last tried to act on what waits."""

    @property
    def started_ms(self) -> int:
        """When this life of the node began, by its entry."""
        return self.roles.started_ms

    def _act(self) -> None:
        self.roles.act()
        self._carry_out()

    def _happened(self, partition_id: int, event: Event, why: str) -> None:
        self.roles.happened(partition_id, event, why)
        self._carry_out()

    def _carry_out(self) -> None:
        """Carries out the effects of what was done: this comes before anything else is."""
        for partition_id in self.roles.take_new_follower_partitions():
            self.dispatch.local_is_there(partition_id)
        for partition_id in self.leadership.take_deposed():
            self.moves.deposed(partition_id)
            self.draining.deposed(partition_id)
            self.lifecycle.deposed(partition_id)

    # -- what handlers ask -----------------------------------------------------------------------------------

    def needs(self, about: int | Sequence[int], *, served_only: bool) -> Sequence[Need]:
        """See `PartitionRoles`."""
        return self.leadership.needs(about, served_only=served_only)

    def is_committed(self, need: Need) -> bool | None:
        """See `Commitment`."""
        return self.leadership.is_committed(need)

    def has_copies(self, need: Need) -> bool:
        """See `Commitment`."""
        return self.leadership.has_copies(need)

    def check_takes_sends(self, partition_id: int) -> None:
        """See `PartitionRoles`."""
        self.leadership.check_takes_sends(partition_id)

    def understood(self, partition_id: int, kinds: int) -> bool:
        """See `PartitionRoles`."""
        known = self.state.layout.get(partition_id)
        return known is not None and understood(known.entry.replicas, self.state.nodes, kinds)

    def found_idle(self, partition_id: int) -> None:
        """See `PartitionRoles`."""
        self.proposer.look_at(partition_id)

    def may_begin_checkpoint(self) -> bool:
        """See `PartitionRoles`: neither while this node goes back to the last one, nor while it writes a whole state."""
        return not self.follower.cutter.is_cutting and not self.follower.installer.is_writing

    def describe(self, partition_id: int) -> ReplicaStatus | None:
        """See `PartitionRoles`."""
        return describe(self.state, self.follower, partition_id)

    def name(self) -> str:
        """See `PartitionRoles`."""
        return self.state.node

    def count(self) -> tuple[int, int]:
        """See `PartitionRoles`."""
        return len(self.state.led), len(self.follower.partitions)

    def incarnation_of(self, name: str) -> int | None:
        """See `PartitionRoles`."""
        return self.state.layout.queue_of(name)

    def damaged(self, partition_id: int) -> None:
        """See `PartitionRoles`: its primary stops leading it, and gets the whole state from the next primary."""
        self._happened(partition_id, Event.DAMAGED, "what this node has of it is damaged")
        follower_state = self.follower.partitions.get(partition_id)
        if (
            follower_state is not None
            and follower_state.leader is not None
            and follower_state.leader in self.state.streams
        ):
            follower_state.forget_image()
            self.follower.stand(follower_state)
        self.proposer.look_at(partition_id)

    # -- the layout ------------------------------------------------------------------------------------------

    def apply_nodes(self, nodes: Mapping[str, NodeEntry], now_ms: int) -> None:
        """The nodes that live, by the store."""
        self._parts.now_ms = now_ms
        self.state.nodes = dict(nodes)

    def apply_layout(self, changes: Iterable[tuple[PartitionEntry, int]], now_ms: int) -> None:
        """Entries as they are in the store now, with their versions."""
        self._parts.now_ms = now_ms
        for entry, version in changes:
            if self.state.layout.put(entry, version):
                self.proposer.settled(entry.partition, version)
                self.roles.changed(entry.partition)
        self._act()
        self.moves.layout_changed()

    def partition_gone(self, partition: int, now_ms: int, *, unreadable: bool = False) -> None:
        """An entry is no longer in the store, or not readable: nothing is deleted by that, but no node leads it either."""
        self._parts.now_ms = now_ms
        self.state.layout.gone(partition, now_ms, unreadable=unreadable)
        if not unreadable:
            self.moves.arrivals.source_gone(partition)
        self._happened(partition, Event.GONE, "it is no longer in the layout")
        self.proposer.gone(partition)
        self.moves.layout_changed()

    def queue_named(self, name: str, queue_id: int | None, now_ms: int) -> None:
        """The queue that clients find under a name is this one; None: there is none."""
        self._parts.now_ms = now_ms
        if self.state.layout.name(name, queue_id):
            self.moves.layout_changed()

    def new_life(self, started_ms: int, now_ms: int) -> None:
        """The node's lease was lost and created again: the manager assigns again what it led."""
        self._parts.now_ms = now_ms
        self.roles.started_ms = started_ms
        for partition_id in list(self.state.led):
            self._happened(partition_id, Event.LEASE_LOST, "the node's lease was lost")

    def take_proposals(self, now_ms: int) -> list[Proposal]:
        """Changes of the layout that this node requests, each on condition of a version.

        The outcome arrives as a new entry through `apply_layout`; if it is unknown, through `proposal_failed`, and the
        same change is offered again until the entry has another version.
        """
        wanted = self.proposer.take(now_ms)
        for led in self.proposer.take_closing():
            self.leadership.close(led)
        return wanted

    def proposal_failed(self, partition: int, now_ms: int) -> None:
        """The store did not answer."""
        self.proposer.failed(partition, now_ms)

    def positions(self, asked: Iterable[int]) -> dict[int, Position]:
        """How far the logs of these partitions go, and of those that this node should lead and cannot."""
        return positions(self.state, self.follower, asked)

    def lease_renewed(self, until_ms: int, now_ms: int) -> None:
        """Up to then, by this node's clock and counted from before the renewal was asked for, no other node replaces it."""
        self.leadership.lease_until_ms = self.state.layout.followed_until_ms = until_ms
        self.leadership.pass_time(now_ms)

    # -- other nodes -----------------------------------------------------------------------------------------

    def peer_connected(self, node: str, now_ms: int) -> None:
        """There is a stream to another node."""
        self.peer_disconnected(node, now_ms)
        stream = self.state.streams[node] = PeerStream(node)
        self.leadership.connected(stream)

    def peer_disconnected(self, node: str, now_ms: int) -> None:
        """The stream is gone, with everything on it."""
        self._parts.now_ms = now_ms
        if self.state.streams.pop(node, None) is None:
            return
        self.proposer.last_seen_ms[node] = now_ms
        self.follower.forget_stream(node)
        self.dispatch.lost(node)
        self.leadership.disconnected(node)

    def peer_frame(self, node: str, frame: Frame, now_ms: int) -> None:
        """A frame from another node; raises `PenstockError` if it violates the protocol."""
        self._parts.now_ms = now_ms
        self.dispatch.frame(node, frame)
        self._carry_out()

    def take_peer_output(self) -> list[tuple[str, list[Buffer]]]:
        """The bytes to write to other nodes now."""
        self.leadership.ship()
        self.follower.confirm()
        return [
            (node, output) for node, stream in self.state.streams.items() if (output := stream.take_output())
        ]

    # -- the lifecycle log -------------------------------------------------------------------------------------

    def take_lifecycle_reports(self, now_ms: int) -> list[LifecycleReport]:
        """Rows to send to the lifecycle log; `lifecycle_reported` must be called with the outcome of each."""
        return self.lifecycle.take(now_ms)

    def lifecycle_reported(self, report: LifecycleReport, now_ms: int, *, stored: bool) -> None:
        """The log has the rows of a report, or may not have them."""
        self._parts.now_ms = now_ms
        if stored:
            self.lifecycle.stored(report, now_ms)
        else:
            self.lifecycle.failed(report, now_ms)

    # -- turns, flushes, time --------------------------------------------------------------------------------

    def request_arrives(self, now_ms: int) -> None:
        """The lease may have ended by the clock."""
        self.leadership.pass_time(now_ms)

    def move_some(self, partition_id: int, now_ms: int) -> None:
        """One bounded step of the moves out of a partition."""
        self.moves.move_some(partition_id, now_ms)

    def end_turn(self, now_ms: int) -> None:
        """Repeats work that found no room in the journal, and sends appended records to the replicas."""
        self._looked_ms = now_ms
        if self.roles.is_waiting:
            self._act()
        self.follower.cutter.step()
        self.follower.install_some(now_ms)
        self.dispatch.retry()
        self._carry_out()
        woken = self.state.parts.idle.woken
        for partition_id in woken:
            self.proposer.look_now(partition_id)
        woken.clear()
        self.leadership.ship()

    def flushed(self, now_ms: int) -> None:
        """This node's disk has more."""
        self.leadership.flushed(now_ms)

    def has_more(self) -> bool:
        """Whether a whole state is being built."""
        return self.follower.installer.is_building

    def close(self, now_ms: int) -> None:
        """Nothing to do: lifecycles are reported through the cluster."""

    def tick(self, now_ms: int) -> None:
        """Does what is due by now. The results are used in `end_turn`, for which a running flush must end first."""
        self._looked_ms = now_ms
        self.leadership.tick(now_ms)
        self.moves.tick(now_ms)

    @property
    def is_waiting(self) -> bool:
        """Whether `end_turn` may have something to do though nothing arrives."""
        return (
            self.roles.is_waiting
            or self.dispatch.is_stalled
            or self.follower.cutter.has_cuts_to_begin
            or self.follower.installer.is_waiting
        )

    def take_jobs(self) -> list[Job]:
        """Work for the helper thread."""
        jobs = [*self.leadership.sender.jobs, *self.follower.cutter.jobs]
        self.leadership.sender.jobs, self.follower.cutter.jobs = [], []
        return jobs

    def job_done(self, job: Job, now_ms: int) -> None:
        """Takes a job that was read or made for a replica."""
        self._parts.now_ms = now_ms
        if self.follower.cutter.job_done(job) or not isinstance(job, EntryReadJob):
            return
        partition_id = job.partition
        led = partition_id in self.state.led
        partition = self.state.parts.catalogue.partitions.get(partition_id)
        self.leadership.sender.job_done(job, partition if led else None, now_ms)
        if job.damaged is not None and led:
            self.state.parts.fence(partition_id, job.damaged)

    def next_wakeup_ms(self) -> int | None:
        """The time of the next check if nothing arrives before."""
        return earliest(
            self.proposer.next_ms(),
            self.moves.next_ms(),
            self.lifecycle.next_ms(),
            self.leadership.next_ms(),
            self._looked_ms + _AGAIN_MS if self.is_waiting else None,
        )
