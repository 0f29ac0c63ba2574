"""`penstock purge`: delete every message in a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.exits import reported
from penstock.cli.output import messages_text, print_json, print_line
from penstock.cli.parameters import DEFAULT_URL, Json, QueueName, Url, Yes

if TYPE_CHECKING:
    from penstock.client.client import Client


@reported
def purge(name: QueueName, yes: Yes = False, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Delete all messages that are in a queue now."""
    from penstock.cli.asking import ask
    from penstock.cli.confirmation import at_stake, confirm_loss
    from penstock.cli.progress import progress

    async def work(client: Client) -> int:
        messages = at_stake((await client.describe_queue(name)).statistics)
        if not yes:
            confirm_loss(f"Delete {messages_text(messages)} of queue {name}?")
        with progress(f"purging {name}", messages) as show:
            purged = await client.queue(name).purge()
            show(purged)
        return purged

    purged = ask(url, work)
    if json:
        print_json({"queue": name, "purged_messages": purged})
    else:
        print_line(f"purged {messages_text(purged)} from {name}", "green")
