"""What a run knows and does where its log has nothing new: without Spark, with a roller that only says what it is asked."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.pipeline import runner
from penstock.pipeline.jobs.catalogue import JOBS
from penstock.pipeline.jobs.job import ServerFacts
from penstock.pipeline.numbers import Gap
from penstock.pipeline.progress import Progress
from penstock.pipeline.runner import JobRun, RunOptions


class IdleRoller:
    """Everything was rolled up by an earlier run, which found ten rows missing."""

    def __init__(self, *given: object) -> None:
        self.renewed: list[ServerFacts] = []

    def renew(self, server_facts: ServerFacts) -> bool:
        self.renewed.append(server_facts)
        return True

    def behind(self) -> bool:
        return False

    def gaps(self) -> tuple[Gap, ...]:
        return (Gap("front-1", 151, 160),)

    def small_directories(self) -> int:
        return 0

    def compact(self, *, everything: bool = False) -> None:
        pass


def idle_run(monkeypatch: pytest.MonkeyPatch, job: str, progress: Progress) -> JobRun:
    monkeypatch.setattr(runner, "Roller", IdleRoller)
    warehouse = cast("Any", SimpleNamespace(files=None, generation="g1"))
    return JobRun(warehouse, JOBS[job], RunOptions(), progress, lambda current: None)


def test_what_is_missing_is_known_from_the_beginning_of_a_run_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    progress, at_first = Progress("usage"), []
    monkeypatch.setattr(JobRun, "_read", lambda *given: at_first.append(progress.facts()["missing_rows"]))
    idle_run(monkeypatch, "usage", progress).run("nowhere", Event())
    assert at_first == [10]
    assert progress.facts()["missing_rows"] == 10
    (family,) = (one for one in progress.families() if one.name == "penstock_pipeline_missing_rows")
    assert [sample.value for sample in family.samples] == [10]


def test_a_job_that_depends_on_the_server_asks_it_though_no_row_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobRun, "_read", lambda *given: None)
    now = ServerFacts(17)
    monkeypatch.setattr(runner, "server_facts_of", lambda endpoint: now)
    for job, expected in (("capacity", [now]), ("usage", []), ("ledger", [])):
        run = idle_run(monkeypatch, job, Progress(job))
        run.run("nowhere", Event())
        assert cast("Any", run)._roller.renewed == expected, job
