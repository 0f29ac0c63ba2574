"""Generations: which checkpoint the rows of a job's tables belong to.

Spark's checkpoint says how far the log was read, the warehouse has the results: only together are they exact. Each
contains the same random word. If one of them is missing or does not match, continuing would duplicate or lose rows, so
nothing is done without an explicit option.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.warehouse import paths
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.notes import read_note
from penstock.pipeline.warehouse.swapping import abandon
from penstock.pipeline.warehouse.table import WarehouseTable

_CHECKPOINT_FILE = "penstock.json"
_REMOVING = "removing"


def generation_of(files: Files, job: str) -> str | None:
    """The generation of a job's tables; None: it has never run into this warehouse."""
    return _word(files, _job_file(job))


def generation_through(checkpoint: Files) -> str | None:
    """The generation of the tables that a checkpoint belongs to; None: it is new."""
    return _word(checkpoint, _CHECKPOINT_FILE)


def begin_generation(
    files: Files, checkpoint: Files, job: str, tables: Sequence[WarehouseTable], *, rebuild: bool = False
) -> str:
    """The generation to continue with, or a new one. `rebuild`: everything is removed and made again."""
    if rebuild and _is_damaged(files, _job_file(job)):
        files.remove(_job_file(job))  # without it, and with any checkpoint, only a rebuild can continue
    if rebuild or half_removed(files, job) is not None:
        _forget(files, checkpoint, job, tables)
    in_warehouse = generation_of(files, job)
    in_checkpoint = generation_through(checkpoint)
    if in_checkpoint is None and (in_warehouse is None or not _has_rows(files, tables, in_warehouse)):
        # The warehouse is written first: a crash in between leaves a word without rows, which is used here.
        generation = in_warehouse or f"g{uuid.uuid4().hex[:10]}"
        files.write_text(_job_file(job), json.dumps({"generation": generation}))
        checkpoint.write_text(_CHECKPOINT_FILE, json.dumps({"generation": generation, "job": job}))
        return generation
    if in_checkpoint is None:
        raise PipelineError(
            f"the tables of job {job} in {files.root} were filled through a checkpoint that is not at {checkpoint.root}. "
            "Name it with --checkpoint, or rebuild the tables from what the log still has with --rebuild"
        )
    if in_warehouse != in_checkpoint:
        raise PipelineError(
            f"the checkpoint {checkpoint.root} belongs to another warehouse than {files.root}, or to tables of job {job} "
            "that are gone. Name another one with --checkpoint, or rebuild the tables with --rebuild"
        )
    return in_checkpoint


def _forget(files: Files, checkpoint: Files, job: str, tables: Sequence[WarehouseTable]) -> None:
    """The intention is recorded first: otherwise a run after a crash would continue with half of the tables."""
    # A checkpoint that a crash has left in part may lack the word that identifies it.
    ours = half_removed(files, job) == checkpoint.root or checkpoint.read_text(_CHECKPOINT_FILE) is not None
    note = {"generation": generation_of(files, job) or "", _REMOVING: checkpoint.root if ours else ""}
    files.write_text(_job_file(job), json.dumps(note))
    for table in tables:
        abandon(files, table.name)
        files.remove(table.name)
    files.remove(f"{paths.STATE}/{job}")
    if ours:
        checkpoint.remove("")
    files.remove(_job_file(job))


def half_removed(files: Files, job: str) -> str | None:
    """The checkpoint that a removal which a crash cut short was to remove, empty if none; None: there was no such."""
    noted = (read_note(files, _job_file(job)) or {}).get(_REMOVING)
    return None if noted is None else str(noted)


def _is_damaged(files: Files, path: str) -> bool:
    try:
        read_note(files, path)
    except PipelineError:
        return True
    return False


def _job_file(job: str) -> str:
    return f"{paths.JOBS}/{job}.json"


def _has_rows(files: Files, tables: Sequence[WarehouseTable], generation: str) -> bool:
    return any(files.exists(paths.generation_directory(table.name, generation)) for table in tables)


def _word(files: Files, path: str) -> str | None:
    note = read_note(files, path)
    return None if note is None else str(note.get("generation", ""))
