"""Ships this Penstock from the driver to a Spark cluster, and checks the executors before work begins.

Penstock's own Python is shipped as a zip. Other packages have compiled parts, so they must be installed where executors
run. A missing one would only be noticed in the middle of a batch, and files that executors write on their own disks would
be lost without a notice.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import socket
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from penstock.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipeline.warehouse.files import Files

NEEDED = ("msgspec", "numpy", "pyarrow", "pandas")
"""Packages of others that tasks import."""
_EXECUTORS_PATH = "spark.executorEnv.PYTHONPATH"
_LOOKS = 8
"""Tasks that look around: executors there are first get some each."""


def is_cluster(master: str) -> bool:
    """Whether executors are elsewhere than in the driver's own process."""
    return not master.startswith("local")


def prepare_shipping(settings: dict[str, str]) -> None:
    """Before the session is made: sets where Python finds the shipped files.

    Spark tells tasks about shipped files, but not the process in which the driver keeps a streaming source. That one gets
    the driver's environment, and executors a path within the directory in which they run.
    """
    archive = package_archive()
    os.environ["PYTHONPATH"] = _before(str(archive), os.environ.get("PYTHONPATH"))
    settings[_EXECUTORS_PATH] = _before(archive.name, settings.get(_EXECUTORS_PATH))


def ship(session: SparkSession) -> None:
    """Executors import what the driver runs, independent of their installation. Must come before the source is registered."""
    session.sparkContext.addPyFile(str(package_archive()))


def _before(first: str, others: str | None) -> str:
    known = others.split(os.pathsep) if others else []
    return os.pathsep.join([first, *(one for one in known if one != first)])


@cache
def package_archive() -> Path:
    """A zip of the package, there until this process ends; its name changes with its content."""
    package = Path(__file__).resolve().parents[1]
    paths = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".properties"))
    if not paths:
        raise PipelineError(
            f"Penstock's own files are not in {package}, so they cannot be sent to Spark's workers"
        )
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    archive = Path(_directory().name) / f"penstock-{digest.hexdigest()[:12]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for path in paths:
            zipped.write(path, Path("penstock") / path.relative_to(package))
    return archive


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="penstock-package-")


class SeenEnvironment(NamedTuple):
    """What a task found where it ran."""

    host: str
    missing: tuple[str, ...]
    shared: bool


def check_cluster(session: SparkSession, files: Files) -> None:
    """Raises `PipelineError` where workers lack packages, or do not see the warehouse that the driver writes."""
    marker = None
    if files.local is not None:
        marker = f".seen-by-workers-{uuid4().hex}"
        files.write_text(marker, "")
    place = None if marker is None else f"{files.local}/{marker}"

    def look(_: Iterable[int]) -> Iterator[SeenEnvironment]:
        yield look_around(place)

    try:
        found = set(session.sparkContext.parallelize(range(_LOOKS), _LOOKS).mapPartitions(look).collect())
    finally:
        if marker is not None:
            files.remove(marker)
    for one in sorted(found):
        if one.missing:
            raise PipelineError(
                f"the Python of Spark's worker on {one.host} has no {' and no '.join(one.missing)}. Penstock itself is sent "
                "there, other packages are not: install them with pip install 'penstock[spark]' in the Python that "
                "PYSPARK_PYTHON names, on every worker"
            )
        if not one.shared:
            raise PipelineError(
                f"Spark's worker on {one.host} does not see the warehouse {files.local}, so what it writes would be lost. Put "
                "the warehouse where all of them see it: a shared directory, or a path such as s3a://bucket/path"
            )


def look_around(place: str | None) -> SeenEnvironment:
    """In a task: which packages are missing, and whether the file is there."""
    missing = tuple(name for name in NEEDED if importlib.util.find_spec(name) is None)
    return SeenEnvironment(socket.gethostname(), missing, place is None or os.path.exists(place))
