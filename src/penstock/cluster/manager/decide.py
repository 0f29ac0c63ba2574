"""The next changes of the cluster's layout, each with its reason, given the contents of the store.

The manager keeps no plans. Everything follows from the present layout, so a manager may die after any change and the next
one continues. Each change is on condition that its entry is still the one that was read, so two managers at once do no
harm. Every partition gets at most one change at a time: first a primary, then missing replicas, then a better
distribution.
"""

from __future__ import annotations

from itertools import islice

import msgspec

from penstock.cluster.layout.changes import Change, change_partition
from penstock.cluster.layout.entries import PartitionEntry
from penstock.cluster.layout.partition_settings import carried
from penstock.cluster.layout.serving import is_led
from penstock.cluster.layout.view import ClusterView, Seen
from penstock.cluster.manager.failover import depose_unfit, elect, leaderless, spent_orders
from penstock.cluster.manager.idle_expiry import expire_idle
from penstock.cluster.manager.placement import Census
from penstock.cluster.manager.primary_moves import see_through, spread_primaries
from penstock.cluster.manager.replica_moves import mend_replicas, spread_replicas
from penstock.cluster.manager.retirement import (
    call_back,
    clear_abandoned,
    finish_queues,
    finish_removals,
    forget_removed,
    retire,
)
from penstock.cluster.manager.settings import ManagerSettings

DEFAULT_SETTINGS = ManagerSettings()


def decide(view: ClusterView, now_ms: int, settings: ManagerSettings = DEFAULT_SETTINGS) -> list[Change]:
    """The changes to make now; none where all is as it should be or only time can tell."""
    census = Census(seen.entry for seen in view.partitions.values())
    lasting = {node.node for node in view.members.places()}
    changes: list[Change] = []
    healthy: list[Seen[PartitionEntry]] = []
    quiet: list[Seen[PartitionEntry]] = []
    under_way = 0
    for partition in sorted(view.partitions):
        seen = view.partitions[partition]
        if _is_healthy(view, seen.entry, lasting):
            if now_ms - seen.since_ms >= settings.settle_ms:
                healthy.append(seen)
            continue
        change = _most_urgent(view, seen, census, now_ms, settings)
        if change is not None:
            changes.append(change)
        elif _is_quiet(view, seen, now_ms, settings):
            quiet.append(seen)
        elif _is_moving(view, seen.entry):
            under_way += 1
    changes += _mend_and_spread(view, healthy, quiet, under_way, census, now_ms, settings)
    changes += clear_abandoned(view, now_ms, settings)
    changes += expire_idle(view)
    return [*changes, *spent_orders(view), *finish_queues(view), *finish_removals(view)]


def unsettled(view: ClusterView) -> bool:
    """Whether something waits that no change of the store may announce, so that it is worth looking again soon."""
    return any(
        leaderless(view, seen.entry)
        or _is_moving(view, seen.entry)
        or seen.entry.retired
        or view.queue_of(seen.entry) is None
        for seen in view.partitions.values()
    )


def _is_healthy(view: ClusterView, entry: PartitionEntry, lasting: set[str]) -> bool:
    """Whether the partition needs nothing: a quick check, because this holds for nearly all partitions."""
    seen_queue = view.queues.get(entry.queue)
    if seen_queue is None:
        return False
    queue, words = seen_queue.entry, view.positions.get(entry.primary or "")
    return (
        entry.serving == entry.epoch
        and len(entry.in_sync) == len(entry.replicas) == entry.settings.replicas
        and entry.hand_over_to is None
        and not entry.leaving
        and not (entry.former and view.members.living.keys() & entry.former)
        and lasting.issuperset(entry.replicas)
        and is_led(entry, view.members.living)
        and (queue.queue_id, queue.state) == (entry.queue_id, "ready")
        and view.shares[entry.queue] == entry.settings
        and (words is None or entry.partition not in words.positions)
    )


def _most_urgent(
    view: ClusterView, seen: Seen[PartitionEntry], census: Census, now_ms: int, settings: ManagerSettings
) -> Change | None:
    entry = seen.entry
    change = call_back(view, seen) or retire(view, seen) or forget_removed(view, seen)
    if change is not None or entry.retired:
        return change
    if leaderless(view, entry):
        return elect(view, seen, census, now_ms, settings)
    change = depose_unfit(view, seen) or _carry_settings(view, seen)
    if change is None and entry.hand_over_to is not None:
        change = see_through(view, seen, now_ms, settings)
    return change


def _carry_settings(view: ClusterView, seen: Seen[PartitionEntry]) -> Change | None:
    """Copies altered settings of a queue to its partitions, unless the partition has those of a newer entry of the queue: this
    manager's copy of the queue may be older, and an acknowledged change must not be undone.
    """
    entry = seen.entry
    if view.queue_of(entry) is None:
        return None
    version = view.queues[entry.queue].version
    if version < entry.settings_version:
        return None
    share = carried(view.shares[entry.queue], entry)
    if share == entry.settings:
        return None
    reason = f"the settings of {entry.queue} were changed"
    changed = msgspec.structs.replace(entry, settings=share, settings_version=version, reason=reason)
    return change_partition(seen.version, changed)


def _is_moving(view: ClusterView, entry: PartitionEntry) -> bool:
    """Whether a move is under way: there is a successor, a replica too many, or one that has to catch up."""
    return (
        entry.hand_over_to is not None
        or len(entry.replicas) > entry.settings.replicas
        or any(node not in entry.in_sync and node in view.members.living for node in entry.replicas)
    )


def _is_quiet(view: ClusterView, seen: Seen[PartitionEntry], now_ms: int, settings: ManagerSettings) -> bool:
    """Whether it is led, serves, and has been as it is for a moment: then it may be moved."""
    entry = seen.entry
    return (
        not entry.retired
        and entry.serving == entry.epoch
        and entry.hand_over_to is None
        and now_ms - seen.since_ms >= settings.settle_ms
        and not leaderless(view, entry)
    )


def _mend_and_spread(
    view: ClusterView,
    healthy: list[Seen[PartitionEntry]],
    quiet: list[Seen[PartitionEntry]],
    under_way: int,
    census: Census,
    now_ms: int,
    settings: ManagerSettings,
) -> list[Change]:
    """Repairs first, so many at once as are allowed; and only where none is needed, moves that spread things better."""
    changes: list[Change] = []
    movable = list(healthy)
    for seen in quiet:
        entry = seen.entry
        if under_way + len(changes) < settings.repairs_at_once or _is_moving(view, entry):
            change = mend_replicas(view, seen, census, now_ms, settings)
            if change is not None:
                changes.append(change)
                continue
        if _is_moving(view, entry):
            under_way += 1
        elif set(entry.in_sync) == set(entry.replicas) and not entry.deleted:
            movable.append(seen)
    room = settings.moves_at_once - under_way
    if not changes and room > 0:
        changes += islice(spread_replicas(view, movable, census, settings), room)
    if not changes and room > 0:
        changes += islice(spread_primaries(view, movable, census, now_ms, settings), room)
    return changes
