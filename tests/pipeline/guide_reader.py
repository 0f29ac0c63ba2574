"""Who reads `docs/guide/pipeline.md` and types it from top to bottom. Run as a program by a test, in the reader's directory.

Jobs are run by the program within this process. The first makes its session and ends it, with Spark's own settings; all others
find one that is there, and quicker with few rows. Other commands are typed into a shell. Prints what came of it.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.pipeline.session import spark_session
from tests.client.guide_page import GuidePage, commands, matches
from tests.pipeline.quick_spark import INTERPRETED
from tests.process.usage_log import usage_rows

PAGE = GuidePage("pipeline.md")
SQS = "http://127.0.0.1:9324"
SECONDS = 300
JOB = "penstock pipeline run "


def type_all(url: str, sqs_url: str) -> dict[str, Any]:
    """What there is in the end."""
    names: dict[str, Any] = {}
    typed = jobs = 0
    for kind, line, text in PAGE.blocks("console|python"):
        if kind == "python":
            tree = ast.increment_lineno(ast.parse(text.replace(SQS, sqs_url)), line)
            exec(compile(tree, str(PAGE.path), "exec"), names)
            wait_for_rows(url)
            continue
        for command, expected in commands(text):
            is_job = command.startswith(JOB)
            printed = run_here(command, url) if is_job else run(command, url)
            assert matches(expected, printed), f"{command}\n{printed}\nis not\n{expected}"
            if is_job and not jobs:
                spark_session("the reader's", options=INTERPRETED)
            jobs += is_job
            typed += 1
    return {
        "typed": typed,
        "jobs": jobs,
        "by_action": names["by_action"],
        "messages": int(names["days"]["messages"].sum()),
        "still_there": sum(count for _, _, count in names["still_there"].fetchall()),
        "findings": names["findings"].fetchall(),
        "queues": sorted({row[0] for row in names["full"].fetchall()}),
    }


def wait_for_rows(url: str) -> None:
    """A front end sends what it has noted after half a second."""
    never = Event()
    for _ in range(10 * SECONDS):
        if any(row["action"] == "ChangeMessageVisibility" for row in usage_rows(url)):
            return
        never.wait(0.1)
    raise AssertionError("it never came")


def run_here(command: str, url: str) -> str:
    """The program with these words, in this process."""
    _, *words = shlex.split(command)
    done = CliRunner().invoke(app, words, env={"PENSTOCK_URL": url, "COLUMNS": "120"})
    assert done.exit_code == 0, f"{command}: {done.output}"
    return done.stdout


def run(command: str, url: str) -> str:
    """By a shell."""
    variables = {**os.environ, "PENSTOCK_URL": url, "COLUMNS": "120"}
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


if __name__ == "__main__":
    print(json.dumps(type_all(*sys.argv[1:])))
