"""`penstock bench`: runs the sections one after the other and says what came out."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console

import penstock
from benchmarks.cluster import failover, log_reading
from benchmarks.cluster import sections as cluster_sections
from benchmarks.figures import Figure
from benchmarks.machine import Bystanders, machine_facts
from benchmarks.options import BenchOptions, parse_counts
from benchmarks.processes import BenchError, LoadProcess
from benchmarks.profile import top_functions
from benchmarks.progress import Progress
from benchmarks.report import REPORT_VERSION, Line, Report, encode_report, line_of
from benchmarks.sections import (
    backlog,
    end_to_end,
    fifo,
    machine,
    memory,
    priority,
    retained_log,
    single,
    throughput,
)
from benchmarks.sections import order as kinds_of_order
from benchmarks.spark import sections as spark_sections
from benchmarks.sqs import idle
from benchmarks.sqs import sections as sqs_sections
from benchmarks.stage import Stage
from benchmarks.table import report_table
from penstock.model.errors import PenstockError

_MEASURES: dict[str, Callable[[Stage], Iterator[Figure]]] = {
    "machine": machine.measure,
    "throughput": throughput.measure,
    "single": single.measure,
    "end-to-end": end_to_end.measure,
    "memory": memory.measure,
    "backlog": backlog.measure,
    "fifo": fifo.measure,
    "priority": priority.measure,
    "sqs-throughput": sqs_sections.throughput,
    "sqs-single": sqs_sections.single,
    "sqs-long-poll": sqs_sections.long_poll,
    "sqs-idle": idle.measure,
    "log": retained_log.measure,
    "order": kinds_of_order.measure,
    "cluster-throughput": cluster_sections.throughput,
    "cluster-log": log_reading.measure,
    "cluster-single": cluster_sections.single,
    "cluster-failover": failover.measure,
    "cluster-queues": cluster_sections.queues,
    "spark-source": spark_sections.source,
    "spark-jobs": spark_sections.jobs,
    "spark-follow": spark_sections.follow,
}
_LOAD_PROCESSES = 2
_PLAIN_WIDTH = 200


def run(
    *,
    only: list[str],
    sqs: bool = False,
    log: bool = False,
    order: bool = False,
    cluster: bool = False,
    spark: bool = False,
    quick: bool = False,
    data: str | None = None,
    output: str | None = None,
    json: bool = False,
    size: str = "100,1024",
    durability: str = "sync",
    backlogs: str | None = None,
    profile: bool = False,
) -> int:
    """Measures and prints; the exit code says whether everything could be measured, not whether it was fast."""
    errors = Console(stderr=True)
    try:
        if durability not in ("sync", "os"):
            raise ValueError(f"durability is 'sync' or 'os', not {durability!r}")
        options = BenchOptions(
            quick=quick,
            only=tuple(only),
            sqs=sqs,
            log=log,
            order=order,
            cluster=cluster,
            spark=spark,
            sizes=parse_counts(size),
            backlogs=parse_counts(backlogs) if backlogs else (),
            durability="os" if durability == "os" else "sync",
            data_directory=Path(data) if data is not None else Path.cwd(),
            profile=profile,
        )
        options.check()
    except ValueError as error:
        errors.print(f"error: {error}", style="red", markup=False)
        return 2
    report = measure(options, Progress(errors, options.sections), errors)
    if output is not None:
        Path(output).write_bytes(encode_report(report))
    if json:  # as with every command: an object is a line
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False).print(
            report_table(report)
        )
    return 1 if report.failures else 0


def measure(options: BenchOptions, progress: Progress, errors: Console) -> Report:
    """Runs the sections; one that cannot be measured does not keep the others from it."""
    started, started_at = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    facts = machine_facts(options.data_directory)
    lines: list[Line] = []
    failures: dict[str, str] = {}
    bystanders: dict[str, float] = {}
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(
                    prefix="penstock-bench-", dir=options.data_directory, ignore_cleanup_errors=True
                )
            )
        )
        stack.enter_context(progress)
        for section in options.sections:
            progress.begin(section)
            others = Bystanders()
            with ExitStack() as processes:
                loads = [processes.enter_context(LoadProcess()) for _ in range(_LOAD_PROCESSES)]
                place = directory / section
                place.mkdir()
                stage = Stage(options, place, loads, progress.step)
                try:
                    lines += [line_of(section, figure) for figure in _MEASURES[section](stage)]
                except (BenchError, PenstockError, OSError) as error:
                    failures[section] = str(error)
                for profile in stage.profiles:
                    errors.print(
                        f"{section}: where the server's time went\n{top_functions(profile)}", markup=False
                    )
            bystanders[section] = round(others.share(), 3)
    return Report(
        report_version=REPORT_VERSION,
        penstock_version=penstock.__version__,
        started_at=started_at,
        seconds=time.monotonic() - started,
        machine=facts,
        options={
            "durability": options.durability,
            "quick": str(options.quick).lower(),
            "sizes": ",".join(map(str, options.sizes)),
            "backlogs": ",".join(map(str, options.backlog_sizes)),
            "sections": ",".join(options.sections),
            "profiled": str(options.profile).lower(),
        },
        lines=lines,
        failures=failures,
        bystanders=bystanders,
        load_after=os.getloadavg()[0],
    )
