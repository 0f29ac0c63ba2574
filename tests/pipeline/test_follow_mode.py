"""A run that follows: it gives way to others, and sets nothing that somebody has set already."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.pipeline.follow_mode import NICENESS, follow_settings, short_settings


def test_what_somebody_has_set_stays() -> None:
    given = {"spark.driver.extraJavaOptions": "-Xlog:gc", "spark.driver.memory": "2g"}
    settings = follow_settings(given)
    assert settings["spark.driver.extraJavaOptions"] == "-Xlog:gc"
    assert settings["spark.driver.memory"] == "2g"
    assert "-XX:TieredStopAtLevel=1" in follow_settings({})["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize(
    ("before", "given", "after"), [(0, NICENESS, 10), (0, 19, 19), (0, 0, 0), (5, 10, 5)]
)
def test_it_gives_way_unless_it_does_already(before: int, given: int, after: int) -> None:
    if os.getpriority(os.PRIO_PROCESS, 0) > before:
        before = after = os.getpriority(os.PRIO_PROCESS, 0)  # these tests give way themselves
    program = (
        f"import os; os.nice({before} - os.getpriority(os.PRIO_PROCESS, 0))\n"
        "from penstock.pipeline.follow_mode import give_way\n"
        f"give_way({given}); print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0) == os.SCHED_BATCH)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(after), str(after != before)]


def test_a_run_that_reads_little_starts_quickly_and_one_that_reads_much_works_quickly() -> None:
    given = {"spark.driver.memory": "2g"}
    assert short_settings(given, 10_000) == given | {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    }
    assert short_settings(given, 10**9) == given
    mine = {"spark.driver.extraJavaOptions": "-Xlog:gc"}
    assert short_settings(mine, 10_000) == mine
