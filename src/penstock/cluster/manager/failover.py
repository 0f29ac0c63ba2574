"""Elects a primary for a partition without one: the living replica in sync with the longest log.

Every replica in sync has everything that was acknowledged, so any of them would do for a `sync` partition. The longest log
avoids cuts at the others, and with `async` loses the least. A replica is elected only if it has reported, in this epoch
and this life, that its log is undamaged: a node whose disk was replaced is only nominally in sync.
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.changes import Change, change_partition
from penstock.cluster.layout.elections import elected
from penstock.cluster.layout.entries import PartitionEntry, Position, unclean_key
from penstock.cluster.layout.positions import heard
from penstock.cluster.layout.serving import is_led
from penstock.cluster.layout.view import ClusterView, Seen
from penstock.cluster.manager.placement import Census
from penstock.cluster.manager.settings import ManagerSettings


def leaderless(view: ClusterView, entry: PartitionEntry) -> bool:
    """Whether it needs an election."""
    return not entry.retired and not is_led(entry, view.members.living)


def depose_unfit(view: ClusterView, seen: Seen[PartitionEntry]) -> Change | None:
    """Deposes a primary that reports that its log is damaged; then all replicas report the lengths of theirs."""
    entry = seen.entry
    said = heard(entry, [entry.primary or ""], view.members.living, view.positions)
    if not said.unfit:
        return None
    reason = f"{entry.primary} reports that its data is damaged, so another replica must be primary"
    return change_partition(
        seen.version,
        msgspec.structs.replace(entry, primary=None, primary_started_ms=0, hand_over_to=None, reason=reason),
    )


def elect(
    view: ClusterView, seen: Seen[PartitionEntry], census: Census, now_ms: int, settings: ManagerSettings
) -> Change | None:
    """The election for a partition without a primary; None while it is too early."""
    entry, living = seen.entry, view.members.living
    said = heard(entry, entry.in_sync, living, view.positions)
    waited_ms = now_ms - _leaderless_since_ms(view, seen, now_ms)
    if said.silent and waited_ms < settings.positions_wait_ms:
        return None
    if said.fit:
        if _others_may_have_more(view, entry, said.fit, now_ms, settings) and (
            waited_ms < settings.restart_wait_ms
        ):
            return None
        chosen = _longest(view, entry, said.fit, census)
        # A missing or damaged replica is not in sync; otherwise the new primary would have to write that before its first
        # answer.
        in_sync = [node for node in entry.in_sync if node in living and node not in said.unfit]
        reason = f"{_what_happened(view, entry)}, and of those in sync {chosen} has the longest log"
        return _choose(view, seen, census, chosen, in_sync, reason)
    if said.silent:
        return _explain(
            seen,
            f"{_what_happened(view, entry)}, and {_names(said.silent)} in sync have not reported their logs",
        )
    return (
        _elect_from_before(view, seen, census)
        or _elect_unclean(view, seen, census)
        or _explain(
            seen,
            f"{_what_happened(view, entry)}, and of those in sync ({_names(_had_everything(entry))}) none is alive and "
            "undamaged: restore one, or permit an unclean election, which loses records that only they have: `penstock "
            f"cluster elect {entry.queue} --partition {entry.ordinal} --unclean`",
        )
    )


def _had_everything(entry: PartitionEntry) -> list[str]:
    """The replicas that have everything that was acknowledged, as far as the layout shows."""
    if entry.serving == entry.epoch:
        return entry.in_sync
    return [*entry.in_sync, *(node for node in entry.in_sync_before if node not in entry.in_sync)]


def _elect_from_before(view: ClusterView, seen: Seen[PartitionEntry], census: Census) -> Change | None:
    """The last primary never served, and its designated successor has lost everything: elects a replica that was in sync
    before.

    An election removes missing replicas from the in-sync set, because the new primary will acknowledge without them. As
    long as it has acknowledged nothing, the removed replicas still have everything.
    """
    entry, living = seen.entry, view.members.living
    if entry.serving == entry.epoch:
        return None
    fit = heard(entry, entry.in_sync_before, living, view.positions).fit
    if not any(node in entry.replicas for node in fit):
        return None
    chosen = _longest(view, entry, fit, census)
    reason = f"{_what_happened(view, entry)} before it served, and {chosen} has everything that was acknowledged before"
    return _choose(view, seen, census, chosen, [node for node in fit if node in entry.replicas], reason)


def _elect_unclean(view: ClusterView, seen: Seen[PartitionEntry], census: Census) -> Change | None:
    """An operator's word lets a replica lead that may lack something."""
    entry, order = seen.entry, view.unclean.get(seen.entry.partition)
    if order is None or order.entry.epoch != entry.epoch:
        return None
    said = heard(entry, entry.replicas, view.members.living, view.positions)
    if said.fit:
        chosen = _longest(view, entry, said.fit, census)
        has = "has the longest log of the living replicas; records that it lacks are lost"
    elif said.empty and not said.silent:
        chosen = _longest(view, entry, said.empty, census)
        has = "has nothing, like all others that live and are well; everything is lost"
    else:
        return None
    reason = f"an operator allowed an unclean election, and {chosen} {has}"
    return _choose(view, seen, census, chosen, [chosen], reason, unclean=True)


