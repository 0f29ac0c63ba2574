"""The same command on a real Spark cluster: the package is shipped, a worker is killed, and every row is there once."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest

import penstock
from penstock.columnar.usage import USAGE
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.jobs.catalogue import JOBS
from penstock.pipeline.progress import Progress
from penstock.pipeline.runner import RunOptions, run_job
from penstock.pipeline.shipping import check_cluster, look_around, package_archive
from penstock.pipeline.warehouse.files import Files
from tests.pipeline.broker import Broker
from tests.pipeline.duck import answer
from tests.pipeline.rows import NOON, stream_of, usage_row
from tests.pipeline.standalone import SparkCluster, bare_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = 2_100
"""Two batches of 2,000 at most."""
ROWS_A_MESSAGE = 2
SECONDS = 600


def body(message: int) -> bytes:
    numbers = range(message * ROWS_A_MESSAGE, (message + 1) * ROWS_A_MESSAGE)
    return stream_of(
        USAGE,
        [
            usage_row(
                number,
                time=NOON + timedelta(seconds=number % 7200),
                user=f"user-{number % 3}",
                latency_us=number % 999,
            )
            for number in numbers
        ],
    )


def minutes(warehouse: Path) -> list[Any]:
    columns = "minute, user, requests, messages, bytes_in, latency_us_p50, latency_us_p99"
    place = f"read_parquet('{warehouse}/usage_minutes/**/*.parquet', hive_partitioning=true)"
    return answer(f"select {columns} from {place} order by all")


class Ran(NamedTuple):
    """A job on a cluster: the log it read, and the tables it made."""

    queue: str
    warehouse: Path


def a_job_on_a_cluster(directory: Path, broker: Broker) -> Ran:
    """With a worker killed after its first batch."""
    ran = Ran("standalone-rows", directory / "shared")
    with penstock.connect_blocking(broker.url, timeout=120) as client:
        queue = client.create_queue(ran.queue, consumption="log")
        with queue.producer() as producer:
            producer.send_many([body(number) for number in range(MESSAGES)])
    command = [sys.executable, "-m", "penstock.cli.main", "pipeline", "run", "usage", "--once", "--json"]
    command += ["--endpoint", broker.endpoint, "--queue", ran.queue, "--warehouse", str(ran.warehouse)]
    said = directory / "driver.log"
    with SparkCluster(directory / "cluster") as cluster, said.open("wb") as log:
        command += cluster.driver_options()
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=directory,  # other tests may go elsewhere meanwhile, to where soon nothing is
            env=cluster.driver_environment(),
        ) as driver:
            try:
                assert driver.stdout is not None
                events = (msgspec.json.decode(line)["event"] for line in driver.stdout)
                assert next(events, None) == "batch", said.read_text()
                cluster.workers.pop().kill()  # what was begun has tasks, kept rows and shuffled ones with it
                assert [*events][-1:] == ["done"], said.read_text()
                assert driver.wait(SECONDS) == 0, said.read_text()
            finally:
                driver.kill()
    return ran


@pytest.mark.beside
@pytest.mark.background(work=a_job_on_a_cluster)
def test_a_cluster_makes_the_tables_that_one_process_makes_though_a_worker_is_killed(
    spark: SparkSession, broker: Broker, background: Future[Ran], tmp_path: Path
) -> None:
    queue, shared = background.result()
    run_job(spark, JOBS["usage"], RunOptions(broker.endpoint, str(tmp_path), queue=queue), Progress("usage"))
    expected = minutes(tmp_path)
    assert sum(row[2] for row in expected) == MESSAGES * ROWS_A_MESSAGE
    assert minutes(shared) == expected


def test_a_worker_without_the_packages_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks run the Python that the context names; for the rest the session of the tests is as good as a cluster."""
    files = Files(spark, str(tmp_path / "warehouse"))
    shipped = str(package_archive())
    for packages in (True, False):
        python = bare_python(tmp_path / f"python-{packages}", packages=packages, shipped=shipped)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
        if packages:
            check_cluster(spark, files)
            continue
        with pytest.raises(PipelineError, match="has no msgspec and no numpy") as caught:
            check_cluster(spark, files)
        assert "pip install 'penstock[spark]'" in str(caught.value)
    assert not list((tmp_path / "warehouse").glob(".seen*")), "nothing was left behind"


def test_a_warehouse_that_workers_do_not_see_is_named(tmp_path: Path) -> None:
    assert look_around(None).shared
    assert look_around(str(tmp_path)).shared
    assert not look_around(str(tmp_path / "elsewhere")).shared
