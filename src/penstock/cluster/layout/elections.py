"""A new primary: the entry that makes it one, for every kind of election."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, UncleanEntry


def elected(
    entry: PartitionEntry,
    leader: NodeEntry,
    reason: str,
    in_sync: Iterable[str] | None = None,
    *,
    unclean: bool = False,
) -> PartitionEntry:
    """The next epoch, led by a node. Without `in_sync` that set stays; it may only ever lose members here.

    `unclean`: it may lack something that was acknowledged.
    """
    return msgspec.structs.replace(
        entry,
        epoch=entry.epoch + 1,
        primary=leader.node,
        primary_started_ms=leader.started_ms,
        in_sync=list(in_sync) if in_sync is not None else entry.in_sync,
        in_sync_before=entry.in_sync if entry.serving == entry.epoch else entry.in_sync_before,
        hand_over_to=None,
        unclean=entry.epoch + 1 if unclean else entry.unclean,
        reason=reason,
    )


def handed_over(entry: PartitionEntry, successor: NodeEntry) -> PartitionEntry:
    """The entry that a primary writes when its successor has everything, on condition that the entry is still this one."""
    return elected(
        entry, successor, f"{entry.primary} handed over to {successor.node}, which has everything it had"
    )


def unclean_allowed(entry: PartitionEntry) -> UncleanEntry:
    """An operator's word that after the present epoch a replica may lead which is not in sync."""
    return UncleanEntry(partition=entry.partition, epoch=entry.epoch)
