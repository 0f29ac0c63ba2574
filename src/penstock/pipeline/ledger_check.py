"""The ledger's full check: all rows that were ever reported, at once, compared with the findings of roll-ups."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.pipeline.job_state import JobState
from penstock.pipeline.jobs import ledger_tables as tables
from penstock.pipeline.jobs.ledger import JOB, check_everything
from penstock.pipeline.server_facts import server_facts_of
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.generation import generation_of
from penstock.pipeline.warehouse.warehouse import Warehouse


def count_findings(spark: SparkSession, warehouse: str) -> int:
    """How many findings roll-ups have made so far."""
    opened = _opened(spark, warehouse)
    return 0 if opened is None else opened.read(tables.FINDINGS).count()


def check_ledger(spark: SparkSession, warehouse: str, endpoint: str) -> int:
    """Fills the table `ledger_check`; returns how many findings it has."""
    opened = _opened(spark, warehouse)
    if opened is None:
        return 0
    memory = JobState(opened.files, JOB.name, opened.generation)
    last = memory.last_batch()
    around = server_facts_of(endpoint)._replace(gaps=tuple(memory.seen_by(last).gaps()))
    found = check_everything(opened.read(tables.ROWS), around)
    opened.replace_whole(tables.CHECK, found, max(0, last))
    return opened.read(tables.CHECK).count()


def _opened(spark: SparkSession, warehouse: str) -> Warehouse | None:
    files = Files(spark, warehouse)
    generation = generation_of(files, JOB.name)
    return None if generation is None else Warehouse(spark, files, generation)
