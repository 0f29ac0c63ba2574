"""Which nodes hold a partition: replaces missing replicas, spreads replicas over new nodes, removes them from leaving nodes.

Each partition moves one step at a time, and no replica is removed before enough others are in sync. So a manager that dies
between two steps leaves a partition with one replica too many, never one too few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from penstock.cluster.layout.changes import Change, change_partition
from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.cluster.layout.view import ClusterView, Seen
from penstock.cluster.manager.placement import Census, TooFewNodesError, distinct_zones, next_replica
from penstock.cluster.manager.primary_moves import hand_over
from penstock.cluster.manager.retirement import noted_former
from penstock.cluster.manager.settings import ManagerSettings


def mend_replicas(
    view: ClusterView, seen: Seen[PartitionEntry], census: Census, now_ms: int, settings: ManagerSettings
) -> Change | None:
    """One replica more where one is missing, one less where there are too many; None: as it should be, or under way."""
    entry, members = seen.entry, view.members
    wanted = _wanted(view, entry)
    lasting = [node for node in entry.replicas if members.can_hold(node, now_ms, settings.replace_after_ms)]
    enough = len(lasting) >= wanted
    if enough and len(entry.replicas) == wanted:
        return None
    spare = None if enough else _spare(view, entry, lasting, census)
    in_sync = [node for node in lasting if node in entry.in_sync]
    catching_up = [node for node in lasting if node in members.living and node not in entry.in_sync]
    if len(in_sync) >= wanted and len(entry.replicas) > wanted:
        least_needed = _least_needed(view, entry, census, now_ms, settings)
        # A replica that is catching up was added for a reason: no other one is removed before it is in sync.
        if not catching_up or least_needed not in lasting:
            return _take_off(view, seen, least_needed, in_sync, census)
        return None
    if spare is not None:
        return _add(seen, spare, _why_another(view, entry, lasting), census) if not catching_up else None
    drained = sorted(
        (node for node in entry.replicas if node in members.drains), key=lambda node: node == entry.primary
    )
    if not enough and drained:
        # There is no node to take its place: fewer replicas than wanted, but never so few that sends are refused.
        left = [node for node in entry.in_sync if node != drained[0]]
        if len(left) >= entry.settings.least_in_sync:
            return _take_off(view, seen, drained[0], in_sync, census)
    if not enough and entry.primary in members.drains and in_sync:
        return hand_over(view, seen, in_sync, census, f"{entry.primary} is to be emptied")
    return None


def _wanted(view: ClusterView, entry: PartitionEntry) -> int:
    """How many replicas it is to have: as many as its queue says, which may be ahead of what the partition goes by."""
    if view.queue_of(entry) is None:
        return entry.settings.replicas
    return view.shares[entry.queue].replicas


def _spare(view: ClusterView, entry: PartitionEntry, lasting: list[str], census: Census) -> NodeEntry | None:
    living = view.members.living
    beside = [living[node] for node in lasting if node in living]
    places = [node for node in view.members.places() if node.node not in entry.replicas]
    # One that has not yet dropped what it held before must do so first.
    places = [node for node in places if node.node not in (*entry.leaving, *entry.former)]
    try:
        return next_replica(places, entry.partition, beside, census)
    except TooFewNodesError:
        return None


def _why_another(view: ClusterView, entry: PartitionEntry, lasting: list[str]) -> str:
    lost = [node for node in entry.replicas if node not in lasting]
    if not lost:
        return f"{_wanted(view, entry)} replicas are wanted"
    words = "is to be emptied" if lost[0] in view.members.drains else "has been gone for long"
    return f"{lost[0]} {words}"


def _add(seen: Seen[PartitionEntry], node: NodeEntry, why: str, census: Census) -> Change:
    census.move_held(None, node.node)
    entry = seen.entry
    return change_partition(
        seen.version,
        msgspec.structs.replace(
            entry,
            replicas=[*entry.replicas, node.node],
            joined={**entry.joined, node.node: seen.version},
            reason=f"{node.node} gets a replica because {why}",
        ),
    )


def _least_needed(
    view: ClusterView, entry: PartitionEntry, census: Census, now_ms: int, settings: ManagerSettings
) -> str:
    """The replica to remove: first one that must leave, then one out of sync, then one that shares its zone, then one on the
    node with the most.
    """
    members = view.members

    def rank(node: str) -> tuple[bool, bool, int, int, bool, str]:
        others = [other for other in entry.replicas if other != node]
        return (
            not members.can_hold(node, now_ms, settings.replace_after_ms),
            node not in entry.in_sync,
            distinct_zones(others, members.living),
            census.held.get(node, 0),
            node != entry.primary,
            node,
        )

    return max(entry.replicas, key=rank)


def _take_off(
    view: ClusterView, seen: Seen[PartitionEntry], node: str, in_sync: list[str], census: Census
) -> Change | None:
    entry = seen.entry
    leaves = node in view.members.drains
    why = "is to be emptied" if leaves else "is not needed here any more"
    if node == entry.primary:
        return hand_over(view, seen, in_sync, census, f"{node} {why}")
    census.held[node] = census.held.get(node, 0) - 1
    removed = view.members.removed(node)
    return change_partition(
        seen.version,
        msgspec.structs.replace(
            entry,
            replicas=[other for other in entry.replicas if other != node],
            joined={other: version for other, version in entry.joined.items() if other != node},
            in_sync=[other for other in entry.in_sync if other != node],
            leaving=entry.leaving if removed else [*entry.leaving, node],
            former=noted_former(entry, [node] if removed else []),
            reason=f"{node} {why}, and {', '.join(in_sync)} have everything",
        ),
    )


# --- spreading better ---------------------------------------------------------------------------------------


def spread_replicas(
    view: ClusterView,
    movable: list[Seen[PartitionEntry]],
    census: Census,
    settings: ManagerSettings,
) -> Iterator[Change]:
    """Copies of partitions for nodes that hold too few, or lie in a zone that a partition has nothing in.

    Once the new replica is in sync the one least needed is taken off (`mend_replicas`), which is on the node that holds
    the most. Each move makes zones more or the difference between two nodes smaller, so it ends.
    """
    living = view.members.living
    targets = [node for node in view.members.places() if node.load < settings.busy_load]
    zones = {node.zone for node in targets}
    fewest = min((census.held.get(node.node, 0) for node in targets), default=0)
    most = max(census.held.values(), default=0)
    if most - fewest < 2 and len(zones) < 2:
        return
    for seen in movable:
        entry = seen.entry
        used = distinct_zones(entry.replicas, living)
        lacks_a_zone = used < min(len(entry.replicas), len(zones))
        if not lacks_a_zone and max(census.held.get(node, 0) for node in entry.replicas) - fewest < 2:
            continue
        taken = {*entry.replicas, *entry.leaving, *entry.former}
        free = [node for node in targets if node.node not in taken]
        free.sort(key=lambda node: (census.held.get(node.node, 0), node.node))
        if lacks_a_zone:
            here = {living[node].zone for node in entry.replicas if node in living}
            target = next((node for node in free if node.zone not in here), None)
            why = "it has none in that zone"
        else:
            target, why = _lighter(entry, free, used, living, census)
        if target is not None:
            yield _add(seen, target, why, census)


def _lighter(
    entry: PartitionEntry,
    free: list[NodeEntry],
    used: int,
    living: Mapping[str, NodeEntry],
    census: Census,
) -> tuple[NodeEntry | None, str]:
    """A node that holds two replicas fewer than one of the partition's nodes, and can replace it without using fewer zones."""
    heaviest_first = sorted(entry.replicas, key=lambda node: -census.held.get(node, 0))
    for target in free:
        for source in heaviest_first:
            apart = census.held.get(source, 0) - census.held.get(target.node, 0)
            others = [node for node in entry.replicas if node != source]
            if apart >= 2 and distinct_zones([*others, target.node], living) >= used:
                return target, f"{source} holds {apart} partitions more"
    return None, ""
