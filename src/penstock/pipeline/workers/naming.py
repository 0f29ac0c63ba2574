"""Tells Spark which Python its processes run in, and starts the process pool that makes them start fast on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

_PYTHON = "spark.pyspark.python"
_HERE = Path(str(files("penstock.pipeline.workers")))


def name_python(settings: Mapping[str, str], master: str) -> None:
    """Spark's processes run the same Python as this process, unless it is configured."""
    if _PYTHON in settings:  # which Spark heeds only where it starts Python, and not where Python starts it
        os.environ["PYSPARK_PYTHON"] = settings[_PYTHON]
    if "PYSPARK_PYTHON" in os.environ:
        return
    quick = _HERE / "worker-python"
    if master.startswith("local") and os.access(quick, os.X_OK):
        os.environ["PENSTOCK_WORKER_PYTHON"] = sys.executable
        os.environ["PYSPARK_PYTHON"] = str(quick)
        os.environ["PENSTOCK_WORKER_POOL"] = worker_pool().place
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


class WorkerPool:
    """A process that forks others (`worker_pool.py`). It ends with this one."""

    def __init__(self) -> None:
        self._directory = TemporaryDirectory(prefix="penstock-workers-")  # which only this user may enter
        self.place = f"{self._directory.name}/socket"
        self.process = subprocess.Popen(
            [sys.executable, str(_HERE / "worker_pool.py"), self.place],
            stdin=subprocess.PIPE,  # which ends with this process
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # whose Ctrl-C is not for it
        )


@cache
def worker_pool() -> WorkerPool:
    """The one of this process."""
    return WorkerPool()
