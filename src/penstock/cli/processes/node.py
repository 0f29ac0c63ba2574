"""`penstock node`: the server for its operator."""

from __future__ import annotations

import typer

from penstock.cli.exits import reported
from penstock.cli.output import moment, moment_json, print_facts, print_json, print_line
from penstock.cli.parameters import DEFAULT_URL, Json, Url
from penstock.cli.processes.run_node import run

app = typer.Typer(
    no_args_is_help=True,
    help="The server: its disk, memory and damage; and nodes of a cluster.",
)
app.command("run")(run)


@app.command("show")
@reported
def show(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show the server: its data directory, resource usage and damage."""
    import msgspec

    from penstock.cli.asking import ask
    from penstock.config.units import format_size

    node = ask(url, lambda client: client.describe_node())
    if json:
        print_json({**msgspec.structs.asdict(node), "started": moment_json(node.started_ms)})
        return
    print_facts(
        f"node {node.node}",
        {
            "version": node.version,
            "data": node.data_directory,
            "started": moment(node.started_ms),
            "queues": f"{node.queues:,}",
            "connections": f"{node.connections:,}",
            "disk full": "yes: sends are refused" if node.disk_full else "no",
            "journal": f"{format_size(node.journal_bytes)} in {node.journal_files} files",
            "segments": f"{format_size(node.segment_bytes)} in {node.segment_files} files",
            "snapshot": format_size(node.snapshot_bytes),
            "flushes": f"{node.flushes_total:,}, {format_size(node.flushed_bytes_total)}",
            "cpu": f"{node.cpu_seconds:.1f} s",
            "memory": format_size(node.memory_bytes),
        },
    )
    for damage in node.damage:
        print_line(f"damaged: {damage}", "bold red")
