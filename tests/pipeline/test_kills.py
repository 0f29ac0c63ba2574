"""A driver that is killed with signal 9 loses and doubles nothing; `make pipeline-kills` does it often, and to executors too."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import penstock
from penstock.pipeline.jobs.catalogue import JOBS
from penstock.pipeline.progress import Progress
from penstock.pipeline.runner import RunOptions, run_job
from tests.pipeline.broker import Broker
from tests.pipeline.killed_driver import Copy, Driver
from tests.pipeline.killed_rows import Sums, Writer, check_no_row_twice, check_sums, log_sums
from tests.pipeline.patience import patiently
from tests.pipeline.rows import LARGE_BODY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB, QUEUE = "usage", "killed-rows"
COPIED = 100


class Killed(NamedTuple):
    """What a driver was killed over: a warehouse that it filled, and one log that it copied into another."""

    warehouse: Path
    sums: Sums
    copy: Copy


def a_driver_killed(directory: Path, broker: Broker) -> Killed:
    """It follows one log, and stands still in the middle of a micro-batch of another, half of whose rows are on their way."""
    copy = Copy("killed-source", "killed-sink", directory / "checkpoint")
    warehouse = directory / "warehouse"
    with penstock.connect_blocking(broker.url, timeout=120) as client:
        source = client.create_queue(copy.source, consumption="log")
        # It goes on when its turn comes, which may be later than rows are told from others by default.
        sink = client.create_queue(copy.sink, consumption="log", deduplication_window=timedelta(days=1))
        source.send_batch([f"{number}".ljust(LARGE_BODY) for number in range(COPIED)])
        queue = client.create_queue(QUEUE, consumption="log")
        driver = Driver(JOB, broker.url, QUEUE, warehouse, copy=copy)
        writer, seen = None, list[int]()
        try:
            while len(seen) < 25:  # some are there before it is killed
                assert driver.process.poll() is None, "the driver has ended by itself"
                seen += [int(body) for body in sink.log().read(len(seen) + 1, wait=1).bodies()]
            writer = Writer(queue, seed=4711)
            driver.go_on()
            driver.batches(2)
        finally:
            driver.kill()
            if writer is not None:
                writer.stop()
        sums = log_sums(queue)
    assert sums == writer.sums, "the log has what was acknowledged"
    check_no_row_twice(JOB, warehouse)
    assert seen == list(range(len(seen)))
    assert len(seen) <= 50
    assert not list((copy.checkpoint / "commits").glob("[0-9]*")), "the micro-batch was not finished"
    return Killed(warehouse, sums, copy)


@pytest.mark.beside
@pytest.mark.background(work=a_driver_killed)
def test_a_driver_killed_at_any_moment_writes_every_row_once(
    spark: SparkSession, broker: Broker, background: Future[Killed]
) -> None:
    killed = background.result()
    # In the session of all tests: who goes on with a warehouse need not be who was killed.
    progress = Progress(JOB)
    run_job(spark, JOBS[JOB], RunOptions(broker.endpoint, str(killed.warehouse), queue=QUEUE), progress)
    assert progress.missing == 0
    assert killed.sums.rows > 0
    check_sums(JOB, killed.warehouse, killed.sums)


@pytest.mark.beside
@pytest.mark.background(work=a_driver_killed)
def test_a_query_killed_in_the_middle_of_a_micro_batch_goes_on_without_a_loss_or_a_double(
    spark: SparkSession, broker: Broker, background: Future[Killed]
) -> None:
    source, sink, checkpoint = background.result().copy

    def resume() -> None:
        query = (
            broker.follow(spark, source)
            .select("body")
            .writeStream.format("penstock")
            .options(endpoint=broker.endpoint, queue=sink, checkpointLocation=str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    patiently(resume)
    assert sorted(map(int, broker.bodies(sink))) == list(range(COPIED))
    broker.client.queue(source).send_batch([f"{COPIED}"])
    patiently(resume)
    assert sorted(map(int, broker.bodies(sink))) == list(range(COPIED + 1))
