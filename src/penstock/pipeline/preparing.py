"""`penstock pipeline prepare`: a preparation, done once, that makes later runs start faster.

Java archives the classes of Spark that it has loaded (`class_archive.py`). Running jobs with few rows, against a temporary
server, loads the needed classes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import NamedTuple

import msgspec

import penstock
from penstock.model.errors import ErrorCode, PenstockError
from penstock.pipeline.class_archive import RECORDING, archive_path, write_archive
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.java import find_java
from penstock.pipeline.jobs.catalogue import JOBS
from penstock.pipeline.progress import Progress
from penstock.pipeline.runner import RunOptions, run_job
from penstock.pipeline.session import JAVA_OPTIONS, running_session

_JOBS = ("usage", "ledger")
"""One for each log; the others need no further classes that are worth a run."""
_MESSAGES = 10
_LOOK_SECONDS, _LOOKS = 0.1, 300
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a process that lives for seconds. It loads the same classes."""


class Prepared(NamedTuple):
    """The present archive."""

    archive: Path
    is_new: bool


def prepare() -> Prepared:
    """Takes half a minute, or no time where it was done before. Raises `PipelineError` where it cannot be done."""
    java_home = find_java()
    there = archive_path(java_home)
    if there is not None:
        return Prepared(there, is_new=False)
    options = {JAVA_OPTIONS: f"{RECORDING} {_QUICK}", "spark.sql.shuffle.partitions": "2"}
    with TemporaryDirectory(prefix="penstock-prepare-") as directory:
        place = Path(directory)
        options["spark.sql.warehouse.dir"] = str(place / "spark")
        with (
            _server(place / "data") as url,
            running_session("penstock prepare", "local[2]", options) as spark,
        ):
            _make_rows(url)
            endpoint = url.removeprefix("penstock://")
            for name in _JOBS:
                run_job(spark, JOBS[name], RunOptions(endpoint, str(place / "warehouse")), Progress(name))
            return Prepared(write_archive(spark, java_home), is_new=True)


@contextmanager
def _server(data: Path) -> Iterator[str]:
    """A temporary `penstock serve` on this machine; its address."""
    command = [sys.executable, "-m", "penstock.cli.main", "serve", "--json", "--listen", "127.0.0.1:0"]
    command += ["--sqs-listen", "off", "--monitoring-listen", "off", "--durability", "os"]
    command += ["--data", str(data), "--log-level", "warning"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise PipelineError("`penstock serve` did not start; its error is above")
            yield msgspec.json.decode(line)["url"]
        finally:
            process.terminate()


def _make_rows(url: str) -> None:
    """Of both logs: a few messages come and go."""
    with penstock.connect_blocking(url) as client:
        queue = client.create_queue("prepare", lifecycle=True)
        queue.send_batch([b"message"] * _MESSAGES)
        for message in queue.receive(max_messages=_MESSAGES // 2, wait=5):
            message.delete()
        wanted = {JOBS[name].queue for name in _JOBS}
        never = Event()
        for _ in range(_LOOKS):
            wanted = {name for name in wanted if not _has_rows(client, name)}
            if not wanted:
                return
            never.wait(_LOOK_SECONDS)
    raise PipelineError(f"no rows came to {' and '.join(sorted(wanted))}")


def _has_rows(client: penstock.BlockingClient, log: str) -> bool:
    """They are written some time after the request."""
    try:
        return bool(client.queue(log).log().read(1))
    except PenstockError as error:
        if error.code is not ErrorCode.QUEUE_NOT_FOUND:
            raise
        return False
