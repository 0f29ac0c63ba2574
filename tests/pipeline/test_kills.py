"""A driver that is killed with signal 9 writes every row once; `make pipeline-kills` does it often, and to executors too."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.pipeline.jobs.catalogue import JOBS
from penstock.pipeline.progress import Progress
from penstock.pipeline.runner import RunOptions, run_job
from penstock.pipeline.warehouse import places
from tests.pipeline.broker import Broker
from tests.pipeline.kills import QUEUE, Killing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def a_driver_killed(directory: Path, broker: Broker) -> Killing:
    """It follows, and is killed at a moment that nobody chose."""
    killing = Killing("usage", ["driver"], 4711, directory)
    killing.kill(broker.url)
    return killing


@pytest.mark.slow
@pytest.mark.errand(work=a_driver_killed)
def test_a_driver_killed_at_any_moment_writes_every_row_once(
    spark: SparkSession, broker: Broker, errand: Future[Killing], monkeypatch: pytest.MonkeyPatch
) -> None:
    killing = errand.result()
    monkeypatch.setattr(places, "SPAN_BATCHES", 3)  # as the driver that is killed has them
    monkeypatch.setattr(places, "BLOCK_SPANS", 2)
    # In the session of all tests: who goes on with a warehouse need not be who was killed.
    progress = Progress("usage")
    options = RunOptions(broker.endpoint, str(killing.warehouse), queue=QUEUE)
    run_job(spark, JOBS["usage"], options, progress)
    assert progress.missing == 0
    balance = killing.compared()
    assert balance.sums.rows > 0
    assert balance.counts == {"driver": 1}
