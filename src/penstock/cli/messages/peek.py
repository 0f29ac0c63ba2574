"""`penstock peek`: look at messages without receiving them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from penstock.cli.exits import reported
from penstock.cli.output import error_console
from penstock.cli.parameters import DEFAULT_URL, Json, QueueName, Url, attributes_of

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.wire.messages import PeekFilter

_PANEL = "Which messages"

Contains = Annotated[
    str | None,
    typer.Option(
        "--contains",
        help="Only messages whose body contains this text.",
        metavar="TEXT",
        rich_help_panel=_PANEL,
    ),
]
Attribute = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute",
        "-a",
        help="Only messages with this attribute value; may be repeated.",
        metavar="NAME=VALUE",
        rich_help_panel=_PANEL,
    ),
]
Group = Annotated[
    str | None, typer.Option("--group", help="Only messages of this group.", rich_help_panel=_PANEL)
]
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        help="Only messages in this state: ready, leased, delayed or moving. May be repeated.",
        metavar="STATE",
        rich_help_panel=_PANEL,
    ),
]
Start = Annotated[
    int,
    typer.Option(
        "--from", help="First sequence number to show.", min=0, metavar="SEQUENCE", rich_help_panel=_PANEL
    ),
]


def filter_of(
    *,
    contains: str | None = None,
    attribute: list[str] | None = None,
    group: str | None = None,
    state: list[str] | None = None,
    reason: str | None = None,
    source: str | None = None,
) -> PeekFilter | None:
    """The filter that the options describe; None where there is none."""
    from penstock.wire.messages import MessageState, PeekFilter

    for one in state or ():
        if one not in get_args(MessageState):
            known = ", ".join(get_args(MessageState))
            raise typer.BadParameter(f"{one!r} is not a state; use {known}", param_hint="--state")
    states: Any = state or None
    if not any((states, contains, group, attribute, reason, source)):
        return None
    return PeekFilter(
        states=states,
        body_contains=contains.encode("utf-8", "surrogateescape") if contains else None,
        group=group.encode("utf-8", "surrogateescape") if group else None,
        attributes=attributes_of(attribute) if attribute else None,
        reason=reason,
        source=source,
    )


@reported
def peek(
    name: QueueName,
    start: Start = 0,
    maximum: Annotated[int, typer.Option("--max", "-n", help="Maximum number of messages.", min=1)] = 10,
    contains: Contains = None,
    state: State = None,
    attribute: Attribute = None,
    group: Group = None,
    body: Annotated[bool, typer.Option("--body", help="Print only the bodies, unchanged.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Show messages without receiving them. Nothing changes."""
    from penstock.cli.asking import ask

    wanted = filter_of(contains=contains, attribute=attribute, group=group, state=state)

    async def work(client: Client) -> int:
        from penstock.cli.messages.display import show_message

        shown = 0
        async for message in client.queue(name).peek(start, limit=maximum, filter=wanted):
            show_message(message, json=json, body_only=body)
            shown += 1
        return shown

    if ask(url, work) == 0 and not json:
        what = "no message in" if wanted is None else "no such message in"
        error_console().print(f"{what} {name}", style="dim", markup=False)
