"""`penstock pipeline run JOB`: run a job once or until Ctrl-C, with its progress on the terminal."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.exits import NOT_FOUND, USAGE, CommandError, reported
from penstock.cli.output import error_console, print_hint, print_json, print_line
from penstock.cli.parameters import DEFAULT_URL, Json, duration_seconds
from penstock.cli.pipeline.job_command import (
    DEFAULT_WAREHOUSE,
    JobName,
    KeptFor,
    Master,
    Settings,
    WarehousePath,
    counted,
    keep_of,
    pipeline_errors,
    settings_of,
)
from penstock.cli.pipeline.signals import interruptible_start, stop_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipeline.jobs.job import Job
    from penstock.pipeline.progress import Progress

_MONITORING_PORT = 9328
_CLUSTER_PARTS = 8
_MASTERS = re.compile(
    r"local(\[\s*([1-9]\d*|\*)\s*(,\s*[1-9]\d*\s*)?\])?|local-cluster\[[\d\s,]+\]"
    r"|spark://[^\s/,]+:\d+(,[^\s/,]+:\d+)*|yarn|k8s://\S+"
)
"""The values that Spark accepts for `master`."""
_HINTS = {
    "penstock.lifecycle": "no queue is followed yet: `penstock queue alter QUEUE --lifecycle` begins",
    "penstock.usage": "it is made with the first request",
}


@reported
def run(
    name: JobName,
    endpoint: Annotated[
        str,
        typer.Option(
            "--endpoint",
            envvar="PENSTOCK_URL",
            help="Address of the server or front end: HOST:PORT, or penstocks://HOST:PORT?ca=FILE for TLS.",
            metavar="HOST:PORT",
            show_envvar=True,
        ),
    ] = DEFAULT_URL,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            help="Another log with such rows (default: the job's own, see `penstock pipeline list`).",
            metavar="QUEUE",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow/--once", help="Continue until Ctrl-C; or process the rows that exist now and end."
        ),
    ] = False,
    warehouse: WarehousePath = DEFAULT_WAREHOUSE,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            help="Where Spark stores its progress (default: inside the warehouse).",
            metavar="PATH",
            show_default=False,
        ),
    ] = None,
    master: Master = "local[*]",
    interval: Annotated[
        str, typer.Option("--interval", help="With --follow: time between writes of rows.", metavar="TIME")
    ] = "5s",
    roll_interval: Annotated[
        str,
        typer.Option(
            "--roll-interval", help="With --follow: time between roll-ups of the tables.", metavar="TIME"
        ),
    ] = "60s",
    monitoring_listen: Annotated[
        str | None,
        typer.Option(
            "--monitoring-listen",
            help="Address of /metrics of this run (default: off).",
            metavar="HOST:PORT",
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Job ledger: also process all rows at once at the end, and compare."),
    ] = False,
    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata",
            help="Job capacity: address of the cluster's metadata (etcd://…), where the cluster's "
            "manager finds the result.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    secret_file: Annotated[
        str | None,
        typer.Option(
            "--secret-file",
            help="With --metadata of metadata servers: file with the cluster's secret.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Delete the job's tables and rebuild them from the log."),
    ] = False,
    allow_data_loss: Annotated[
        bool,
        typer.Option(
            "--allow-data-loss", help="Continue although the log no longer has rows that were not read."
        ),
    ] = False,
    niceness: Annotated[
        int,
        typer.Option(
            "--nice",
            help="With --follow on this machine: lower the priority by this much, 0 to 19; 0: do not.",
            metavar="0-19",
            min=0,
            max=19,
        ),
    ] = 10,
    kept: KeptFor = None,
    settings: Settings = None,
    json: Json = False,
) -> None:
    """Run a job: process the rows of its log since the last run, and write its tables."""
    if full and name != "ledger":
        raise CommandError("--full is for the job ledger", USAGE)
    if metadata is not None and name != "capacity":
        raise CommandError("--metadata is for the job capacity", USAGE)
    if secret_file is not None and metadata is None:
        raise CommandError("--secret-file is the secret of --metadata: name the metadata servers too", USAGE)
    _check_master(master)
    if metadata is not None:
        from penstock.cli.pipeline.capacity import check_metadata

        check_metadata(metadata, secret_file)
    spark_settings = _session_settings(master, settings)
    with pipeline_errors():
        from penstock.pipeline.follow_mode import follow_settings, give_way, short_settings
        from penstock.pipeline.jobs.catalogue import job_named
        from penstock.pipeline.progress import Progress
        from penstock.pipeline.runner import RunOptions, run_job
        from penstock.pipeline.session import running_session

        job = job_named(name)
        options = RunOptions(
            endpoint=endpoint.removeprefix("penstock://").rstrip("/"),
            warehouse=warehouse,
            checkpoint=checkpoint,
            queue=queue,
            follow=follow,
            interval_seconds=duration_seconds(interval),
            roll_seconds=duration_seconds(roll_interval),
            rebuild=rebuild,
            lossless=not allow_data_loss,
            keep=keep_of(kept, [job]),
        )
        unread = _unread_bytes(options.endpoint, queue or job.queue, None if rebuild else job.group)
        if follow and master.startswith("local"):
            spark_settings = follow_settings(spark_settings)
            give_way(niceness)
        elif master.startswith("local"):
            spark_settings = short_settings(spark_settings, unread)
        progress = Progress(job.name)
        begun = time.monotonic()
        with ExitStack() as stack:
            if monitoring_listen is not None:
                stack.enter_context(_monitored(monitoring_listen, progress, json=json))
            update = stack.enter_context(_display(progress, json=json))
            with interruptible_start():
                spark = stack.enter_context(running_session(f"penstock {job.name}", master, spark_settings))
            stop = stack.enter_context(stop_signals())
            run_job(spark, job, options, progress, stop=stop, watch=update)
            extra = _afterwards(spark, job, warehouse, options.endpoint, full, metadata, secret_file)
        _say_end(progress, extra, warehouse, job, time.monotonic() - begun, json=json)


def _check_master(master: str) -> None:
    """Spark finds it wrong only once Java runs, and in Java's words."""
    if not _MASTERS.fullmatch(master):
        raise CommandError(
            f"--master {master} is not a master of Spark: write local[*] or local[NUMBER] for this process, "
            "spark://HOST:PORT for a cluster of Spark's own, yarn, or k8s://HOST:PORT",
            USAGE,
        )


