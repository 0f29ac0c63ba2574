"""`penstock simulate`: seeds, cores, pace, and what it says of seeds that fail."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence

from penstock.cli.tools.seed_pace import SeedPace
from penstock.cli.tools.simulate import VIOLATIONS_SHOWN
from penstock.simulation.campaign import cores
from tests.cli.test_terminal import at_terminal


def _simulate(*arguments: str, allowed: Sequence[int] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock.cli.main", "simulate", *arguments],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=(lambda: os.sched_setaffinity(0, allowed)) if allowed is not None else None,
    )


def test_it_uses_the_cores_it_may_use_and_prints_seeds_a_minute() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    assert cores() == len(allowed)
    ended = _simulate("--seeds", "3", allowed=allowed)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = re.match(
        r"3 seeds in [\d.]+ s, (\d+) at a time \(([\d,]+) a minute\): \d+ messages", ended.stdout
    )
    assert found is not None, ended.stdout
    assert int(found[1]) == min(3, len(allowed))
    assert int(found[2].replace(",", "")) > 0
    alone = _simulate("--seeds", "2", allowed=allowed[:1])
    assert ", 1 at a time (" in alone.stdout


def test_jobs_says_how_many_at_a_time() -> None:
    ended = _simulate("--seeds", "3", "--jobs", "3")
    assert ", 3 at a time (" in ended.stdout, ended.stdout + ended.stderr


def test_a_person_sees_the_pace_meanwhile() -> None:
    screen = at_terminal("", "simulate", "--seeds", "2", "--jobs", "1").output
    assert re.search(r"seeds, [\d,]+ a minute", screen), screen


def test_a_seed_that_fails_is_said_with_the_command_that_replays_it() -> None:
    ended = _simulate("--bug", "leases-never-end", "--seeds", "3")
    assert ended.returncode == 1
    failed = re.search(r"seeds with violations: \[(\d+)", ended.stdout)
    assert failed is not None, ended.stdout
    assert f"replay it with: penstock simulate --seed {failed[1]} --bug leases-never-end" in ended.stdout


def test_of_a_seed_with_many_violations_some_are_shown_and_the_rest_counted() -> None:
    ended = _simulate("--bug", "skip-sync", "--seed", "6", "--seeds", "1")
    shown = [line for line in ended.stdout.splitlines() if line.startswith("seed 6, ")]
    assert len(shown) == VIOLATIONS_SHOWN, ended.stdout
    assert re.search(r"^seed 6: and \d+ more$", ended.stdout, re.MULTILINE), ended.stdout


def test_json_has_one_object_a_seed() -> None:
    ended = _simulate("--seed", "7", "--seeds", "2", "--json")
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [row["seed"] for row in rows] == [7, 8]
    assert all(row["violations"] == [] and row["messages"] for row in rows)


def test_where_nobody_looks_there_is_a_line_a_minute() -> None:
    pace = SeedPace(500, now=100.0)
    pace.ended(failed=False)
    assert pace.line(159.9) is None
    pace.ended(failed=False)
    assert pace.line(160.0) == "2 of 500 seeds, 2 a minute"
    for _ in range(4):
        pace.ended(failed=True)
    assert pace.line(219.0) is None
    assert pace.line(220.0) == "6 of 500 seeds, 3 a minute, 4 with violations"
