"""The Spark session: finds Java, names Python, is quiet, uses UTC, and registers the source."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING

from penstock.pipeline.class_archive import archive_options, quoted
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.java import find_java
from penstock.pipeline.shipping import is_cluster, prepare_shipping, ship
from penstock.pipeline.workers.naming import name_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.log.structuredLogging.enabled": "false",
    # Records the line that made every column of every plan: half a second a job, of no use to users.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # For how long Python and Java wait for each other where rows are handed over: a busy machine may need more than 15 s.
    "spark.python.authenticate.socketTimeout": "120s",
    # Slices of a log are some 10,000 messages; fewer rows a batch would only mean more batches.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
}


def spark_session(
    name: str, master: str = "local[*]", options: Mapping[str, str] | None = None
) -> SparkSession:
    """A session in which `format("penstock")` is known; the one that runs already, if there is one.

    `options` are Spark's own settings and win over what is set here. Executors of a cluster are sent this Penstock. Raises
    `PipelineError` where PySpark or Java is missing.
    """
    session_class = _session_class()
    settings = {**_SETTINGS, **(options or {})}
    if session_class.getActiveSession() is None:
        java_home = find_java()
        os.environ["JAVA_HOME"] = str(java_home)
        name_python(settings, master)
        if is_cluster(master):
            prepare_shipping(settings)
        given = settings.get(JAVA_OPTIONS, "")
        settings[JAVA_OPTIONS] = " ".join((given, _quiet(), archive_options(java_home, given))).strip()
    builder = session_class.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    if is_cluster(master):
        ship(session)
    register(session)
    return session


@contextmanager
def running_session(
    name: str, master: str = "local[*]", options: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session for a block; it ends with the block, unless it existed before and belongs to the caller."""
    ran_before = _session_class().getActiveSession() is not None
    session = spark_session(name, master, options)
    try:
        yield session
    finally:
        if not ran_before:
            session.stop()


def register(session: SparkSession) -> None:
    """Makes `format("penstock")` known to a session that was made elsewhere."""
    from penstock.pipeline.source.data_source import PenstockDataSource

    session.dataSource.register(PenstockDataSource)


def _session_class() -> type[SparkSession]:
    missing = [name for name in ("pyspark", "pyarrow", "pandas") if importlib.util.find_spec(name) is None]
    if missing:
        raise PipelineError(
            f"the data pipeline needs {' and '.join(missing)}, which this Python does not have. "
            "Install what is missing with: pip install 'penstock[spark]'"
        )
    from pyspark.sql import SparkSession

    return SparkSession


def _quiet() -> str:
    return quoted(f"-Dlog4j2.configurationFile={files('penstock.pipeline') / 'quiet.properties'}")