def _unread_bytes(endpoint: str, queue: str, group: str | None) -> int:
    """About how much of a log a group has not read; without a group all of it.

    It is asked before Spark is started, which takes seconds.
    """
    from penstock.cli.asking import CONNECT_SECONDS
    from penstock.client.blocking.connecting import connect_blocking_to_any
    from penstock.client.connection.endpoints import endpoint_urls
    from penstock.model.errors import ErrorCode, PenstockError

    try:
        with connect_blocking_to_any(
            endpoint_urls(endpoint), timeout=CONNECT_SECONDS, name="penstock command line", patient=False
        ) as client:
            log = client.describe_queue(queue).statistics
            messages = log.log_messages
            if group is not None:
                with suppress(PenstockError):  # it is new, or who runs this may not know
                    messages = client.queue(queue).log().describe_group(group).lag_messages
            return messages * log.log_bytes // max(1, log.log_messages)
    except PenstockError as error:
        if error.code is not ErrorCode.QUEUE_NOT_FOUND or queue not in _HINTS:
            raise
        raise CommandError(f"there is no log {queue} to read: {_HINTS[queue]}", NOT_FOUND) from None


def _session_settings(master: str, settings: list[str] | None) -> dict[str, str]:
    """Batches are small: as many parts as there are processors do, where Spark would make 200."""
    given = settings_of(settings)
    cores = max(2, os.cpu_count() or 2) if master.startswith("local") else _CLUSTER_PARTS
    given.setdefault("spark.sql.shuffle.partitions", str(cores))
    return given


