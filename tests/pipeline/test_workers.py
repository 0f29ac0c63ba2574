"""Spark's Python processes on this machine: forked where everything is imported, and to Spark like any that it has started."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.pipeline.workers import naming, pool_client, worker_pool
from tests.pipeline.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKED = [sys.executable, "-I", "-S", pool_client.__file__, "-m", "a_source", "one", "two"]
WHO_AM_I = """
import os, sys
known = "penstock.pipeline.source.data_source" in sys.modules
print(os.getppid(), os.getcwd(), sys.argv[1:], os.environ["WHO"], known, sys.stdin.read(), flush=True)
print("trouble", file=sys.stderr)
sys.exit(3)
"""
WAITS = """
import os, threading
print(os.getpid(), flush=True)
threading.Event().wait()
"""


class Pool:
    """A pool of workers, and a directory with what is run in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process = subprocess.Popen(
            [sys.executable, worker_pool.__file__, self.place], stdin=subprocess.PIPE
        )

    @property
    def place(self) -> str:
        return f"{self.directory}/socket"

    def environment(self) -> dict[str, str]:
        told = {"PENSTOCK_WORKER_POOL": self.place, "PENSTOCK_WORKER_PYTHON": sys.executable, "WHO": "me"}
        return os.environ | told | {"PYTHONPATH": str(self.directory)}

    def start(self, program: str) -> subprocess.Popen[str]:
        """Something that is run there, as Spark starts it."""
        (self.directory / "a_source.py").write_text(program)
        pipe = subprocess.PIPE
        return subprocess.Popen(
            ASKED, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd="/", env=self.environment()
        )

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture
def a_pool(tmp_path: Path) -> Iterator[Pool]:
    """One that listens."""
    found = Pool(tmp_path)
    while not os.path.exists(found.place):
        assert found.process.poll() is None
        os.sched_yield()
    yield found
    if found.process.poll() is None:
        found.end()


def test_a_process_is_forked_with_everything_that_was_given_to_its_stand_in(a_pool: Pool) -> None:
    process = a_pool.start(WHO_AM_I)
    said, trouble = process.communicate("a line")
    assert said == f"{a_pool.process.pid} / ['one', 'two'] me True a line\n"
    assert trouble == "trouble\n"
    assert process.returncode == 3


def test_what_a_process_dies_of_is_said(a_pool: Pool) -> None:
    process = a_pool.start("raise ValueError('no source')")
    _, trouble = process.communicate()
    assert "ValueError: no source" in trouble
    assert process.returncode == 1


def test_it_ends_with_the_process_that_spark_ends(a_pool: Pool) -> None:
    process = a_pool.start(WAITS)
    assert process.stdout is not None
    child = os.pidfd_open(int(process.stdout.readline()))
    process.kill()
    process.communicate()
    assert select.select([child], [], [], 60)[0], "it goes on"
    os.close(child)


def test_without_a_pool_it_is_an_ordinary_python(a_pool: Pool) -> None:
    a_pool.end()
    process = a_pool.start(WHO_AM_I)
    said, _ = process.communicate("a line")
    assert said == f"{os.getpid()} / ['one', 'two'] me False a line\n"
    assert process.returncode == 3


def test_the_process_of_a_stream_comes_from_there(spark: SparkSession, broker: Broker) -> None:
    process = naming.worker_pool().process
    queue = broker.new_log()
    queue.send_batch(["1"])
    seen: list[int] = []

    def look(rows: object, batch: int) -> None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        seen.append(len(children.split()))

    stream = broker.follow(spark, queue.name).writeStream.foreachBatch(look)
    stream.trigger(availableNow=True).start().awaitTermination()
    assert seen
    assert min(seen) >= 1
