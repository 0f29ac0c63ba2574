"""Compaction and expiry of a job's tables while the job does not run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import SparkSession

from penstock.pipeline.job_state import JobState
from penstock.pipeline.jobs.job import Job
from penstock.pipeline.rolling import Roller
from penstock.pipeline.warehouse import swapping
from penstock.pipeline.warehouse.compaction import Compacted
from penstock.pipeline.warehouse.expiry import FOR_EVER, Keep
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.generation import generation_of
from penstock.pipeline.warehouse.lock import job_lock
from penstock.pipeline.warehouse.warehouse import Warehouse


class Tidied(NamedTuple):
    """What was done to the tables of a job."""

    compacted: Compacted
    expired: int
    """Directories that lost rows, or went, because those were too old."""


def compact_job(
    spark: SparkSession, job: Job, warehouse: str, keep: Keep = FOR_EVER, now: datetime | None = None
) -> Tidied | None:
    """Removes old rows, and combines everything that was rolled up into one directory for each block; None: the job has no
    tables here.

    Raises `JobRunsError` while the job runs. If there is no lock that shows this, only full directories are changed.
    """
    files = Files(spark, warehouse)
    generation = generation_of(files, job.name)
    if generation is None:
        return None
    with job_lock(files.local, job.name):
        alone = files.local is not None
        if alone:
            for table in job.tables:
                swapping.recover(files, table.name)
        roller = Roller(Warehouse(spark, files, generation), job, JobState(files, job.name, generation))
        expired = roller.expire(keep, now or datetime.now(UTC), everything=alone)
        return Tidied(roller.compact(everything=alone), expired)
