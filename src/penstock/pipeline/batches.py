"""One micro-batch: finds the new rows, adds the job's rows to its tables, remembers the numbers, in this order."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from penstock.columnar.lifecycle import LIFECYCLE, Change
from penstock.pipeline.job_state import JobState
from penstock.pipeline.jobs.job import Job
from penstock.pipeline.numbers import sort_out
from penstock.pipeline.warehouse.warehouse import Warehouse

ROWS_A_FILE = 500_000
FEW_ROWS = 20_000
"""So many are written by this process itself."""
_LINK_COLUMNS = ("log_partition", "log_sequence")
_LEFT_OUT = {LIFECYCLE.name: f"case when change = {int(Change.RENUMBERED)} then first end"}
"""By the table of a job's rows: before which of them numbers were left out, and from which number on."""


class StoppedError(Exception):
    """The run was asked to stop before this batch began; the next run processes it."""


class BatchDone(NamedTuple):
    """The result of a batch."""

    batch: int
    rows: int
    repeated: int
    seconds: float
    latest: datetime | None
    """The time of its youngest row."""


class Batches:
    """The function that Spark calls for every micro-batch, in a separate thread."""

    def __init__(
        self, warehouse: Warehouse, job: Job, memory: JobState, done: Callable[[BatchDone], None]
    ) -> None:
        self._warehouse = warehouse
        self._job = job
        self._state = memory
        self._done = done
        self._busy = Lock()
        self._stopping = False

    def stop(self) -> None:
        """No batch begins any more; returns when the one that runs is done."""
        self._stopping = True
        with self._busy:
            pass

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """One batch."""
        with self._busy:
            if self._stopping:
                raise StoppedError
            if batch <= self._state.last_batch():
                return  # Spark did not get to note it
            self._add(rows, batch)

    def _add(self, rows: DataFrame, batch: int) -> None:
        begun = time.monotonic()
        # A batch is planned once: planning it again at every stage costs more than it could save.
        rows.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")
        kept = rows.drop(*_LINK_COLUMNS).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            before = self._state.seen_before(batch)
            found = sort_out(kept, self._job.writer, "number", before, _LEFT_OUT.get(self._job.rows.name, ""))
            if found.rows:
                made = self._job.batch(found.fresh)
                for table in self._job.batch_tables:
                    parts = 1 + found.rows // ROWS_A_FILE
                    few = found.rows <= FEW_ROWS
                    self._warehouse.add_batch(table, batch, made[table.name], parts=parts, few=few)
                    self._state.note_table(table.name)
            self._state.finish_batch(batch, found.seen)
        finally:
            kept.unpersist()
        taken = time.monotonic() - begun
        self._done(BatchDone(batch, found.rows, found.repeated, taken, found.latest))
