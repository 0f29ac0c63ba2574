"""`penstock dlq`: dead letters: where they are, why they died, and sending them back.

A command takes the queue in which messages died, or the dead-letter queue itself. With the former, it uses only that
queue's dead letters, even if others share the dead-letter queue.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from penstock.cli.exits import NOT_FOUND, USAGE, CommandError, reported
from penstock.cli.messages.peek import Attribute, Contains, Group, Start, filter_of
from penstock.cli.output import (
    error_console,
    messages_text,
    print_facts,
    print_hint,
    print_json,
    print_line,
    print_table,
)
from penstock.cli.parameters import DEFAULT_URL, Json, QueueName, Url, Yes

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.wire.messages import QueueDescription

app = typer.Typer(no_args_is_help=True, help="Dead letters: list, browse, redrive.")

SHOWN_REASONS_OF = 10_000
"""`dlq show` counts the reasons of this many dead letters."""

REASONS = ("max-receives", "expired", "overflow", "queue-deleted")


def _reason(text: str | None) -> str | None:
    if text is not None and text not in REASONS:
        raise typer.BadParameter(f"{text!r} is not a reason; use {', '.join(REASONS)}")
    return text


Reason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        help="Only this reason: max-receives, expired, overflow or queue-deleted.",
        rich_help_panel="Which messages",
        callback=_reason,
    ),
]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        help="Only messages that came from this queue.",
        metavar="QUEUE",
        rich_help_panel="Which messages",
    ),
]


class DeadLetterQueue(NamedTuple):
    """Where to look for dead letters, and of which queue."""

    name: str
    source: str | None


async def _find(client: Client, name: str) -> DeadLetterQueue:
    settings = (await client.describe_queue(name)).settings
    if settings.dead_letter_queue is not None:
        return DeadLetterQueue(settings.dead_letter_queue, name)
    sources = [one.name async for one in client.list_queues() if one.settings.dead_letter_queue == name]
    if not sources:
        async for message in client.queue(name).peek(limit=1):
            if message.dead_letter is not None:
                return DeadLetterQueue(name, None)
        raise CommandError(
            f"queue {name} has no dead-letter queue and is not one; add one with "
            f"`penstock queue alter {name} --dead-letter-queue NAME --max-receives 5`",
            NOT_FOUND,
        )
    return DeadLetterQueue(name, None)


@app.command("list")
@reported
def list_dead_letter_queues(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List the dead-letter queues, their messages and their source queues."""
    from penstock.cli.asking import ask

    async def work(client: Client) -> list[QueueDescription]:
        return [description async for description in client.list_queues()]

    descriptions = {description.name: description for description in ask(url, work)}
    sources: dict[str, list[str]] = {}
    for description in descriptions.values():
        if description.settings.dead_letter_queue is not None:
            sources.setdefault(description.settings.dead_letter_queue, []).append(description.name)
    rows = []
    for name in sorted(sources):
        waiting = descriptions[name].statistics.ready if name in descriptions else None
        rows.append((name, waiting, sources[name]))
    if json:
        for name, waiting, names in rows:
            print_json(
                {
                    "queue": name,
                    "exists": waiting is not None,
                    "ready": waiting,
                    "dead_letter_queue_of": names,
                }
            )
    elif rows:
        print_table(
            ("dead-letter queue", "ready", "of"),
            (
                (name, "missing" if waiting is None else f"{waiting:,}", ", ".join(names))
                for name, waiting, names in rows
            ),
            right=[1],
        )
    else:
        print_line("no queue has a dead-letter queue")
        print_hint("Add one: penstock queue alter QUEUE --dead-letter-queue NAME --max-receives 5")


