"""`penstock request`: sends a message and waits for the reply of its consumer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exits import FAILED, CommandError, reported
from penstock.cli.output import attribute_json, body_json, body_text, print_json, print_line, printable
from penstock.cli.parameters import DEFAULT_URL, Json, QueueName, Url, attributes_of, duration_seconds

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.client.replies.reply import Reply


@reported
def request(
    name: QueueName,
    body: Annotated[
        str, typer.Argument(metavar="BODY", help="The body; `-` reads the whole input.", show_default=False)
    ],
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long to wait for the reply.", metavar="DURATION")
    ] = "30s",
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", "-a", help="An attribute; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    ttl: Annotated[
        str | None, typer.Option("--ttl", help="The request expires after this time.", metavar="DURATION")
    ] = None,
    body_only: Annotated[
        bool, typer.Option("--body", help="Print only the reply's body, unchanged.")
    ] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Send a message and print the reply. The exit code is 1 if the reply says that the request failed."""
    from penstock.cli.asking import ask

    payload = sys.stdin.buffer.read() if body == "-" else body.encode("utf-8", "surrogateescape")
    attributes = attributes_of(attribute) if attribute else None
    seconds = duration_seconds(timeout)
    ttl_seconds = None if ttl is None else duration_seconds(ttl)

    async def work(client: Client) -> Reply:
        return await client.queue(name).request(
            payload, timeout=seconds, attributes=attributes, ttl=ttl_seconds
        )

    reply = ask(url, work)
    _show(name, reply, json=json, body_only=body_only)
    if reply.outcome == "failed":
        raise CommandError(
            f"the request failed: {printable(reply.error or 'the reply gives no reason')}", FAILED
        )


def _show(name: str, reply: Reply, *, json: bool, body_only: bool) -> None:
    if json:
        print_json(
            {
                "queue": name,
                "correlation_id": reply.correlation_id,
                "outcome": reply.outcome,
                "error": reply.error,
                **body_json(reply.body),
                "attributes": {key: attribute_json(value) for key, value in reply.attributes.items()},
            }
        )
    elif body_only:
        sys.stdout.buffer.write(reply.body + b"\n")
        sys.stdout.buffer.flush()
    elif reply.body or reply.outcome == "succeeded":
        text, encoded = body_text(reply.body)
        if encoded:
            print_line("  [base64, the body is not UTF-8]", "magenta")
        print_line(printable(text))
