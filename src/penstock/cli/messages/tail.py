"""`penstock tail`: reads a retained log, from any position on, and follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exits import reported
from penstock.cli.output import error_console
from penstock.cli.parameters import DEFAULT_URL, Json, QueueName, Url

if TYPE_CHECKING:
    from penstock.cli.messages.log_position import LogPosition
    from penstock.client.client import Client
    from penstock.client.log.log import Log
    from penstock.client.log.logged import LoggedMessage

LAST_MESSAGES = 10
"""The number of messages if no start is given."""


@reported
def tail(
    name: QueueName,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Where to begin: 10m (10 minutes ago), a time (2026-05-01T12:00), `beginning` or "
            "`end`, in all partitions; or a sequence number, in its own partition. Default: the "
            "last messages (10, or --limit), or the group's position.",
            metavar="PLACE",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with new messages until Ctrl-C.")
    ] = False,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition", help="Read only this partition. Default: all partitions, merged by time.", min=0
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="Maximum number of messages.", min=1)
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            help="Read as a member of this consumer group: continue from its position and commit what "
            "was shown. A new group begins at --from (default: the beginning).",
            metavar="GROUP",
        ),
    ] = None,
    body: Annotated[bool, typer.Option("--body", help="Print only the bodies, unchanged.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Read the retained log of a queue (consumption `log` or `both`). Nothing is deleted."""
    from penstock.cli.asking import ask
    from penstock.cli.messages.display import show_message
    from penstock.cli.messages.log_position import log_of, log_position

    place = None if start is None else log_position(start, "--from")
    if group is not None and partition is not None:
        raise typer.BadParameter("a group reads all partitions", param_hint="--partition")

    def show(message: LoggedMessage) -> None:
        show_message(message, json=json, body_only=body)

    async def work(client: Client) -> int:
        log = await log_of(client, name)
        shown = 0
        if group is not None:
            begin = (None, None) if place is None else place
            async with log.join(group, start=begin[0], from_time=begin[1], follow=follow) as reader:
                if reader.standing_by:
                    _say(f"another member of group {group} reads; standing by")
                async for message in reader:
                    show(message)
                    shown += 1
                    if shown == limit:
                        await reader.commit()
                        break
            return shown
        last = LAST_MESSAGES if limit is None or follow else limit
        at = place or await _last(log, last, partition)
        messages = log.messages(
            start=at.start, from_time=at.from_time, partition=partition, follow=follow, limit=limit
        )
        async with messages:
            async for message in messages:
                show(message)
                shown += 1
        return shown

    if ask(url, work) == 0 and not json:
        where = "from there on" if group is None else f"that group {group} has not read"
        _say(f"no message in the log of {name} {where}")


async def _last(log: Log, messages: int, partition: int | None) -> LogPosition:
    from penstock.cli.messages.log_position import LogPosition

    return LogPosition(await log.newest(messages, partition), None)


def _say(text: str) -> None:
    error_console().print(text, style="dim", markup=False)
