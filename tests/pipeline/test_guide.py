"""`docs/guide/pipeline.md` does what it says: its commands and its Python are typed from top to bottom, and compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.pipeline.jobs.catalogue import JOBS
from tests.pipeline.broker import Broker
from tests.pipeline.quick_spark import QUICK_JAVA
from tests.process.server import SMALL_FILES

REPOSITORY = Path(__file__).parents[2]


def a_page_typed(directory: Path, broker: Broker) -> dict[str, Any]:
    """By somebody with a server of their own."""
    program = [sys.executable, "-m"]
    serve = [*program, "penstock.cli.main", "serve", "--json", "--listen", "127.0.0.1:0"]
    serve += ["--sqs-listen", "127.0.0.1:0", "--monitoring-listen", "off", "--durability", "os"]
    serve += ["--data", str(directory / "data"), "--log-level", "warning"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    with subprocess.Popen(serve, stdout=subprocess.PIPE, env=environment | SMALL_FILES) as server:
        assert server.stdout is not None
        said = msgspec.json.decode(server.stdout.readline())
        path = os.pathsep.join([str(REPOSITORY), environment.get("PYTHONPATH", "")])
        done = subprocess.run(
            [*program, "tests.pipeline.guide_reader", said["url"], said["sqs_url"]],
            capture_output=True,
            cwd=directory,
            env=environment | {"PYTHONPATH": path, "JAVA_TOOL_OPTIONS": QUICK_JAVA},
        )
        server.terminate()
    assert done.returncode == 0, done.stderr.decode()
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result | {"report": (directory / "report.html").read_text()}


@pytest.mark.errand(work=a_page_typed)
def test_the_page_can_be_typed_from_top_to_bottom(errand: Future[dict[str, Any]]) -> None:
    came = errand.result()
    assert came["typed"] >= 8
    assert came["jobs"] == len(JOBS)
    assert (came["by_action"]["SendMessage"], came["by_action"]["DeleteMessage"]) == (30, 20)
    assert came["messages"] >= 50
    assert came["still_there"] == 10
    assert came["findings"] == []
    assert came["queues"] == ["orders", "orders-dead"]
    assert "<svg" in came["report"]
