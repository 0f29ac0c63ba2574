"""The layout for operators: a row for each partition and one for each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from penstock.cluster.layout.entries import PartitionEntry
from penstock.cluster.layout.serving import is_led, server_of
from penstock.cluster.layout.view import ClusterView
from penstock.cluster.manager.placement import Census

NodeState = Literal["living", "draining", "gone"]


class PartitionRow(NamedTuple):
    """One partition."""

    queue: str
    partition: int
    ordinal: int
    primary: str | None
    epoch: int
    replicas: list[str]
    in_sync: list[str]
    lag: dict[str, int]
    """Records that a replica lacks, where it is known."""
    zones: list[str]
    """Of the replicas, in their order; empty text for those that are gone."""
    serving: bool
    reason: str
    """The reason for its state; if it does not serve, the reason for that."""
    deleted: bool = False
    """Whether its queue is deleted, and it is still there for messages on their way or until nodes have dropped it."""


class NodeRow(NamedTuple):
    """A node that is alive or named in an entry."""

    node: str
    zone: str
    state: NodeState
    replicas: int
    primaries: int
    load: float


def partition_rows(
    view: ClusterView, lags: Mapping[int, Mapping[str, int]] | None = None
) -> list[PartitionRow]:
    """By queue and ordinal. `lags` has the answers of primaries: partition → node → missing records."""
    living = view.members.living
    rows = []
    for seen in view.partitions.values():
        entry = seen.entry
        serving, reason = _judge(view, entry)
        rows.append(
            PartitionRow(
                queue=entry.queue,
                partition=entry.partition,
                ordinal=entry.ordinal,
                primary=entry.primary,
                epoch=entry.epoch,
                replicas=list(entry.replicas),
                in_sync=list(entry.in_sync),
                lag=dict((lags or {}).get(entry.partition) or _said_lag(view, entry)),
                zones=[living[node].zone if node in living else "" for node in entry.replicas],
                serving=serving,
                reason=reason,
                deleted=entry.deleted or entry.retired,
            )
        )
    return sorted(rows, key=lambda row: (row.queue, row.ordinal, row.partition))


def _judge(view: ClusterView, entry: PartitionEntry) -> tuple[bool, str]:
    if entry.retired:
        waits = f", waiting for {', '.join(entry.leaving)} to drop it" if entry.leaving else ""
        return False, f"it is being deleted{waits}"
    if entry.primary is None:
        return False, entry.reason or "has no primary"
    if not is_led(entry, view.members.living):
        if entry.primary in view.members.living:
            return False, f"{entry.primary} has restarted and waits for an election"
        if not any(node in view.members.living for node in entry.in_sync):
            return (
                False,
                f"{entry.primary} is gone, and no replica in sync is alive ({', '.join(entry.in_sync)})",
            )
        return False, f"{entry.primary} is gone, an election is under way"
    if server_of(entry) is None:
        return False, f"{entry.primary} begins epoch {entry.epoch}: {entry.reason}"
    if entry.deleted:
        return False, entry.reason
    if entry.expiry == "closed":
        return False, "the queue was unused for its idle expiry: it is about to be deleted"
    least = entry.settings.least_in_sync
    if entry.settings.replication == "sync" and len(entry.in_sync) < least:
        return True, f"sends are refused: {len(entry.in_sync)} in sync, {least} needed"
    if view.queue_of(entry) is None:
        return True, "it belongs to no queue: the queue was never finished, or its entry was lost"
    if (asked := entry.settings.replicas) > (there := len(entry.replicas)):
        return True, f"it has {there} of {asked} replicas: add a node that can hold another"
    return True, entry.reason


def _said_lag(view: ClusterView, entry: PartitionEntry) -> dict[str, int]:
    """Without a primary, replicas report the lengths of their logs: the lag to the longest."""
    said = {
        node: words.positions[entry.partition]
        for node, words in view.positions.items()
        if entry.partition in words.positions and words.positions[entry.partition].epoch == entry.epoch
    }
    longest = max((position.last for position in said.values()), default=0)
    return {node: longest - position.last for node, position in said.items()}


def node_rows(view: ClusterView) -> list[NodeRow]:
    """By name; nodes that are gone too, while something names them."""
    members = view.members
    census = Census(seen.entry for seen in view.partitions.values())
    rows = []
    for name in sorted({*members.living, *members.drains, *(n for n, held in census.held.items() if held)}):
        node = members.living.get(name)
        state: NodeState = "gone" if node is None else "draining" if name in members.drains else "living"
        rows.append(
            NodeRow(
                name,
                node.zone if node is not None else "",
                state,
                census.held.get(name, 0),
                census.led.get(name, 0),
                node.load if node is not None else 0.0,
            )
        )
    return rows
