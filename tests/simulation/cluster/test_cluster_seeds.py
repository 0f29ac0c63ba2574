"""Clean seeds of clusters hold every promise, and a seed is the same run in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

import pytest

from penstock.simulation.campaign import run_seed, run_seeds
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.world import ClusterWorld


@pytest.mark.parametrize(("nodes", "seeds"), [(3, range(1, 9)), (5, range(1, 4))])
def test_every_promise_holds(nodes: int, seeds: range) -> None:
    broken = {
        report.seed: [f"{violation.checker}: {violation.sentence}" for violation in report.violations]
        for report in run_seeds(seeds, nodes=nodes)
        if report.violations
    }
    assert not broken


def test_the_runs_are_worth_it() -> None:
    worlds = [ClusterWorld(seed, 3) for seed in (2, 3, 4)]
    outcomes = [world.run() for world in worlds]
    assert sum(outcome.messages for outcome in outcomes) > 200
    assert sum(outcome.deliveries for outcome in outcomes) > 200
    assert sum(outcome.starts for outcome in outcomes) > 5
    assert sum(world.witness.epochs - len(world.entries()) for world in worlds) > 5


def test_a_seed_prints_the_same_trace_in_every_process() -> None:
    digests = set()
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "penstock", "simulate", "--cluster", "--seed", "3"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, capture_output=True, env=environment, check=True, timeout=100)
        assert b"every promise held" in done.stdout
        assert len(done.stdout.splitlines()) > 100
        digests.add(sha256(done.stdout).hexdigest())
    assert len(digests) == 1


def test_a_cluster_that_never_starts_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusterMachine, "boot", lambda self: False)
    assert "liveness" in {violation.checker for violation in run_seed(1, nodes=3).violations}
