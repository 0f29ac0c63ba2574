"""A whole cluster from one command: nodes are killed while boto3 works, nothing is lost, and it is found again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from tests.process.local_cluster import ClusterUp
from tests.process.programs import client, refusal, soon

SOON = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterUp]:
    up = ClusterUp(tmp_path / "cluster", "--nodes", "3", "--frontends", "2", "--base-port", "0")
    yield up
    up.kill()


def receive_all(sqs: Any, url: str, wanted: set[str]) -> set[str]:
    """Receives and deletes until everything wanted has come."""
    received: set[str] = set()
    for _ in range(10 * len(wanted)):
        if wanted <= received:
            break
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=2).get(
            "Messages", []
        )
        for message in found:
            received.add(message["Body"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return received


def test_nodes_die_while_boto3_works_and_nothing_is_lost(cluster: ClusterUp) -> None:
    sqs = client(cluster.facts["sqs_url"], attempts=10)
    url = sqs.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "5"})["QueueUrl"]
    row = cluster.partition()
    assert sorted(row["replicas"]) == ["node-1", "node-2", "node-3"]
    assert sorted(row["zones"]) == ["zone-1", "zone-2", "zone-3"]

    sent: list[str] = []
    enough = threading.Event()
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            body = str(len(sent))
            sqs.send_message(QueueUrl=url, MessageBody=body)
            sent.append(body)
            if len(sent) % 50 == 0:
                enough.set()

    sender = threading.Thread(target=send)
    sender.start()
    try:
        for victim in (row["primary"], "frontend-1"):
            enough.clear()
            assert enough.wait(SOON)
            cluster.command("kill", victim)
            assert victim in cluster.event("notice")["notice"]
            enough.clear()
            assert enough.wait(SOON), "sends did not go on"
            cluster.command("start", victim)
        soon(cluster.well, SOON)
    finally:
        stop.set()
        sender.join()
    after = cluster.partition()
    assert after["epoch"] > row["epoch"]
    assert receive_all(sqs, url, set(sent)) == set(sent)


def test_a_node_is_added_drained_and_removed_and_the_rest_is_found_again(
    cluster: ClusterUp, tmp_path: Path
) -> None:
    with penstock.connect_blocking(cluster.facts["url"]) as native:
        queue = native.create_queue("orders", partitions=2, replicas=2)
        queue.send_batch([str(number).encode() for number in range(100)])
    assert cluster.command("add")["name"] == "node-4"
    assert "no node-9" in refusal("cluster", "kill", "node-9", "--data", str(cluster.data))
    victim = cluster.status()["partitions"][0]["primary"]
    assert cluster.command("drain", victim)["left"] == 0
    assert cluster.command("remove", victim, "--yes")["event"] == "removed"
    soon(cluster.well, SOON)
    status = cluster.status()
    assert victim not in [row["name"] for row in status["processes"]]
    assert all(victim not in row["replicas"] for row in status["partitions"])

    cluster.interrupt()
    again = ClusterUp(cluster.data)
    try:
        with penstock.connect_blocking(again.facts["url"]) as native:
            received = native.queue("orders").receive(1_000, wait=10)
            bodies = set(received.bodies())
            while len(bodies) < 100:
                more = native.queue("orders").receive(1_000, wait=10).bodies()
                assert more, f"{len(bodies)} of 100 messages"
                bodies.update(more)
        assert bodies == {str(number).encode() for number in range(100)}
        assert "runs in" in refusal("cluster", "up", "--data", str(again.data))
        again.interrupt()
    finally:
        again.kill()
    assert "does not run" in refusal("cluster", "status", "--data", str(cluster.data))
