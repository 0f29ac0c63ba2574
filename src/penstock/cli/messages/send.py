"""`penstock send`: one message, the same one many times, or one for every line of the input."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from penstock.cli.exits import FAILED, USAGE, CommandError, reported
from penstock.cli.output import messages_text, moment_json, print_hint, print_json, print_line
from penstock.cli.parameters import (
    DEFAULT_URL,
    Json,
    QueueName,
    Url,
    attributes_of,
    duration_seconds,
    moment_of,
)

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.client.produce.outgoing import OutgoingMessage
    from penstock.client.produce.sent import SentMessage

LINE_BYTES = 16 << 20
"""The largest message there is; a longer line is refused before it is read whole."""


@reported
def send(
    name: QueueName,
    body: Annotated[
        str | None,
        typer.Argument(
            metavar="[BODY]",
            help="The body. Without it, every line of the input becomes a message.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", help="Read the body from this file; `-` reads the input.", metavar="FILE"),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", "-a", help="An attribute; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    delay: Annotated[
        str | None, typer.Option("--delay", help="Deliver the message after this time.", metavar="DURATION")
    ] = None,
    ttl: Annotated[
        str | None, typer.Option("--ttl", help="The message expires after this time.", metavar="DURATION")
    ] = None,
    priority: Annotated[
        int | None, typer.Option("--priority", help="Priority from 0 (lowest) to 9.", min=0, max=9)
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", help="Group of the message. A FIFO queue delivers each group in strict order."
        ),
    ] = None,
    deduplication_id: Annotated[
        str | None,
        typer.Option(
            "--deduplication-id",
            help="Deduplication id. A message with the same id is not stored again within the queue's "
            "window.",
        ),
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            help="Time of the event, on queues ordered by time: a time, or 10s (10 seconds ago).",
            metavar="TIME",
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", help="Send the message this many times.", min=1)] = 1,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Send messages to a queue. Returns when they are on disk."""
    from penstock.cli.asking import ask
    from penstock.client.produce.outgoing import OutgoingMessage

    if body is not None and file is not None:
        raise CommandError("give the body as an argument or with --file, not both", USAGE)
    pattern = OutgoingMessage(
        b"",
        attributes_of(attribute) if attribute else None,
        None if delay is None else duration_seconds(delay),
        None if ttl is None else duration_seconds(ttl),
        priority,
        group,
        deduplication_id,
        None if timestamp is None else moment_of(timestamp),
    )
    whole = _whole_body(body, file)
    if whole is None:
        if count != 1:
            raise CommandError("--count repeats one body; the input already has a message a line", USAGE)
        if sys.stdin.isatty():
            print_hint("One message a line; end with Ctrl-D.")
        messages = (_with_body(pattern, line) for line in _lines(sys.stdin.buffer))
        _report_many(name, *ask(url, lambda client: _send_many(client, name, messages, None)), json=json)
    elif count > 1:
        message = _with_body(pattern, whole)
        repeated = (message for _ in range(count))
        _report_many(name, *ask(url, lambda client: _send_many(client, name, repeated, count)), json=json)
    else:
        _report_one(
            name, ask(url, lambda client: _send_one(client, name, _with_body(pattern, whole))), json=json
        )


def _whole_body(body: str | None, file: str | None) -> bytes | None:
    if body is not None:
        return body.encode("utf-8", "surrogateescape")
    if file is None:
        return None
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror or error}", FAILED) from None


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    number = 0
    while line := stream.readline(LINE_BYTES + 2):
        number += 1
        if not line.endswith(b"\n") and len(line) > LINE_BYTES:
            raise CommandError(
                f"line {number} of the input is longer than the largest message (16MiB)", USAGE
            )
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _with_body(pattern: OutgoingMessage, body: bytes) -> OutgoingMessage:
    import msgspec

    return msgspec.structs.replace(pattern, body=body)


async def _send_one(client: Client, name: str, message: OutgoingMessage) -> SentMessage:
    return (await client.queue(name).send_batch([message]))[0]


async def _send_many(
    client: Client, name: str, messages: Iterator[OutgoingMessage], total: int | None
) -> tuple[int, float]:
    """How many were sent, and in how many seconds."""
    from penstock.cli.progress import progress

    started, taken = time.perf_counter(), 0
    await client.describe_queue(name)  # a wrong name is reported before the input is read
    with progress(f"sending to {name}", total) as show:
        async with client.queue(name).producer() as producer:
            for message in messages:
                await producer.send(message)
                taken += 1
                if taken % 1000 == 0:
                    show(taken)
            await producer.flush()
            show(taken)
    return taken, time.perf_counter() - started


def _report_one(name: str, sent: SentMessage, *, json: bool) -> None:
    if json:
        print_json(
            {
                "queue": name,
                "sequence": sent.sequence,
                "duplicate": sent.duplicate,
                "sent": moment_json(sent.sent_ms),
            }
        )
    elif sent.duplicate:
        print_line(f"a duplicate of message {sent.sequence} of {name}; not stored again", "yellow")
    else:
        print_line(f"sent message {sent.sequence} to {name}", "green")


def _report_many(name: str, count: int, seconds: float, *, json: bool) -> None:
    if json:
        print_json({"queue": name, "sent_messages": count, "seconds": round(seconds, 6)})
    else:
        rate = f", {count / seconds:,.0f} a second" if count > 1 and seconds > 0 else ""
        print_line(f"sent {messages_text(count)} to {name} in {seconds:.2f} s{rate}", "green")
