"""Applies entries of the layout to this node: lead a partition, follow another node, hold it, or drop it.

The meaning of an entry for this node is decided here; the table in `core/roles.py` lists the steps that follow.
"""

from __future__ import annotations

import logging

from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.errors import PenstockError
from penstock.replication.primary_secondary.core.roles import PRIMARY, TRANSITIONS, Event, Role, Step
from penstock.replication.primary_secondary.node.fitness import has_lost_everything
from penstock.replication.primary_secondary.node.follower.follower import Follower
from penstock.replication.primary_secondary.node.holding import Holding
from penstock.replication.primary_secondary.node.layout_view import KnownEntry
from penstock.replication.primary_secondary.node.leader.leader import Leader
from penstock.replication.primary_secondary.node.leader.lifecycle_sending import LifecycleSending
from penstock.replication.primary_secondary.node.proposing import Proposer
from penstock.replication.primary_secondary.node.state import ClusterState

logger = logging.getLogger("penstock.backend")


class Roles:
    """Gives this node its role in each partition, by the newest entry; steps without room in the journal are repeated later."""

    def __init__(
        self,
        state: ClusterState,
        started_ms: int,
        holding: Holding,
        leadership: Leader,
        follower: Follower,
        proposer: Proposer,
        lifecycle: LifecycleSending,
    ) -> None:
        self._state = state
        self.started_ms = started_ms
        """Of this node's entry: partitions that were given to an earlier life of it are not led."""
        self._holding = holding
        self._leadership = leadership
        self._follower = follower
        self._proposer = proposer
        self._lifecycle = lifecycle
        self._new_follower_partitions: list[int] = []
        self._to_act: dict[int, None] = {}
        """Partitions whose entry was not applied yet."""

    @property
    def is_waiting(self) -> bool:
        """Whether entries were not acted upon yet."""
        return bool(self._to_act)

    def changed(self, partition_id: int) -> None:
        """There is another entry of a partition."""
        self._to_act[partition_id] = None

    def act(self) -> None:
        """Does what entries say that was not done yet."""
        for partition in list(self._to_act):
            known = self._state.layout.get(partition)
            if known is None:
                del self._to_act[partition]
                continue
            try:
                done = self._act_on(known)
            except PenstockError:  # no room in the journal: again soon
                continue
            if done:
                del self._to_act[partition]

    def role(self, partition_id: int) -> Role:
        """The current role of this node in a partition."""
        if partition_id in self._state.led:
            return self._state.role_of_led(partition_id)
        return Role.FOLLOWER if partition_id in self._follower.partitions else Role.ABSENT

    def happened(self, partition_id: int, event: Event, why: str) -> None:
        """Something other than an entry of the layout may have ended the node's part as the primary."""
        if Step.STAND_DOWN in TRANSITIONS[self.role(partition_id), event].steps:
            self._leadership.stand_down(partition_id, why)

    def take_new_follower_partitions(self) -> list[int]:
        """An effect: partitions that this node follows now; their primaries may have called already."""
        partitions, self._new_follower_partitions = self._new_follower_partitions, []
        return partitions

    def _act_on(self, known: KnownEntry) -> bool:
        partition_id = known.entry.partition
        self._proposer.look_now(partition_id)
        role, event = self.role(partition_id), self._event(known.entry)
        return all(self._take(step, known, event, role) for step in TRANSITIONS[role, event].steps)

    def _event(self, entry: PartitionEntry) -> Event:
        """The event that the entry is for this node."""
        node, led = self._state.node, self._state.led.get(entry.partition)
        if self._holding.is_of_another_queue(entry):
            return Event.FOREIGN
        if (led is not None or node not in entry.replicas) and self._is_over(entry):
            return Event.OUTDATED
        if node not in entry.replicas:
            return Event.TO_DROP if node in entry.leaving else Event.LEFT_OUT
        if led is not None and led.epoch == entry.epoch and entry.primary in (None, node):
            return Event.CONFIRMED
        if entry.primary == node and entry.primary_started_ms == self.started_ms:
            return Event.ELECTED
        return Event.NAMED

    def _take(self, step: Step, known: KnownEntry, event: Event, role: Role) -> bool:
        """Takes a step; False: it is to be taken again later. Raises where the journal has no room."""
        entry = known.entry
        partition_id = entry.partition
        match step:
            case Step.REFUSE:
                self._holding.refuse(entry)
            case Step.STAND_DOWN:
                self._leadership.stand_down(partition_id, _why(event, entry))
            case Step.HOLD_BACK:
                self._leadership.hold_back(self._state.led[partition_id])
            case Step.UPDATE:
                self._leadership.update(self._state.led[partition_id], known)
            case Step.LEAD:
                return self._leadership.lead(known)
            case Step.FOLLOW:
                self._follow(entry)
            case Step.UNFOLLOW:
                self._follower.unfollow(partition_id)
            case Step.DROP:
                return self._drop(entry, led=role in PRIMARY)
            case _:
                raise ValueError(f"an entry of the layout never makes a node {step}")
        return True

    def _follow(self, entry: PartitionEntry) -> None:
        partition_id = entry.partition
        self._holding.hold(entry, self._state.now_ms)
        is_new = partition_id not in self._follower.partitions
        follower_state = self._follower.follow(partition_id, entry.epoch)
        if is_new and has_lost_everything(self._state.parts, self._state.node, entry):
            # A log that grows from its first record looks whole at every length; a state that comes in does not.
            follower_state.needs_whole = True
        self._follower.layout_changed(follower_state)
        self._new_follower_partitions.append(partition_id)

    def _drop(self, entry: PartitionEntry, *, led: bool) -> bool:
        """Removes what is here; `led`: this node led it until now."""
        partition_id = entry.partition
        partition = self._state.parts.catalogue.partitions.get(partition_id)
        if partition is not None and partition.totals.sent and not entry.serving:
            logger.error(
                "partition %(partition)d of %(queue)r is not dropped: according to the layout it never "
                "served, but messages were sent to it",
                {"partition": partition_id, "queue": entry.queue},
            )
            return True
        if partition is not None and not self._lifecycle.may_drop(partition, entry, led, self._state.now_ms):
            return False
        self._follower.unfollow(partition_id)
        self._holding.drop(partition_id, self._state.now_ms)
        return True

    def _is_over(self, entry: PartitionEntry) -> bool:
        """Whether this node knows a later epoch: then the entry is old, or an operator has restored it, and it is ignored."""
        partition_id = entry.partition
        partition = self._state.parts.catalogue.partitions.get(partition_id)
        follower_state, led = self._follower.partitions.get(partition_id), self._state.led.get(partition_id)
        known = max(
            partition.epochs.last if partition is not None else 0,
            follower_state.known_epoch if follower_state is not None else 0,
            led.epoch if led is not None else 0,
        )
        if entry.epoch >= known:
            return False
        logger.warning(
            "partition %(partition)d of %(queue)r: the layout has epoch %(epoch)d, but this node has "
            "already seen epoch %(known_epoch)d; its data stays unchanged",
            {"partition": partition_id, "queue": entry.queue, "epoch": entry.epoch, "known_epoch": known},
        )
        return True


def _why(event: Event, entry: PartitionEntry) -> str:
    """The reason why a node no longer leads a partition."""
    if event is Event.FOREIGN:
        return "its entry is of another queue"
    if event in (Event.LEFT_OUT, Event.TO_DROP):
        return "this node no longer holds it"
    return f"epoch {entry.epoch} has begun, led by {entry.primary}"
