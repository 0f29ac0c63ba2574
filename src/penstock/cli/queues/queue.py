"""`penstock queue`: create, alter, delete, list and show queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.exits import USAGE, CommandError, reported
from penstock.cli.output import messages_text, print_hint, print_json, print_line, print_table
from penstock.cli.parameters import DEFAULT_URL, Json, QueueName, Url, Yes
from penstock.cli.queues.settings import takes_settings

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.wire.messages import QueueDescription

app = typer.Typer(no_args_is_help=True, help="Create, change, list and show queues.")


@app.command("create")
@reported
@takes_settings(new=True)
def create(
    options: Any,
    name: QueueName,
    fifo: Annotated[bool, typer.Option("--fifo", help="Short for `--ordering fifo`.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Create a queue. If a queue with the same name and settings exists, this succeeds too."""
    from penstock.cli.asking import ask

    if fifo and options.setdefault("ordering", "fifo") != "fifo":
        raise CommandError(f"--fifo and --ordering {options['ordering']} contradict each other", USAGE)

    async def work(client: Client) -> QueueDescription:
        return await (await client.create_queue(name, **options)).describe()

    description = ask(url, work)
    if json:
        from penstock.cli.queues.display import description_json

        print_json(description_json(description))
    else:
        print_line(f"queue {name} is ready", "green")
        print_hint(f"Next: penstock send {name} 'hello'")


@app.command("alter")
@reported
@takes_settings(new=False)
def alter(options: Any, name: QueueName, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Change settings of a queue. Other settings stay unchanged."""
    from penstock.cli.asking import ask
    from penstock.cli.queues.display import description_json, show_description

    if not options:
        raise CommandError("nothing to change; `penstock queue alter --help` lists the settings", USAGE)

    description = ask(url, lambda client: client.alter_queue(name, **options))
    if json:
        print_json(description_json(description))
    else:
        show_description(description)


@app.command("delete")
@reported
def delete(name: QueueName, yes: Yes = False, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Delete a queue and all its messages."""
    from penstock.cli.asking import ask
    from penstock.cli.confirmation import at_stake, confirm_loss

    async def work(client: Client) -> int:
        messages = at_stake((await client.describe_queue(name)).statistics)
        if not yes:
            confirm_loss(f"Delete queue {name} with {messages_text(messages)}?")
        await client.delete_queue(name)
        return messages

    messages = ask(url, work)
    if json:
        print_json({"deleted": name, "messages": messages})
    else:
        print_line(f"queue {name} is deleted, with {messages_text(messages)}", "green")


@app.command("list")
@reported
def list_queues(
    prefix: Annotated[
        str, typer.Argument(help="Only queues whose names begin with this.", metavar="[PREFIX]")
    ] = "",
    internal: Annotated[
        bool, typer.Option("--internal", help="Also list the internal queues of Penstock.")
    ] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List the queues."""
    from penstock.cli.asking import ask
    from penstock.cli.queues.display import HEADINGS, description_json, description_row
    from penstock.model.reserved_queues import is_reserved

    async def work(client: Client) -> list[QueueDescription]:
        return [
            description
            async for description in client.list_queues(prefix)
            if internal or not is_reserved(description.name)
        ]

    descriptions = ask(url, work)
    if json:
        for description in descriptions:
            print_json(description_json(description))
    elif descriptions:
        print_table(HEADINGS, map(description_row, descriptions), right=range(1, 6))
    else:
        print_line(f"no queue begins with {prefix}" if prefix else "there are no queues")
        print_hint("Next: penstock queue create orders")


@app.command("show")
@reported
def show(name: QueueName, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show the settings of a queue, its messages and its totals."""
    from penstock.cli.asking import ask
    from penstock.cli.queues.display import description_json, show_description

    description = ask(url, lambda client: client.describe_queue(name))
    if json:
        print_json(description_json(description))
    else:
        show_description(description)
