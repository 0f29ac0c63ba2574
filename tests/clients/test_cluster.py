"""Celery on a cluster whose nodes are killed: every task runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.environments import Environments
from tests.clients.server import Endpoint
from tests.clients.test_celery import CeleryStage
from tests.ports import base_port
from tests.process.local_cluster import ClusterUp

pytestmark = pytest.mark.slow

TASKS = 100
WAIT_SECONDS = 120


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterUp]:
    up = ClusterUp(tmp_path / "cluster", "--frontends", "2", "--base-port", base_port())
    yield up
    up.kill()


def test_every_task_runs_while_the_primary_of_its_queue_is_killed(
    cluster: ClusterUp, environments: Environments, tmp_path: Path
) -> None:
    stage = CeleryStage(environments, Endpoint(str(cluster.facts["sqs_url"])), tmp_path, visibility=10)
    with stage.worker():
        stage.send("note", 1)
        stage.reports.until(lambda seen: len(seen) >= 1, WAIT_SECONDS)
        row = cluster.partition()
        assert len(row["replicas"]) == 3
        killer = threading.Thread(target=cluster.command, args=("kill", row["primary"]))
        killer.start()
        stage.send("note", TASKS)
        killer.join()
        ran = stage.reports.until(lambda seen: len({one["number"] for one in seen}) >= TASKS, WAIT_SECONDS)
        cluster.command("start", row["primary"])
        stage.wait_until_done()
    assert {one["number"] for one in ran} == set(range(TASKS))
    stage.reports.close()
