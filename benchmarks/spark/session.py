"""A Spark session to measure in: two cores on this machine, as the targets say, and what it holds in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.process_tree import cpu_seconds, descendants, peak_bytes
from benchmarks.processes import BenchError
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES = 2
DRIVER_MEMORY = "1g"


class SparkBench:
    """A running session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        gateway = session.sparkContext._gateway
        if gateway is None:
            raise BenchError("Spark has no process of its own here")
        self._java: int = gateway.proc.pid

    def driver_bytes(self) -> int:
        """The most memory that Java, which is driver and executor at once, has held so far."""
        return peak_bytes(self._java)

    def worker_bytes(self) -> int:
        """The same for all its Python workers together, as far as they still live."""
        return sum(peak_bytes(process) for process in descendants(self._java))

    def java_cpu_seconds(self) -> float:
        """Processor time of Java so far."""
        return cpu_seconds(self._java)

    def worker_cpu_seconds(self) -> float:
        """The same for its Python workers."""
        return sum(cpu_seconds(process) for process in descendants(self._java))

    def read(self, url: str, queue: str, **options: str) -> DataFrame:
        """A queue's log."""
        endpoint = url.removeprefix("penstock://")
        reader = self.session.read.format("penstock").options(endpoint=endpoint, queue=queue, **options)
        return reader.load()

    def drain(self, frame: DataFrame) -> float:
        """Every row and column read and thrown away; the seconds it took."""
        began = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        return time.monotonic() - began


@contextmanager
def spark_bench(directory: Path, options: Mapping[str, str] | None = None) -> Iterator[SparkBench]:
    """A session of its own, ended afterwards. `options` are Spark's."""
    settings = {
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.sql.warehouse.dir": str(directory / "spark-warehouse"),
        **(options or {}),
    }
    try:
        session = spark_session("penstock bench", f"local[{CORES}]", settings)
    except PipelineError as error:
        raise BenchError(str(error)) from None
    try:
        yield SparkBench(session)
    except BenchError:
        raise
    except Exception as error:
        from pyspark.errors import PySparkException

        if not isinstance(error, PySparkException):
            raise
        raise BenchError(f"Spark: {str(error)[:500]}") from error
    finally:
        session.stop()
