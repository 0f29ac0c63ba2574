"""Every node of a cluster is stopped and started again under load: each hands over first, and nobody has to be elected."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from tests.ports import base_port
from tests.process.local_cluster import ClusterUp
from tests.process.programs import soon

NODES = ("node-1", "node-2", "node-3")
SENDERS = 4
SOON = 120.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterUp]:
    up = ClusterUp(tmp_path / "cluster", "--nodes", "3", "--frontends", "1", "--base-port", base_port())
    yield up
    up.kill()


async def restart_all(cluster: ClusterUp) -> tuple[list[bytes], list[str]]:
    """What was acknowledged while every node was restarted, and why each partition had its last leader."""
    acknowledged: list[bytes] = []
    over = asyncio.Event()
    reasons: list[str] = []
    async with penstock.connect(cluster.facts["url"]) as client:
        queue = await client.create_queue("orders", partitions=3, replicas=3)

        async def send(sender: int) -> None:
            number = 0
            while not over.is_set():
                body = b"%d-%d" % (sender, number)
                await queue.send(body)
                acknowledged.append(body)
                number += 1

        senders = [asyncio.create_task(send(number)) for number in range(SENDERS)]
        try:
            for name in NODES:
                stopped = await asyncio.to_thread(cluster.command, "stop", name)
                assert not stopped["forced"]
                status = await asyncio.to_thread(cluster.status)
                reasons += [row["reason"] for row in status["partitions"]]
                await asyncio.to_thread(cluster.command, "start", name)
                await asyncio.to_thread(soon, cluster.well, SOON)
        finally:
            over.set()
            await asyncio.gather(*senders)
        received: set[bytes] = set()
        async with asyncio.timeout(SOON):
            while len(received) < len(acknowledged):
                messages = await queue.receive(1_000, wait=1.0)
                received.update(bytes(message.body) for message in messages)
                if messages:
                    await messages.delete()
        assert received == set(acknowledged)
    return acknowledged, reasons


def test_a_rolling_restart_needs_no_election(cluster: ClusterUp) -> None:
    acknowledged, reasons = asyncio.run(restart_all(cluster))
    assert len(acknowledged) > SENDERS
    # Each partition is led by whoever was there first, or by whoever it was handed over to: nobody was missed.
    assert any("handed over to" in reason for reason in reasons), reasons
    assert not [reason for reason in reasons if "is gone" in reason], reasons
    for name in NODES:
        log = (cluster.data / name / "log").read_text()
        said = [
            (int(done), int(all_)) for done, all_ in re.findall(r"handed over (\d+) of (\d+) partitions", log)
        ]
        assert all(done == all_ for done, all_ in said), log
