"""`penstock pipeline report`: one page with the results of the jobs. Needs no server and no Spark, only the warehouse."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.exits import CommandError, reported
from penstock.cli.moments import moment_of
from penstock.cli.output import print_json, print_line
from penstock.cli.parameters import Json
from penstock.cli.pipeline.job_command import DEFAULT_WAREHOUSE, WarehousePath, pipeline_errors


@reported
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.", metavar="FILE")] = Path(
        "penstock-report.html"
    ),
    since: Annotated[
        str,
        typer.Option(
            "--since", help="Start of the report: 1h (one hour ago), or 2026-05-01T12:00Z.", metavar="TIME"
        ),
    ] = "24h",
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            help="End of the report, in the same format (default: now).",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    warehouse: WarehousePath = DEFAULT_WAREHOUSE,
    json: Json = False,
) -> None:
    """Write an HTML page with plots of the results of the jobs."""
    begin = moment_of(since, "--since")
    end = datetime.now(UTC) if until is None else moment_of(until, "--until")
    if begin >= end:
        raise typer.BadParameter("it is not before --until", param_hint="--since")
    with pipeline_errors():
        from penstock.pipeline.report.report import report as written

        page = written(warehouse, begin, end)
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {output}: {error.strerror or error}") from None
    if json:
        print_json({"report": str(output), "since": begin.isoformat(), "until": end.isoformat()})
    else:
        print_line(f"The report is in {output}: open it in a browser.")