@app.command("show")
@reported
def show(name: QueueName, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show the dead-letter queue of a queue: the number of messages and the reasons."""
    from penstock.cli.asking import ask

    async def work(client: Client) -> tuple[DeadLetterQueue, QueueDescription, Counter[str]]:
        found = await _find(client, name)
        reasons: Counter[str] = Counter()
        peeked = client.queue(found.name).peek(limit=SHOWN_REASONS_OF, filter=filter_of(source=found.source))
        async for message in peeked:
            reasons[message.dead_letter.reason if message.dead_letter else "sent here"] += 1
        return found, await client.describe_queue(found.name), reasons

    found, description, reasons = ask(url, work)
    statistics = description.statistics
    if json:
        print_json(
            {
                "queue": name,
                "dead_letter_queue": found.name,
                "ready": statistics.ready,
                "leased": statistics.leased,
                "reasons": dict(reasons),
                "reasons_counted_to": SHOWN_REASONS_OF,
            }
        )
        return
    more = " or more" if sum(reasons.values()) >= SHOWN_REASONS_OF else ""
    print_facts(
        f"dead letters of {name}" if found.source else f"dead-letter queue {found.name}",
        {
            "kept in": found.name,
            "ready": f"{statistics.ready:,}",
            "leased": f"{statistics.leased:,}",
            **{reason: f"{count:,}{more}" for reason, count in reasons.most_common()},
        },
    )
    if reasons:
        print_hint(f"Next: penstock dlq browse {name}, then penstock dlq redrive {name}")


@app.command("browse")
@reported
def browse(
    name: QueueName,
    start: Start = 0,
    maximum: Annotated[int, typer.Option("--max", "-n", help="Maximum number of messages.", min=1)] = 10,
    reason: Reason = None,
    source: Source = None,
    contains: Contains = None,
    attribute: Attribute = None,
    group: Group = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Show dead letters: their reason, their source, and how often they were received."""
    from penstock.cli.asking import ask

    async def work(client: Client) -> tuple[int, str]:
        from penstock.cli.messages.display import show_message

        found = await _find(client, name)
        wanted = filter_of(
            contains=contains, attribute=attribute, group=group, reason=reason, source=source or found.source
        )
        shown = 0
        async for message in client.queue(found.name).peek(start, limit=maximum, filter=wanted):
            show_message(message, json=json)
            shown += 1
        return shown, found.name

    shown, place = ask(url, work)
    if shown == 0 and not json:
        error_console().print(f"no such dead letter in {place}", style="dim", markup=False)


@app.command("redrive")
@reported
def redrive(
    name: QueueName,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", help="Send the messages to this queue instead of their source queues.", metavar="QUEUE"
        ),
    ] = None,
    sequence: Annotated[
        list[str] | None,
        typer.Option(
            "--sequence",
            help="Only these sequence numbers of the dead-letter queue: 7 or 10-20. May be repeated.",
            metavar="NUMBERS",
            rich_help_panel="Which messages",
        ),
    ] = None,
    maximum: Annotated[
        int | None, typer.Option("--max", "-n", help="Maximum number of messages.", min=1)
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Maximum number of messages a second.", min=0.001)
    ] = None,
    reason: Reason = None,
    source: Source = None,
    contains: Contains = None,
    attribute: Attribute = None,
    group: Group = None,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Send dead letters back to their source queues: all of them, or a selection."""
    from penstock.cli.asking import ask
    from penstock.cli.progress import progress

    chosen = _sequences(sequence) if sequence else None

    async def work(client: Client) -> tuple[int, str]:
        found = await _find(client, name)
        wanted = filter_of(
            contains=contains, attribute=attribute, group=group, reason=reason, source=source or found.source
        )
        total = (
            len(chosen) if chosen is not None else (await client.describe_queue(found.name)).statistics.ready
        )
        total = total if maximum is None else min(total, maximum)
        if not yes and chosen is None and wanted is None and maximum is None:
            _confirm_all(found.name, total)
        with progress(f"redriving {found.name}", None if wanted else total) as show_progress:
            moved = await client.queue(found.name).redrive(
                to,
                max_messages=maximum,
                rate=rate,
                sequences=chosen,
                filter=wanted,
                on_progress=show_progress,
            )
        return moved, found.name

    moved, place = ask(url, work)
    if json:
        print_json({"dead_letter_queue": place, "redriven_messages": moved, "target": to})
    else:
        where = f"to {to}" if to else "back to their source queues"
        print_line(f"sent {messages_text(moved)} of {place} {where}", "green")


def _confirm_all(name: str, total: int) -> None:
    """Asks before a whole dead-letter queue is moved, on a terminal; nothing is lost by it."""
    import sys

    if sys.stdin.isatty() and not typer.confirm(
        f"Redrive all of {messages_text(total)} in {name}?", err=True
    ):
        raise CommandError("nothing was done")


def _sequences(texts: list[str]) -> list[int]:
    chosen: list[int] = []
    for text in texts:
        first, dash, last = text.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise CommandError(f"{text!r} is not a sequence number; write 7 or 10-20", USAGE)
        end = int(last) if dash else int(first)
        if end - int(first) > 1_000_000:
            raise CommandError(
                f"{text!r} is more than a million messages; redrive them without --sequence", USAGE
            )
        chosen += range(int(first), end + 1)
    return chosen
