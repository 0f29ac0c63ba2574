"""The short version of `make chaos`: every kind of process is hit, the ledger balances, nothing dies of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.runtime.local_cluster.cluster import LocalCluster
from tests.chaos.campaign import campaign, new_cluster, rolling_restart
from tests.chaos.faults import VICTIMS

CLIENTS = 40
SEED = 7


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    made = new_cluster(tmp_path, 3, 2, print)
    try:
        made.bring_up()
        yield made
    finally:
        made.bring_down()


def test_nothing_is_lost_while_processes_are_killed_and_paused(cluster: LocalCluster) -> None:
    outcome = asyncio.run(
        campaign(cluster, seed=SEED, count=len(VICTIMS), clients=CLIENTS, victims=VICTIMS, report=print)
    )
    print(outcome.summary)
    assert outcome.ledger.violations == []
    assert len(outcome.faults) == len(VICTIMS)
    assert outcome.ledger.counts["deleted"] > CLIENTS


def test_a_rolling_restart_fails_nobody(cluster: LocalCluster) -> None:
    outcome = asyncio.run(rolling_restart(cluster, clients=CLIENTS, report=print))
    print(outcome.summary)
    assert outcome.ledger.violations == []
    assert len(outcome.faults) == len(cluster.plan.processes) - 1
