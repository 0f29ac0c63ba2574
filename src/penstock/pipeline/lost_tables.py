"""Detects lost tables before a run adds to the rest of them.

A checkpoint says that rows were read. If the table with them is lost they are not read again, and every roll-up of the
rest is too small. So a run first checks whether everything that was written is still there.
"""

from __future__ import annotations

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.job_state import JobState
from penstock.pipeline.jobs.job import Job
from penstock.pipeline.warehouse import paths
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.generation import generation_of, generation_through, half_removed
from penstock.pipeline.warehouse.swapping import being_replaced
from penstock.pipeline.warehouse.table import WarehouseTable

_COMMITS = "commits"
"""Spark's notes, inside a checkpoint, about every batch that is done."""


def check_nothing_is_lost(files: Files, checkpoint: Files, job: Job) -> None:
    """Raises `PipelineError` where a table that has been written, or the job's memory, is not there; changes nothing."""
    generation = generation_of(files, job.name)
    if generation is None or half_removed(files, job.name) is not None:
        return  # nothing was written yet, or all of it is being removed
    state = JobState(files, job.name, generation)
    lost = [table.name for table in _written(state, job) if not _is_there(files, table, generation)]
    if lost:
        raise PipelineError(
            f"{_named(lost)} of job {job.name} {'is' if len(lost) == 1 else 'are'} gone from {files.root}, though rows were "
            f"written there. Put {'it' if len(lost) == 1 else 'them'} back, or rebuild all tables of the job from the rows that "
            "the log still has, with --rebuild. Nothing was changed"
        )
    if generation_through(checkpoint) == generation and state.last_batch() < 0 and checkpoint.files(_COMMITS):
        raise PipelineError(
            f"{files.uri(paths.state_directory(job.name, generation))}, where job {job.name} records which rows it has seen, "
            "is missing: continuing would count rows twice. Put it back, or rebuild all tables of the job from the rows that the "
            "log still has, with --rebuild. Nothing was changed"
        )


def _written(state: JobState, job: Job) -> list[WarehouseTable]:
    """The tables that have been written. Warehouses of earlier versions have no note of it, but one thing is certain there:
    every batch that had rows was added to all tables that batches are added to."""
    noted = state.written_tables()
    batch_tables = {table.name for table in job.batch_tables}
    if not noted & batch_tables and state.seen_by(state.last_batch()).stretches:
        noted |= batch_tables
    return [table for table in job.tables if table.name in noted]


def _is_there(files: Files, table: WarehouseTable, generation: str) -> bool:
    directory = paths.generation_directory(table.name, generation)
    if files.exists(directory) and (table.filling == "days" or files.directories(directory)):
        return True
    if table.filling == "days" and not files.renames_whole:
        return True  # object stores have no empty directories: it may be that all of its days were too old
    return bool(being_replaced(files, table.name))  # a run was killed meanwhile, and this run completes it


def _named(tables: list[str]) -> str:
    return f"the table {tables[0]}" if len(tables) == 1 else f"the tables {', '.join(tables)}"
