"""Clean seeds hold every promise, and a seed is a run: the same every time, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

import pytest

from penstock.simulation.campaign import run_seed, run_seeds
from penstock.simulation.faults import Faults
from penstock.simulation.machine import Machine

SEEDS = range(1, 41)


def test_every_promise_holds() -> None:
    broken = {
        report.seed: [f"{violation.checker}: {violation.sentence}" for violation in report.violations]
        for report in run_seeds(SEEDS)
        if report.violations
    }
    assert not broken


def test_the_runs_are_worth_it() -> None:
    reports = [run_seed(seed) for seed in (1, 3, 4)]
    assert sum(report.messages for report in reports) > 300
    assert sum(report.deliveries for report in reports) > 300
    assert sum(report.starts - 1 for report in reports) >= 3


@pytest.mark.parametrize("seed", [3, 4711])
def test_a_seed_prints_the_same_trace_in_every_process(seed: int) -> None:
    digests = {_trace_digest(seed, hash_seed) for hash_seed in ("1", "2", "random")}
    assert len(digests) == 1


def _trace_digest(seed: int, hash_seed: str) -> str:
    command = [sys.executable, "-m", "penstock", "simulate", "--seed", str(seed)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, capture_output=True, env=environment, check=True, timeout=500)
    assert b"every promise held" in done.stdout
    assert len(done.stdout.splitlines()) > 100
    return sha256(done.stdout).hexdigest()


def test_a_server_that_never_starts_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "boot", lambda self: False)
    assert "liveness" in {violation.checker for violation in run_seed(1).violations}


def test_a_run_that_ends_with_an_error_is_reported_and_the_next_seed_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(self: Faults) -> None:
        raise LookupError("no such fault")

    with monkeypatch.context() as broken_faults:
        broken_faults.setattr(Faults, "start", broken)
        reports = list(run_seeds([1, 2], jobs=1))
    assert [report.seed for report in reports] == [1, 2]
    assert {violation.checker for report in reports for violation in report.violations} == {"simulation"}
    assert "no such fault" in reports[0].violations[0].sentence
    assert any("in broken" in line for line in reports[0].trace)


def test_a_byte_to_damage_is_chosen_while_a_read_is_about_to_fail() -> None:
    assert not run_seed(300451).violations
