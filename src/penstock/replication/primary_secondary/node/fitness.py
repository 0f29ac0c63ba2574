"""Decides whether this node's data of a partition is fit to lead, reports its length, and describes it for operators."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.backend.node.parts import NodeParts
from penstock.backend.node.whole_state import is_missing_batches
from penstock.cluster.layout.entries import PartitionEntry, Position
from penstock.replication.primary_secondary.node.follower.follower import Follower, has_only_former_life
from penstock.replication.primary_secondary.node.layout_view import local_name
from penstock.replication.primary_secondary.node.state import ClusterState
from penstock.wire.messages import ReplicaStatus


def is_fit(parts: NodeParts, follower: Follower, entry: PartitionEntry, *, is_elected: bool = False) -> bool:
    """Whether what this node has could be led; `is_elected`: it is the primary of the entry."""
    partition_id = entry.partition
    partition = parts.catalogue.partitions.get(partition_id)
    if partition is not None and partition.name != local_name(entry.queue, entry.ordinal):
        return False  # it is of another queue
    if partition_id in parts.catalogue.damage:
        return False
    if partition is None or not partition.index:
        # If nothing was ever stored, or an operator gave up all data for this node, nothing is missing.
        is_given_up = is_elected and entry.unclean == entry.epoch
        return (entry.serving == 0 or is_given_up) and not has_only_former_life(parts, partition_id)
    follower_state = follower.partitions.get(partition_id)
    return not (
        is_missing_batches(partition)
        or (follower_state is not None and (follower_state.needs_whole or follower_state.is_restoring))
    )


def has_lost_everything(parts: NodeParts, node: str, entry: PartitionEntry) -> bool:
    """Whether a node has no data of a partition although by the layout it is in sync: its disk was replaced."""
    partition = parts.catalogue.partitions.get(entry.partition)
    had_everything = node in entry.in_sync or node in entry.in_sync_before
    return entry.serving > 0 and had_everything and (partition is None or not partition.index)


def positions(state: ClusterState, follower: Follower, asked: Iterable[int]) -> dict[int, Position]:
    """How far the logs of these partitions go, and of those that this node should lead and cannot."""
    found: dict[int, Position] = {}
    unfit = [
        known.entry.partition
        for known in state.layout
        if known.entry.primary == state.node
        and known.entry.partition not in state.led
        and not is_fit(state.parts, follower, known.entry)
    ]
    for partition_id in {*asked, *unfit}:
        known = state.layout.get(partition_id)
        if known is None:
            continue
        partition = state.parts.catalogue.partitions.get(partition_id)
        last = partition.index if partition is not None else 0
        log_epoch = partition.epochs.at(last) if partition is not None else 0
        found[partition_id] = Position(
            known.entry.epoch, log_epoch, last, is_fit(state.parts, follower, known.entry)
        )
    return found


def describe(state: ClusterState, follower: Follower, partition_id: int) -> ReplicaStatus | None:
    """The node's part in a partition, for people."""
    known = state.layout.get(partition_id)
    partition = state.parts.catalogue.partitions.get(partition_id)
    if known is None or partition is None:
        return None
    led, follower_state = state.led.get(partition_id), follower.partitions.get(partition_id)
    if led is not None:
        behind = {
            node: partition.index - follower.confirmed for node, follower in led.primary.followers.items()
        }
        in_sync = sorted(led.primary.in_sync)
        return ReplicaStatus("primary", led.epoch, partition.index, led.primary.committed, in_sync, behind)
    epoch, committed = (
        (follower_state.epoch, follower_state.committed) if follower_state is not None else (0, 0)
    )
    return ReplicaStatus("secondary", epoch, partition.index, committed, [], {})
