"""`penstock receive`: receives messages from one queue or several, prints them, and replies or deletes on request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exits import USAGE, CommandError, reported
from penstock.cli.output import error_console, print_hint
from penstock.cli.parameters import DEFAULT_URL, Json, Url, duration_seconds

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.client.consume.group_messages import GroupMessages
    from penstock.client.settle.delivered import DeliveredMessages, Message

MESSAGES_PER_REQUEST = 100


@reported
def receive(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="QUEUE[:WEIGHT]…",
            help="The queue; or several, with weights (default weight 1).",
            show_default=False,
        ),
    ],
    maximum: Annotated[int, typer.Option("--max", "-n", help="Maximum number of messages.", min=1)] = 1,
    wait: Annotated[
        str, typer.Option("--wait", help="How long to wait for the first message.", metavar="DURATION")
    ] = "0s",
    delete: Annotated[bool, typer.Option("--delete", help="Delete each message after printing it.")] = False,
    reply: Annotated[
        str | None,
        typer.Option(
            "--reply", help="Send this reply to each request, then delete the request.", metavar="TEXT"
        ),
    ] = None,
    reply_failed: Annotated[
        str | None,
        typer.Option(
            "--reply-failed",
            help="Reply that the request failed, with this reason, then delete the request.",
            metavar="TEXT",
        ),
    ] = None,
    visibility: Annotated[
        str | None,
        typer.Option(
            "--visibility",
            help="How long the messages stay hidden from other consumers (default: the queue's "
            "visibility timeout).",
            metavar="DURATION",
        ),
    ] = None,
    body: Annotated[bool, typer.Option("--body", help="Print only the bodies, unchanged.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Receive messages. Without --delete they are redelivered after their visibility timeout."""
    from penstock.cli.asking import ask

    weights = _weights_of(names)
    if reply is not None and reply_failed is not None:
        raise CommandError("give --reply or --reply-failed, not both", USAGE)
    wait_seconds = duration_seconds(wait)
    visibility_seconds = None if visibility is None else duration_seconds(visibility)
    answering = reply is not None or reply_failed is not None

    async def work(client: Client) -> int:
        from penstock.cli.messages.display import show_message

        receive_some = _source(client, weights, visibility_seconds)
        received, patience = 0, wait_seconds
        while received < maximum:
            messages = await receive_some(min(maximum - received, MESSAGES_PER_REQUEST), patience)
            if not messages:
                break
            for message in messages:
                show_message(message, json=json, body_only=body, name_queue=len(weights) > 1)
            # Only now: the reader of our output has the messages before the server deletes them.
            if answering:
                for message in messages:
                    await _reply(message, reply, reply_failed)
            if delete:
                await messages.delete()
            received += len(messages)
            patience = 0.0
        return received

    received = ask(url, work)
    if received == 0 and not json:
        error_console().print(f"no message in {', '.join(weights)}", style="dim", markup=False)
    elif received and not delete and not answering:
        print_hint(
            "Not deleted: they are redelivered when their visibility timeout ends. Add --delete to delete them."
        )


def _weights_of(names: list[str]) -> dict[str, int]:
    """`high:8 low:1` as queues and their weights."""
    weights: dict[str, int] = {}
    for text in names:
        name, colon, weight = text.partition(":")
        if colon and not (weight.isascii() and weight.isdigit() and int(weight)):
            raise typer.BadParameter(f"{text!r}: write a whole number from 1 up after the colon")
        if name in weights:
            raise typer.BadParameter(f"{name!r} is named twice")
        weights[name] = int(weight) if colon else 1
    return weights


def _source(
    client: Client, weights: dict[str, int], visibility_timeout: float | None
) -> Callable[[int, float], Awaitable[DeliveredMessages | GroupMessages]]:
    """The source of messages: one queue, or several by weight."""
    from penstock.client.consume.priority_group import PriorityGroup

    source = client.queue(next(iter(weights))) if len(weights) == 1 else PriorityGroup(client, weights)

    async def receive_some(messages: int, wait: float) -> DeliveredMessages | GroupMessages:
        return await source.receive(messages, wait=wait, visibility_timeout=visibility_timeout)

    return receive_some


async def _reply(message: Message, body: str | None, failed: str | None) -> None:
    if message.reply_to is None:
        what = f"message {message.sequence} of {message.queue_name} asks for no reply"
        error_console().print(what, style="yellow", markup=False)
    elif not await (
        message.reply(outcome="failed", error=failed)
        if failed is not None
        else message.reply((body or "").encode("utf-8", "surrogateescape"))
    ):
        what = (
            f"no requester waits for the reply to message {message.sequence} of {message.queue_name} any more"
        )
        error_console().print(what, style="yellow", markup=False)
