"""`docs/guide/pipeline.md` does what it says: its commands and its Python are typed from top to bottom, and compared.

Jobs are the program with the same words, in this process: they find the session of the tests there, and a Java fewer
starts for each. `test_standalone.py` runs one as its reader does, with a Spark of its own and Spark's own settings.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.pipeline.jobs.catalogue import JOBS
from tests.client.guide_page import GuidePage, commands, matches, run
from tests.process.server import SMALL_FILES
from tests.process.usage_log import usage_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = GuidePage("pipeline.md")
SQS = "http://127.0.0.1:9324"
SECONDS = 300
JOB = "penstock pipeline run "


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """`penstock serve`, and what it says about itself."""
    command = [sys.executable, "-m", "penstock.cli.main", "serve", "--json", "--listen", "127.0.0.1:0"]
    command += ["--sqs-listen", "127.0.0.1:0", "--monitoring-listen", "off", "--durability", "os"]
    command += ["--data", str(tmp_path / "data"), "--log-level", "warning"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment | SMALL_FILES) as process:
        assert process.stdout is not None
        yield msgspec.json.decode(process.stdout.readline())
        process.terminate()


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests; what the program sets in it is set back."""
    changed = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")
    before = {name: spark.conf.get(name) for name in changed}
    yield spark
    for name, kept in before.items():
        assert kept is not None
        spark.conf.set(name, kept)


def test_the_page_runs_every_job() -> None:
    typed = [command for _, _, text in PAGE.blocks("console") for command, _ in commands(text)]
    assert {command.split()[3] for command in typed if command.startswith(JOB)} == {*JOBS}


def test_the_page_can_be_typed_from_top_to_bottom(
    server: dict[str, Any],
    session: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All threads are there now, and what they start meanwhile stays there: so it is not removed with this test.
    monkeypatch.chdir(tmp_path_factory.mktemp("guide"))
    names: dict[str, Any] = {}
    typed = jobs = 0
    for kind, line, text in PAGE.blocks("console|python"):
        if kind == "python":
            tree = ast.increment_lineno(ast.parse(text.replace(SQS, server["sqs_url"])), line)
            exec(compile(tree, str(PAGE.path), "exec"), names)
            # A front end sends what it has noted after half a second.
            wait_until(lambda: reported(server["url"], "ChangeMessageVisibility"))
            continue
        for command, expected in commands(text):
            is_job = command.startswith(JOB)
            url = server["url"]
            printed = run_here(command, url) if is_job else run(command, url, SECONDS)
            jobs += is_job
            assert matches(expected, printed), f"{command}\n{printed}\nis not\n{expected}"
            typed += 1
    assert typed >= 8
    assert jobs == len(JOBS)
    assert not session.sparkContext._jsc.sc().isStopped(), "whoever runs a job in a session keeps it"
    assert (names["by_action"]["SendMessage"], names["by_action"]["DeleteMessage"]) == (30, 20)
    assert names["days"]["messages"].sum() >= 50
    assert sum(count for _, _, count in names["still_there"].fetchall()) == 10
    assert names["findings"].fetchall() == []
    assert {row[0] for row in names["full"].fetchall()} == {"orders", "orders-dead"}
    assert "<svg" in Path("report.html").read_text()


def reported(url: str, action: str) -> bool:
    return any(row["action"] == action for row in usage_rows(url))


def wait_until(holds: Callable[[], bool]) -> None:
    never = Event()
    for _ in range(10 * SECONDS):
        if holds():
            return
        never.wait(0.1)
    raise AssertionError("it never came")


def run_here(command: str, url: str) -> str:
    """The program with these words, in this process."""
    _, *words = shlex.split(command)
    done = CliRunner().invoke(app, words, env={"PENSTOCK_URL": url, "COLUMNS": "120"})
    assert done.exit_code == 0, f"{command}: {done.output}"
    return done.stdout
