"""The entry point: the tree of commands. Each imports what it needs when it runs, so that help is instant."""

from __future__ import annotations

import typer

from penstock.cli.cluster import cluster
from penstock.cli.messages import group
from penstock.cli.messages.peek import peek
from penstock.cli.messages.receive import receive
from penstock.cli.messages.request import request
from penstock.cli.messages.send import send
from penstock.cli.messages.tail import tail
from penstock.cli.pipeline import pipeline
from penstock.cli.processes import node
from penstock.cli.processes.frontend import frontend
from penstock.cli.processes.metadata import metadata
from penstock.cli.processes.serve import serve
from penstock.cli.queues import dlq, queue
from penstock.cli.queues.purge import purge
from penstock.cli.tools import audit
from penstock.cli.tools.bench import bench
from penstock.cli.tools.check_config import check_config
from penstock.cli.tools.clock import clock, identifiers
from penstock.cli.tools.simulate import simulate
from penstock.cli.users import limit, user
from penstock.cli.version import version

app = typer.Typer(
    name="penstock",
    help="Penstock: a self-hosted durable message queue.",
    no_args_is_help=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

for name, command, panel in (
    ("serve", serve, "Server"),
    ("frontend", frontend, "Server"),
    ("metadata", metadata, "Server"),
    ("check-config", check_config, "Server"),
    ("clock", clock, "Server"),
    ("send", send, "Messages"),
    ("receive", receive, "Messages"),
    ("request", request, "Messages"),
    ("peek", peek, "Messages"),
    ("tail", tail, "Messages"),
    ("purge", purge, "Messages"),
    ("id", identifiers, "Messages"),
    ("bench", bench, "Measure and test"),
    ("simulate", simulate, "Measure and test"),
    ("version", version, "Other"),
):
    app.command(name, rich_help_panel=panel)(command)
app.add_typer(queue.app, name="queue", rich_help_panel="Messages")
app.add_typer(dlq.app, name="dlq", rich_help_panel="Messages")
app.add_typer(group.app, name="group", rich_help_panel="Messages")
app.add_typer(cluster.app, name="cluster", rich_help_panel="Server")
app.add_typer(node.app, name="node", rich_help_panel="Server")
app.add_typer(pipeline.app, name="pipeline", rich_help_panel="Data")
app.add_typer(audit.app, name="audit", rich_help_panel="Data")
app.add_typer(user.app, name="user", rich_help_panel="Users")
app.add_typer(limit.app, name="limit", rich_help_panel="Users")


def main() -> None:
    """Runs the command that the arguments name."""
    app()


if __name__ == "__main__":
    main()
