"""`penstock pipeline`: jobs of the data pipeline: list, look, run, report, compact, prepare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.exits import reported
from penstock.cli.output import error_console, print_facts, print_hint, print_json, print_line, print_table
from penstock.cli.parameters import Json
from penstock.cli.pipeline.job_command import (
    DEFAULT_WAREHOUSE,
    JobName,
    KeptFor,
    Settings,
    WarehousePath,
    counted,
    keep_of,
    pipeline_errors,
    settings_of,
)
from penstock.cli.pipeline.report import report
from penstock.cli.pipeline.run import run

if TYPE_CHECKING:
    from penstock.pipeline.compacting import Tidied
    from penstock.pipeline.jobs.job import Job
    from penstock.pipeline.warehouse.table import WarehouseTable

app = typer.Typer(
    no_args_is_help=True,
    help="Spark jobs that write tables of usage, audit and messages.",
)
_FILLINGS = {
    "batches": "rows are added",
    "days": "a day is replaced when it changes",
    "whole": "replaced as a whole",
}


@app.command("list")
@reported
def list_jobs(json: Json = False) -> None:
    """List the jobs and their tables."""
    with pipeline_errors():
        from penstock.pipeline.jobs.catalogue import JOBS

        if json:
            for job in JOBS.values():
                print_json(_facts(job, columns=False))
            return
        print_table(
            ("job", "reads", "what it produces"),
            [(job.name, job.queue, job.sentence) for job in JOBS.values()],
        )
        print_hint("Look at its tables: penstock pipeline show JOB. Run it: penstock pipeline run JOB --once")


@app.command("show")
@reported
def show(name: JobName, warehouse: WarehousePath = DEFAULT_WAREHOUSE, json: Json = False) -> None:
    """Show a job: its tables, the meaning of each column, and how to read them."""
    with pipeline_errors():
        from penstock.pipeline.jobs.catalogue import job_named

        job = job_named(name)
        if json:
            print_json(_facts(job, columns=True))
            return
        print_facts(f"{job.name}: {job.sentence}", {"reads": job.queue, "tables": str(len(job.tables))})
        for table in job.tables:
            _show_table(table)
        print_line("")
        print_line(f"Read a table: select * from '{warehouse}/{job.tables[0].name}/**/*.parquet'  (DuckDB)")


app.command("run")(run)
app.command("report")(report)


@app.command("compact")
@reported
def compact(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB]…", help="The jobs whose tables are compacted (default: all).", show_default=False
        ),
    ] = None,
    kept: KeptFor = None,
    warehouse: WarehousePath = DEFAULT_WAREHOUSE,
    settings: Settings = None,
    json: Json = False,
) -> None:
    """Merge small files of tables into larger ones, and remove old rows. A running job does this itself."""
    with pipeline_errors():
        from penstock.pipeline.compacting import compact_job
        from penstock.pipeline.jobs.catalogue import JOBS, job_named
        from penstock.pipeline.session import running_session
        from penstock.pipeline.warehouse.arrow_files import check_is_there, file_system, local_path
        from penstock.pipeline.warehouse.lock import JobRunsError

        jobs = [job_named(name) for name in names] if names else list(JOBS.values())
        keep = keep_of(kept, jobs)
        if local_path(warehouse) is not None:  # elsewhere it may be that only Spark can look
            check_is_there(warehouse, *file_system(warehouse))
        with running_session("penstock compact", options=settings_of(settings)) as spark:
            for job in jobs:
                try:
                    done = compact_job(spark, job, warehouse, keep)
                except JobRunsError as error:
                    if json:
                        print_json({"job": job.name, "skipped": str(error)})
                    else:
                        print_line(str(error))
                    continue
                if done is None:
                    continue
                _say_tidied(job, done, json=json)


@app.command("prepare")
@reported
def prepare(json: Json = False) -> None:
    """Make later runs start faster: archive the Java classes that Spark needs, once."""
    with pipeline_errors():
        from penstock.pipeline.preparing import prepare as prepared

        with error_console().status(
            "running two small jobs to find the classes that they need; this takes half a minute"
        ):
            archive, is_new = prepared()
        size = archive.stat().st_size
        if json:
            print_json({"archive": str(archive), "bytes": size, "new": is_new})
            return
        state = "are now" if is_new else "were already"
        print_line(f"Spark's classes {state} in {archive} ({size / 2**20:,.0f} MiB). Every run uses them.")


def _say_tidied(job: Job, done: Tidied, *, json: bool) -> None:
    before, after = done.compacted
    if json:
        print_json({"job": job.name, **done.compacted._asdict(), "directories_expired": done.expired})
        return
    if done.expired:
        print_line(f"{job.name}: removed old rows from {counted(done.expired, 'directory', 'directories')}")
    if before:
        print_line(f"{job.name}: {counted(before, 'directory', 'directories')} became {after:,}")
    elif not done.expired:
        print_line(f"{job.name}: nothing to compact")


def _show_table(table: WarehouseTable) -> None:
    print_line("")
    day = ", by day" if table.by_day else ""
    print_line(f"{table.name} ({_FILLINGS[table.filling]}{day})", "bold")
    print_line(f"  {table.sentence}")
    print_table(
        ("  column", "type", "meaning"),
        [
            (f"  {column.name}", column.kind, column.meaning)
            for column in table.columns
            if "_le_" not in column.name
        ],
    )
    counts = [column.name for column in table.columns if "_le_" in column.name]
    if counts:
        print_line(f"  and {len(counts)} counts of times up to a bound, {counts[0]} to {counts[-1]}")


def _facts(job: Job, *, columns: bool) -> dict[str, Any]:
    tables: list[Any] = [table.name for table in job.tables]
    if columns:
        tables = [
            {
                "name": table.name,
                "meaning": table.sentence,
                "filling": table.filling,
                "by_day": table.by_day,
                "columns": [
                    {"name": column.name, "type": column.kind, "meaning": column.meaning}
                    for column in table.columns
                ],
            }
            for table in job.tables
        ]
    return {"job": job.name, "meaning": job.sentence, "reads": job.queue, "tables": tables}
