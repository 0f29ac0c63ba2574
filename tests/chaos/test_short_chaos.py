"""The short version of `make chaos`: every kind of process is hit, the ledger balances, nothing dies of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.etcd_gone import etcd_gone
from tests.chaos.rolling_restart import rolling_restart
from tests.chaos.stage import Stage, new_stage

pytestmark = pytest.mark.timeout(1_800)
"""Each takes less than a minute, but a busy machine is no defect."""

CLIENTS = 32
FAULTS = 9
SEED = 2329
"""Of those that meet every victim and every kind of fault, the one with the shortest."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Started once, on loopback; every scenario leaves it well."""
    made = new_stage(tmp_path_factory.mktemp("chaos"), print)
    try:
        made.cluster.bring_up()
        yield made
    finally:
        made.cluster.bring_down()


def test_nothing_is_lost_while_processes_are_killed_paused_and_cut_off(tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    command = [sys.executable, "-m", "tests.chaos.run", "--only", "faults", "--json", str(facts)]
    numbers = ["--seed", str(SEED), "--faults", str(FAULTS), "--clients", str(CLIENTS)]
    done = subprocess.run([*command, *numbers], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    (faults,) = json.loads(facts.read_text())["scenarios"]
    assert faults["faults"] == FAULTS
    assert faults["kinds"].keys() >= {"kill", "pause"}
    assert faults["messages"]["deleted"] > CLIENTS
    assert faults["violations"] == []


def test_a_rolling_restart_fails_nobody(stage: Stage) -> None:
    outcome = asyncio.run(rolling_restart(stage, clients=CLIENTS, report=print))
    assert outcome.violations == []
    assert len(outcome.faults) == len(stage.plan.processes)
    assert outcome.messages["acknowledged"] > CLIENTS


def test_queues_go_on_while_etcd_is_gone_and_front_ends_start_without_it(stage: Stage) -> None:
    outcome = asyncio.run(etcd_gone(stage, seconds=0, clients=CLIENTS, report=print))
    assert outcome.violations == []
    assert outcome.messages["acknowledged"] > CLIENTS
