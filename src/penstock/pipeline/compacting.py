"""Compaction of a job's tables while the job does not run."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.pipeline.jobs.job import Job
from penstock.pipeline.memory import Memory
from penstock.pipeline.rolling import Roller
from penstock.pipeline.warehouse import swapping
from penstock.pipeline.warehouse.compaction import Compacted
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.generation import generation_of
from penstock.pipeline.warehouse.lock import job_lock
from penstock.pipeline.warehouse.warehouse import Warehouse


def compact_job(spark: SparkSession, job: Job, warehouse: str) -> Compacted | None:
    """Everything that was rolled up becomes one directory a block; None: the job has no tables here.

    Raises `JobRunsError` while the job runs. Where no lock can tell, only full directories are touched.
    """
    files = Files(spark, warehouse)
    generation = generation_of(files, job.name)
    if generation is None:
        return None
    with job_lock(files.local, job.name):
        if files.local is not None:
            for table in job.tables:
                swapping.recover(files, table.name)
        roller = Roller(Warehouse(spark, files, generation), job, Memory(files, job.name, generation))
        return roller.compact(everything=files.local is not None)
