"""Hands a living primary's partition to another replica in sync, because its node is drained or leads too much.

The manager only names the successor. The primary accepts no more requests, waits until the successor has everything, and
writes the new epoch itself (`elections.handed_over`). So it does not need the manager any more, and nothing is lost, also
with `async`. If a primary does not respond, the manager intervenes if that is safe.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.cluster.layout.changes import Change, change_partition
from penstock.cluster.layout.elections import elected
from penstock.cluster.layout.entries import PartitionEntry
from penstock.cluster.layout.view import ClusterView, Seen
from penstock.cluster.manager.placement import Census
from penstock.cluster.manager.settings import ManagerSettings


def hand_over(
    view: ClusterView, seen: Seen[PartitionEntry], in_sync: list[str], census: Census, why: str
) -> Change | None:
    """Names a successor among those in sync that stay; None where there is none."""
    entry, members = seen.entry, view.members
    able = [
        node
        for node in in_sync
        if node != entry.primary
        and node in members.living
        and not members.living[node].leaving
        and node not in members.drains
    ]
    if not able or entry.primary is None:
        return None
    successor = min(able, key=lambda node: (census.led.get(node, 0), entry.replicas.index(node)))
    census.move_led(entry.primary, successor)
    return change_partition(
        seen.version,
        msgspec.structs.replace(
            entry, hand_over_to=successor, reason=f"{entry.primary} hands over to {successor} because {why}"
        ),
    )


def see_through(
    view: ClusterView, seen: Seen[PartitionEntry], now_ms: int, settings: ManagerSettings
) -> Change | None:
    """The next change of a hand-over in progress; None: it needs more time."""
    entry, successor = seen.entry, seen.entry.hand_over_to
    assert successor is not None
    members = view.members
    if successor not in entry.in_sync or successor not in members.living or successor == entry.primary:
        return _call_off(
            seen, f"{successor} is no longer in sync and alive, so {entry.primary} continues to lead"
        )
    if now_ms - seen.since_ms < settings.hand_over_ms:
        return None
    # It has been in sync through a whole life that began well before: then every answer waited for it.
    known = members.living_for_ms(successor, now_ms) >= settings.hand_over_ms + settings.settle_ms
    if entry.settings.replication == "sync" and known:
        reason = (
            f"{entry.primary} did not hand over in time, and {successor} has everything that was acknowledged"
        )
        return change_partition(seen.version, elected(entry, members.living[successor], reason))
    return _call_off(seen, f"{entry.primary} did not hand over to {successor} in time and continues to lead")


def _call_off(seen: Seen[PartitionEntry], reason: str) -> Change:
    return change_partition(
        seen.version, msgspec.structs.replace(seen.entry, hand_over_to=None, reason=reason)
    )


def spread_primaries(
    view: ClusterView,
    movable: list[Seen[PartitionEntry]],
    census: Census,
    now_ms: int,
    settings: ManagerSettings,
) -> Iterator[Change]:
    """Primaries that lead two partitions more than a replica in sync does hand over to it."""
    members, led = view.members, census.led
    able = {
        node.node
        for node in members.places()
        if node.load < settings.busy_load
        and members.living_for_ms(node.node, now_ms) >= settings.trust_after_ms
    }
    least = min((led.get(node, 0) for node in able), default=0)
    for seen in movable:
        entry = seen.entry
        leads = led.get(entry.primary or "", 0)
        if leads - least < 2:
            continue
        apart = leads - min((led.get(node, 0) for node in entry.in_sync if node in able), default=leads)
        if apart >= 2:
            successors = [node for node in entry.in_sync if node in able]
            change = hand_over(view, seen, successors, census, f"it leads {apart} partitions more")
            if change is not None:
                yield change
