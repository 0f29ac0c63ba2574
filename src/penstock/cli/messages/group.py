"""`penstock group`: consumer groups of a retained log: their lag, and moving them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.exits import NOT_FOUND, CommandError, reported
from penstock.cli.output import (
    age,
    messages_text,
    moment,
    moment_json,
    print_facts,
    print_hint,
    print_json,
    print_line,
    print_table,
)
from penstock.cli.parameters import DEFAULT_URL, Json, QueueName, Url, Yes

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.client.log.group_description import GroupDescription, GroupPlace
    from penstock.client.log.log import Log

app = typer.Typer(no_args_is_help=True, help="Consumer groups of a log: list, show, seek, delete.")

GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.", show_default=False)]
HEADINGS = ("group", "next", "behind", "time behind", "members", "committed")
PARTITION_HEADINGS = ("partition", "next", "behind", "time behind", "committed", "reader")


def group_json(queue: str, group: GroupDescription) -> dict[str, Any]:
    """Every field, with its unit in its name."""
    return {
        "queue": queue,
        "group": group.name,
        "offset": group.offset,
        "committed": moment_json(group.committed_ms),
        "lag_messages": group.lag_messages,
        "lag_ms": group.lag_ms,
        "generation": group.generation,
        "members": group.members,
        "partitions": [
            {
                "partition": place.partition,
                "offset": place.offset,
                "committed": moment_json(place.committed_ms),
                "lag_messages": place.lag_messages,
                "lag_ms": place.lag_ms,
                "reader": place.reader or None,
            }
            for place in group.partitions
        ],
    }


@app.command("list")
@reported
def list_groups(name: QueueName, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List the consumer groups of a log, with their positions and lags."""
    from penstock.cli.asking import ask
    from penstock.cli.messages.log_position import log_of

    async def work(client: Client) -> list[GroupDescription]:
        log = await log_of(client, name)
        return [group async for group in log.list_groups()]

    groups = ask(url, work)
    if json:
        for group in groups:
            print_json(group_json(name, group))
    elif groups:
        print_table(HEADINGS, map(_row, groups), right=range(1, 5))
    else:
        print_line(f"no group reads the log of {name}")
        print_hint(f"Create one: penstock tail {name} --group NAME")


@app.command("show")
@reported
def show(name: QueueName, group: GroupName, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show a consumer group: its position, its lag and its members."""
    from penstock.cli.asking import ask
    from penstock.cli.messages.log_position import log_of

    async def work(client: Client) -> GroupDescription:
        return await _find(await log_of(client, name), name, group)

    found = ask(url, work)
    if json:
        print_json(group_json(name, found))
    else:
        _show(name, found)


@app.command("seek")
@reported
def seek(
    name: QueueName,
    group: GroupName,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="New position: 10m (10 minutes ago), a time (2026-05-01T12:00), `beginning` or `end`, "
            "in all partitions; or a sequence number, in its own partition.",
            metavar="PLACE",
            show_default=False,
        ),
    ],
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Move a group to another position in the log, forward or back. Its readers continue from there."""
    from penstock.cli.asking import ask
    from penstock.cli.messages.log_position import log_of, log_position

    place = log_position(to, "--to")

    async def work(client: Client) -> tuple[GroupDescription, GroupDescription]:
        log = await log_of(client, name)
        before = await _find(log, name, group)
        return before, await log.seek(group, start=place.start, from_time=place.from_time)

    before, after = ask(url, work)
    if json:
        print_json({**group_json(name, after), "offset_before": before.offset})
    else:
        print_line(
            f"group {group} of {name} continues at {_place(after)} (before: {_place(before).removeprefix('message ')}): "
            f"{messages_text(after.lag_messages)} to read",
            "green",
        )


@app.command("delete")
@reported
def delete(
    name: QueueName, group: GroupName, yes: Yes = False, url: Url = DEFAULT_URL, json: Json = False
) -> None:
    """Delete a group and its committed position. The log itself does not change."""
    from penstock.cli.asking import ask
    from penstock.cli.confirmation import confirm_loss
    from penstock.cli.messages.log_position import log_of

    async def work(client: Client) -> GroupDescription:
        log = await log_of(client, name)
        found = await _find(log, name, group)
        if not yes:
            confirm_loss(f"Delete group {group} of {name}, which is at {_place(found)}?")
        await log.delete_group(group)
        return found

    found = ask(url, work)
    if json:
        print_json({"queue": name, "deleted": group, "offset": found.offset})
    else:
        print_line(f"group {group} of {name} is deleted; it was at {_place(found)}", "green")


async def _find(log: Log, name: str, group: str) -> GroupDescription:
    async for found in log.list_groups():
        if found.name == group:
            return found
    raise CommandError(
        f"no group {group} reads the log of {name}; `penstock group list {name}` shows those that do",
        NOT_FOUND,
    )


def _row(group: GroupDescription) -> tuple[str, ...]:
    return (
        group.name,
        str(group.offset) if len(group.partitions) == 1 else f"{len(group.partitions)} partitions",
        f"{group.lag_messages:,}",
        _time_behind(group),
        f"{len(group.members):,}",
        f"{age(group.committed_ms)} ago",
    )


def _show(queue: str, group: GroupDescription) -> None:
    print_facts(
        f"group {group.name} of {queue}",
        {
            **({"next message": str(group.offset)} if len(group.partitions) == 1 else {}),
            "behind": messages_text(group.lag_messages),
            "time behind": _time_behind(group),
            "committed": moment(group.committed_ms),
            "generation": str(group.generation),
            "members": ", ".join(group.members) or "none",
        },
    )
    if len(group.partitions) > 1:
        print_table(PARTITION_HEADINGS, map(_partition_row, group.partitions), right=range(4))


def _partition_row(place: GroupPlace) -> tuple[str, ...]:
    return (
        str(place.partition),
        str(place.offset),
        f"{place.lag_messages:,}",
        _time_behind(place),
        f"{age(place.committed_ms)} ago",
        place.reader or "–",
    )


def _place(group: GroupDescription) -> str:
    if len(group.partitions) == 1:
        return f"message {group.offset}"
    return ", ".join(f"message {place.offset} of partition {place.partition}" for place in group.partitions)


def _time_behind(group: GroupDescription | GroupPlace) -> str:
    from penstock.config.units import format_duration

    if not group.lag_messages:
        return "–"
    return format_duration(group.lag_ms if group.lag_ms < 1_000 else group.lag_ms - group.lag_ms % 1_000)
