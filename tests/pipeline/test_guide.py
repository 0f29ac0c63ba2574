"""`docs/guide/pipeline.md` does what it says: its commands and its Python are typed from top to bottom, and compared."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest

from tests.client.guide_page import GuidePage, commands, matches
from tests.process.server import SMALL_FILES
from tests.process.usage_log import usage_rows

PAGE = GuidePage("pipeline.md")
SQS = "http://127.0.0.1:9324"
SECONDS = 300
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


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


def test_the_page_can_be_typed_from_top_to_bottom(
    server: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    typed = 0
    for kind, line, text in PAGE.blocks("console|python"):
        if kind == "python":
            tree = ast.increment_lineno(ast.parse(text.replace(SQS, server["sqs_url"])), line)
            exec(compile(tree, str(PAGE.path), "exec"), names)
            # A front end sends what it has noted after half a second.
            wait_until(lambda: reported(server["url"], "ChangeMessageVisibility"))
            continue
        for command, expected in commands(text):
            printed = run(command, server["url"])
            assert matches(expected, printed), f"{command}\n{printed}\nis not\n{expected}"
            typed += 1
    assert typed >= 8
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


def run(command: str, url: str) -> str:
    variables = {**os.environ, "PENSTOCK_URL": url, "COLUMNS": "120", "JAVA_TOOL_OPTIONS": QUICK_JAVA}
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