def _choose(
    view: ClusterView,
    seen: Seen[PartitionEntry],
    census: Census,
    chosen: str,
    in_sync: list[str],
    reason: str,
    *,
    unclean: bool = False,
) -> Change:
    if seen.entry.primary is not None:
        census.move_led(seen.entry.primary, chosen)
    return change_partition(
        seen.version,
        elected(seen.entry, view.members.living[chosen], reason, in_sync=in_sync, unclean=unclean),
    )


def _longest(view: ClusterView, entry: PartitionEntry, fit: dict[str, Position], census: Census) -> str:
    """Between equals rather one that stays, then the one that leads the least."""

    def rank(node: str) -> tuple[int, int, bool, int, int]:
        position = fit[node]
        stays = node not in view.members.drains
        return position.log_epoch, position.last, stays, -census.led.get(node, 0), -entry.replicas.index(node)

    return max((node for node in fit if node in entry.replicas), key=rank)


def _leaderless_since_ms(view: ClusterView, seen: Seen[PartitionEntry], now_ms: int) -> int:
    primary = seen.entry.primary
    if primary is None:
        return seen.since_ms
    members = view.members
    for_ms = max(members.gone_for_ms(primary, now_ms), members.living_for_ms(primary, now_ms))
    return max(seen.since_ms, now_ms - for_ms)


def _others_may_have_more(
    view: ClusterView,
    entry: PartitionEntry,
    fit: dict[str, Position],
    now_ms: int,
    settings: ManagerSettings,
) -> bool:
    """Whether all that live have just started and some are still to come, where an acknowledgement was one node's alone."""
    return (
        entry.settings.replication == "async"
        and len(fit) < len(entry.in_sync)
        and all(abs(now_ms - view.members.living[node].started_ms) < settings.restart_wait_ms for node in fit)
    )


def _what_happened(view: ClusterView, entry: PartitionEntry) -> str:
    if entry.primary is None:
        return "there is no primary"
    return f"{entry.primary} {'has restarted' if entry.primary in view.members.living else 'is gone'}"


def _explain(seen: Seen[PartitionEntry], reason: str) -> Change | None:
    """No election is possible: writes the reason for operators, once."""
    if seen.entry.reason == reason:
        return None
    return change_partition(seen.version, msgspec.structs.replace(seen.entry, reason=reason))


def _names(nodes: list[str]) -> str:
    return ", ".join(nodes) or "none"


def spent_orders(view: ClusterView) -> list[Change]:
    """Words of operators that were about an earlier epoch are taken away: each is good for one election."""
    changes = []
    for partition, order in view.unclean.items():
        seen = view.partitions.get(partition)
        if seen is None or seen.entry.epoch > order.entry.epoch:
            reason = f"the unclean election allowed for partition {partition} is over"
            changes.append(Change(unclean_key(partition), order.version, None, reason))
    return changes
