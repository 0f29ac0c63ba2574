"""All jobs, by name."""

from __future__ import annotations

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.jobs import audit, capacity, dead_letters, ledger, usage
from penstock.pipeline.jobs.job import Job

JOBS: dict[str, Job] = {
    job.name: job for job in (usage.JOB, audit.JOB, ledger.JOB, dead_letters.JOB, capacity.JOB)
}


def job_named(name: str) -> Job:
    """A job; raises with those there are."""
    if name not in JOBS:
        raise PipelineError(f"there is no job {name!r}: there are {', '.join(JOBS)}")
    return JOBS[name]
