"""`penstock audit query`: search the audit trail. Needs no server and no Spark, only the warehouse."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from penstock.cli.exits import reported
from penstock.cli.moments import moment_of
from penstock.cli.output import error_console, print_json, print_table
from penstock.cli.parameters import Json
from penstock.cli.pipeline.job_command import DEFAULT_WAREHOUSE, WarehousePath, pipeline_errors

app = typer.Typer(
    no_args_is_help=True, help="The audit trail: which user made which request, when, and with which result."
)


@app.command("query")
@reported
def query(
    user: Annotated[
        str | None, typer.Option("--user", help="Only requests of this user.", show_default=False)
    ] = None,
    account: Annotated[
        str | None, typer.Option("--account", help="Only requests of this account.", show_default=False)
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", help="Only requests on this queue: its name or its ARN.", show_default=False),
    ] = None,
    action: Annotated[
        str | None,
        typer.Option("--action", help="Only this action, such as SendMessage.", show_default=False),
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            "--outcome",
            help="Only this outcome: ok, error (any error), or an error code.",
            show_default=False,
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option("--address", help="Only requests from this client address.", show_default=False),
    ] = None,
    request_id: Annotated[
        str | None,
        typer.Option("--request-id", help="Only the request with this id.", metavar="ID", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Only requests after this time: 1h (one hour ago), or 2026-05-01T12:00Z.",
            metavar="TIME",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", help="Only requests before this time, in the same format.", metavar="TIME"),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", help="Show the newest N requests; 0 shows all.", min=0)
    ] = 100,
    warehouse: WarehousePath = DEFAULT_WAREHOUSE,
    json: Json = False,
) -> None:
    """Search the audit trail that `penstock pipeline run audit` writes."""
    begin = None if since is None else moment_of(since, "--since")
    end = None if until is None else moment_of(until, "--until")
    if begin is not None and end is not None and begin >= end:
        raise typer.BadParameter("it is not before --until", param_hint="--since")
    with pipeline_errors():
        from penstock.pipeline.audit_query import AuditQuery, search

        wanted = AuditQuery(
            user=user,
            account=account,
            queue=queue,
            action=action,
            outcome=outcome,
            address=address,
            request_id=request_id,
            since=begin,
            until=end,
            limit=limit or None,
        )
        found = list(search(warehouse, wanted))
    if json:
        for row in found:
            print_json({**row, "time": _text(row["time"]).replace(" ", "T") + "Z"})
    elif found:
        print_table(
            ("time (UTC)", "user", "action", "queue", "messages", "outcome", "ms", "address", "request"),
            map(_cells, found),
            right=(4, 6),
        )
    else:
        error_console().print("nothing in the trail matches", style="dim")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        _text(row["time"]),
        row["user"] or "–",
        row["action"],
        row["queue"].rpartition(":")[2] or "–",
        f"{row['messages']:,}",
        row["outcome"],
        f"{row['latency_us'] / 1000:,.1f}",
        row["address"],
        row["request_id"],
    )


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
