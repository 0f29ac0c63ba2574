"""`penstock receive`: take messages from a queue, show them, and delete them if told to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exits import reported
from penstock.cli.output import error_console, print_hint
from penstock.cli.parameters import DEFAULT_URL, Json, QueueName, Url, duration_seconds

if TYPE_CHECKING:
    from penstock.client.client import Client

MESSAGES_PER_REQUEST = 100


@reported
def receive(
    name: QueueName,
    maximum: Annotated[int, typer.Option("--max", "-n", help="How many messages at most.", min=1)] = 1,
    wait: Annotated[
        str, typer.Option("--wait", help="How long to wait for the first one.", metavar="DURATION")
    ] = "0s",
    delete: Annotated[bool, typer.Option("--delete", help="Delete each message once it is shown.")] = False,
    visibility: Annotated[
        str | None,
        typer.Option(
            "--visibility", help="How long others do not see them (the queue's).", metavar="DURATION"
        ),
    ] = None,
    body: Annotated[bool, typer.Option("--body", help="Print only the bodies, as they were sent.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Receive messages; without --delete they come back when their visibility timeout ends."""
    from penstock.cli.asking import ask

    wait_seconds = duration_seconds(wait)
    visibility_seconds = None if visibility is None else duration_seconds(visibility)

    async def work(client: Client) -> int:
        from penstock.cli.message_display import show_message

        queue = client.queue(name)
        received, patience = 0, wait_seconds
        while received < maximum:
            messages = await queue.receive(
                min(maximum - received, MESSAGES_PER_REQUEST),
                wait=patience,
                visibility_timeout=visibility_seconds,
            )
            if not messages:
                break
            for message in messages:
                show_message(message, json=json, body_only=body)
            # Only now: whoever reads our output has the messages before the server forgets them.
            if delete:
                await messages.delete()
            received += len(messages)
            patience = 0.0
        return received

    received = ask(url, work)
    if received == 0 and not json:
        error_console().print(f"no message in {name}", style="dim", markup=False)
    elif received and not delete:
        print_hint(
            "Not deleted: they come back when their visibility timeout ends. Add --delete to be done with them."
        )
