"""The job `audit`: every request as one row of a trail that is append-only, by day."""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.columnar.usage import USAGE, USAGE_QUEUE
from penstock.pipeline.jobs.job import Job, Reader, Rolled, ServerFacts, Tables, gap_table
from penstock.pipeline.statement import select
from penstock.pipeline.warehouse.audit_table import AUDIT

GAPS = gap_table("audit_gaps", "front_end", "The front end that numbered them.")


def trail(rows: DataFrame) -> DataFrame:
    """Rows of usage as rows of the trail."""
    return select("select *, to_date(time) as day from {rows}", rows=rows)


def _batch(rows: DataFrame) -> Tables:
    return {AUDIT.name: trail(rows)}


def _roll(reader: Reader, server_facts: ServerFacts) -> Rolled:
    return Rolled()


JOB = Job(
    name="audit",
    sentence="An append-only trail of every request, by day; `penstock audit query` searches it.",
    queue=USAGE_QUEUE,
    rows=USAGE,
    writer="front_end",
    tables=(AUDIT, GAPS),
    batch=_batch,
    roll=_roll,
)