@contextmanager
def _monitored(listen: str, progress: Progress, *, json: bool) -> Iterator[None]:
    from penstock.config.address import Address
    from penstock.pipeline.monitoring import monitoring

    try:
        address = Address.parse(listen, default_port=_MONITORING_PORT)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--monitoring-listen") from None
    with monitoring(address.host, address.port, progress.families) as port:
        url = f"http://{Address(address.host, port)}/metrics"
        if json:
            print_json({"event": "monitoring", "url": url})
        else:
            error_console().print(f"metrics at {url}", style="dim", markup=False)
        yield


@contextmanager
def _display(progress: Progress, *, json: bool) -> Iterator[Callable[[Progress], None]]:
    """On a terminal a line that changes; with `--json` an object a batch."""
    target = error_console()
    if json or not target.is_terminal:
        shown = [0]

        def told(current: Progress) -> None:
            if json and current.batches != shown[0]:
                shown[0] = current.batches
                print_json({"event": "batch", **current.facts()})

        yield told
        return
    with target.status(f"{progress.job}: starting Spark") as status:
        yield lambda current: status.update(progress_text(current))


def progress_text(progress: Progress) -> str:
    """`usage: 12 batches, 48,000 rows, 4,000 rows/s, 1.2 s behind, 0 messages to read`."""
    if not progress.batches:
        return f"{progress.job}: no new rows yet"
    parts = [
        counted(progress.batches, "batch", "batches"),
        counted(progress.rows, "row", "rows"),
        f"{progress.rows_per_second:,.0f} rows/s",
    ]
    if progress.lag_seconds is not None:
        parts.append(f"{progress.lag_seconds:,.1f} s behind")
    if progress.lag_messages is not None:
        parts.append(f"{progress.lag_messages:,} messages to read")
    return f"{progress.job}: {', '.join(parts)}"


def missing_text(missing: int, table: str) -> str:
    """Numbers tell that rows are missing, not where they were lost: retention leaves the same gap as a crash."""
    one = missing == 1
    rows, they, them = ("row", "it was", "it") if one else ("rows", "they were", "them")
    return (
        f"{missing:,} {rows} never reached this job: {they} lost on the way to the log, or the log removed {them} before "
        f"{they} read (table {table})"
    )


def _afterwards(
    spark: SparkSession,
    job: Job,
    warehouse: str,
    endpoint: str,
    full: bool,
    metadata: str | None,
    secret_file: str | None,
) -> dict[str, Any]:
    """Additional work of some jobs."""
    extra: dict[str, Any] = {}
    if job.name == "ledger":
        from penstock.pipeline.ledger_check import check_ledger, count_findings

        extra["findings"] = count_findings(spark, warehouse)
        if full:
            extra["full_check_findings"] = check_ledger(spark, warehouse, endpoint)
    if metadata is not None:
        from penstock.cli.pipeline.capacity import write_back

        extra["written_back"] = write_back(warehouse, metadata, secret_file)
    return extra


def _say_end(
    progress: Progress, extra: dict[str, Any], warehouse: str, job: Job, seconds: float, *, json: bool
) -> None:
    if json:
        print_json({"event": "done", **progress.facts(), **extra, "seconds": round(seconds, 3)})
        return
    rows, batches = (
        counted(progress.rows, "new row", "new rows"),
        counted(progress.batches, "batch", "batches"),
    )
    text = f"{job.name}: {rows} in {batches}, {seconds:,.1f} s"
    if progress.repeated:
        again = counted(progress.repeated, "row was repeated and was", "rows were repeated and were")
        text += f"; {again} counted once"
    print_line(text, "green")
    if progress.missing:
        print_line(missing_text(progress.missing, job.gaps.name), "red")
    for name, count in extra.items():
        words = name.replace("_", " ")
        print_line(f"{words}: {count:,}", "red" if count and "findings" in name else None)
    print_hint(f"Read them: duckdb -c \"from '{warehouse}/{job.tables[0].name}/**/*.parquet'\"")
