"""Partitions that nobody uses cost a node nothing in a turn, and those that need a look get it a part at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from penstock.replication.primary_secondary.node import proposing
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from tests.replication.primary_secondary.node.cluster import Cluster, Machine


@contextmanager
def steps() -> Iterator[list[int]]:
    """Counts the lines that run within."""
    counted = [0]

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        counted[0] += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield counted
    finally:
        sys.settrace(before)


def cluster_of(partitions: int) -> Cluster:
    cluster = Cluster()
    for partition in range(1, partitions + 1):
        cluster.create(f"q{partition}", partition)
    for _ in range(60):
        cluster.now_ms += 20
        cluster.connect()
        for machine in cluster.machines.values():
            cluster.hear(machine)
            machine.turn()
            cluster.propose(machine)
        for pair in list(cluster.pipes):
            cluster.deliver(pair)
    assert all(cluster.entry(partition).serving == 1 for partition in range(1, partitions + 1))
    return cluster


def node_of(machine: Machine) -> ReplicatedNode:
    assert machine.node is not None
    return machine.node


def turn(cluster: Cluster, node: ReplicatedNode) -> None:
    """What a driver asks of a node in a turn in which nothing arrives."""
    now_ms = cluster.now_ms
    wakeup_ms = node.next_wakeup_ms()
    if wakeup_ms is not None and wakeup_ms <= now_ms:
        node.tick(now_ms)
    assert node.take_flush() is None
    node.replication.take_peer_output()
    node.take_output()
    node.take_handed()
    assert node.take_jobs() == []
    node.replication.take_proposals(now_ms)
    node.replication.take_lifecycle_reports(now_ms)
    node.next_wakeup_ms()
    node.has_more()


def test_idle_partitions_cost_nothing_in_a_turn() -> None:
    most = []
    for partitions in (5, 60):
        cluster = cluster_of(partitions)
        counts = []
        for _ in range(200):
            cluster.now_ms += 5
            with steps() as counted:
                turn(cluster, node_of(cluster.machines["a"]))
            counts.append(counted[0])
        most.append(max(counts))
    assert most[1] <= most[0] + 20


def test_partitions_that_lack_a_replica_are_looked_at_a_part_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proposing, "LOOKS_AT_ONCE", 7)
    cluster = cluster_of(40)
    node = node_of(cluster.machines["a"])
    node.replication.peer_disconnected("b", cluster.now_ms)
    node.replication.take_proposals(cluster.now_ms)  # those that somebody may be waiting for
    wanted: set[int] = set()
    counts = []
    for _ in range(400):
        cluster.now_ms += 5
        with steps() as counted:
            found = node.replication.take_proposals(cluster.now_ms)
        counts.append(counted[0])
        assert len(found) <= 7
        wanted |= {proposal.entry.partition for proposal in found if "b" not in proposal.entry.in_sync}
    assert wanted == set(range(1, 41)), "all of them are looked at in time"
    assert max(counts) <= 7 * 300
