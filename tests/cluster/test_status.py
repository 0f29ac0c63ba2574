"""What people see of a cluster, in good times and in bad."""

from __future__ import annotations

import pytest

from penstock.cluster.layout.entries import Position
from penstock.cluster.layout.status import NodeRow, node_rows, partition_rows
from tests.cluster.obedient_cluster import ObedientCluster


def test_a_row_for_each_partition_and_node() -> None:
    cluster = ObedientCluster()
    ids = cluster.create("orders", partitions=2)
    (other,) = cluster.create("bills", replicas=1)
    rows = partition_rows(cluster.view, {ids[0]: {"n1": 17}})
    assert [(row.queue, row.ordinal, row.partition) for row in rows] == [
        ("bills", 0, other),
        ("orders", 0, ids[0]),
        ("orders", 1, ids[1]),
    ]
    row = rows[1]
    assert (row.epoch, row.serving, row.reason) == (1, True, "the queue was created")
    assert row.in_sync == row.replicas
    assert row.zones == [node.replace("n", "z") for node in row.replicas]
    assert (row.lag, rows[2].lag) == ({"n1": 17}, {})
    cluster.drain("n1")
    cluster.kill("n2")
    held = {row.node: (row.state, row.zone) for row in node_rows(cluster.view)}
    assert held == {"n0": ("living", "z0"), "n1": ("draining", "z1"), "n2": ("gone", "")}
    assert sum(row.replicas for row in node_rows(cluster.view)) == 7
    assert sum(row.primaries for row in node_rows(cluster.view)) == 3
    assert isinstance(node_rows(cluster.view)[0], NodeRow)


@pytest.mark.parametrize(
    ("changes", "serving", "reason"),
    [
        ({"epoch": 2, "reason": "n9 is gone"}, False, "begins epoch 2: n9 is gone"),
        ({"primary": None, "reason": "n9 is damaged"}, False, "n9 is damaged"),
        ({"in_sync": ["n0"]}, True, "sends are refused: 1 in sync, 2 needed"),
        ({"primary_started_ms": 5}, False, "has restarted"),
        ({"replicas": [], "in_sync": [], "leaving": ["n2"]}, False, "waiting for n2 to drop it"),
        ({"queue_id": 900}, True, "belongs to no queue"),
        ({"deleted": True, "reason": "3 messages are on the way"}, False, "3 messages are on the way"),
        ({"expiry": "closed"}, False, "about to be deleted"),
    ],
)
def test_a_row_says_what_is_wrong(changes: dict[str, object], serving: bool, reason: str) -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    cluster.change(partition, **changes)
    (row,) = partition_rows(cluster.view)
    assert row.serving == serving
    assert reason in row.reason


def test_a_row_says_that_replicas_are_missing() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    primary = cluster.entry(partition).primary
    left = [node for node in cluster.entry(partition).replicas if node != primary][1:]
    cluster.change(partition, replicas=[primary, *left], in_sync=[primary, *left])
    (row,) = partition_rows(cluster.view)
    assert (row.serving, row.reason) == (True, "it has 2 of 3 replicas: add a node that can hold another")


def test_a_row_says_who_is_gone_and_what_the_others_lack() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    entry = cluster.entry(partition)
    primary, first, second = entry.replicas
    cluster.kill(primary)
    cluster.say(first, **{f"p{partition}": Position(1, 1, 30)})
    cluster.say(second, **{f"p{partition}": Position(1, 1, 25)})
    (row,) = partition_rows(cluster.view)
    assert (row.serving, row.reason) == (False, f"{primary} is gone, an election is under way")
    assert row.lag == {first: 0, second: 5}
    cluster.change(partition, in_sync=[primary])
    (row,) = partition_rows(cluster.view)
    assert row.reason == f"{primary} is gone, and no replica in sync is alive ({primary})"
