"""A Spark cluster on this machine: a master and workers from the pyspark package, in processes of their own.

Its workers' Python has the packages of others, and no Penstock: what runs there was sent by the driver.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self

import pyspark

from penstock.pipeline.java import find_java
from tests.pipeline.quick_spark import QUICK_JAVA

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_MASTER_UP = r"Starting Spark master at (spark://\S+)"
_WORKER_UP = r"(Successfully registered) with master"
_LOOPBACK = "127.0.0.1"


class Daemon:
    """A master or a worker, with what it starts in the same group of processes."""

    def __init__(self, wanted: str, *arguments: str, directory: Path, environment: dict[str, str]) -> None:
        """`wanted` is the pattern of what it says once it is up."""
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        self._process = subprocess.Popen(
            [program, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=directory,
            env=environment,
            start_new_session=True,
        )
        self._wanted = wanted
        self._found: SimpleQueue[str | None] = SimpleQueue()
        self._said: list[str] = []
        self._reader = Thread(target=self._read, name="what a daemon says")
        self._reader.start()

    @property
    def process_id(self) -> int:
        """Its own; also that of the session which all that it starts belongs to."""
        return self._process.pid

    def up(self) -> str:
        """Waits until it is; the first group of what it said then."""
        found = self._found.get()
        assert found is not None, f"it ended with {self._process.wait()}:\n{''.join(self._said)}"
        return found

    def kill(self) -> None:
        """With signal 9, and so its executors; nothing is cleared up."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        """To the end: nobody else empties the pipe."""
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._said.append(line)
                found = re.search(self._wanted, line)
                if found:
                    self._found.put(found[1])
        self._found.put(None)


class SparkCluster:
    """A master and two workers of one core each; inside the block they are up."""

    WORKERS = 2

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.workers: list[Daemon] = []

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True)
        run = partial(Daemon, directory=self._directory, environment=self._environment())
        common = ("--host", _LOOPBACK, "--port", "0", "--webui-port", "0")
        self._master = run(_MASTER_UP, _MASTER, *common)
        self.url = self._master.up()
        size = ("--cores", "1", "--memory", "600m")
        for number in range(self.WORKERS):
            place = ("--work-dir", str(self._directory / f"worker-{number}"))
            arguments = (_WORKER, *common, *size, *place, self.url)
            self.workers.append(run(_WORKER_UP, *arguments))
        for worker in self.workers:
            worker.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for daemon in (*self.workers, self._master):
            daemon.kill()

    def driver_environment(self) -> dict[str, str]:
        """For a driver, whose workers run the bare Python."""
        python = bare_python(self._directory / "python", packages=True)
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
            "SPARK_LOCAL_IP": _LOOPBACK,
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }

    def driver_options(self) -> list[str]:
        """Of `penstock pipeline run`."""
        settings = {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.driver.memory": "512m",
            "spark.driver.host": _LOOPBACK,
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.executor.extraJavaOptions": QUICK_JAVA,
        }
        options = ["--master", self.url]
        for name, value in settings.items():
            options += ["--conf", f"{name}={value}"]
        return options

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "JAVA_HOME": str(find_java()),
            "SPARK_LOCAL_IP": _LOOPBACK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
        }


def bare_python(program: Path, *, packages: bool, shipped: str = "") -> Path:
    """A Python with the packages of others that are installed here, and without Penstock; or without any.

    `shipped`: a zip that it finds all the same, where no cluster brings it.
    """
    places = [sysconfig.get_path("purelib")] if packages else []
    path = ":".join([*places, *filter(None, [shipped]), "$PYTHONPATH"])
    # -S: files that add directories to the path, as the one that adds this repository, are not looked at.
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    return program
