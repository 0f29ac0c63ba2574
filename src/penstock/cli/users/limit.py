"""`penstock limit`: how many requests users may make and queues may get; a running server applies it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from penstock.cli.exits import NOT_FOUND, USAGE, CommandError, reported
from penstock.cli.output import print_hint, print_json, print_line, print_table
from penstock.cli.parameters import Data, Json

if TYPE_CHECKING:
    from penstock.cli.processes.metadata_store import OpenMetadata
    from penstock.metadata.request_limits import RequestLimit

app = typer.Typer(no_args_is_help=True, help="Limits on requests, for users and for queues.")

ForUser = Annotated[str | None, typer.Option("--user", help="The limit of this user.", metavar="NAME")]
ForQueue = Annotated[str | None, typer.Option("--queue", help="The limit of this queue.", metavar="QUEUE")]
EveryUser = Annotated[
    bool, typer.Option("--every-user", help="The limit of each user without a separate limit.")
]
EveryQueue = Annotated[
    bool, typer.Option("--every-queue", help="The limit of each queue without a separate limit.")
]
Target = tuple[Literal["user", "queue"], str | None]


@app.command("set")
@reported
def set_limit(
    rate: Annotated[float, typer.Option("--rate", help="Requests a second in the long run.", metavar="N")],
    burst: Annotated[
        int | None, typer.Option("--burst", help="Requests at once (default: the rate).", metavar="N")
    ] = None,
    user: ForUser = None,
    queue: ForQueue = None,
    every_user: EveryUser = False,
    every_queue: EveryQueue = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Set or change a limit."""
    from penstock.cli.processes.metadata_store import with_metadata
    from penstock.metadata.request_limits import RequestLimit, check, encode, key_of

    target = _target(user, queue, every_user, every_queue)
    try:
        limit = RequestLimit(rate, burst if burst is not None else max(1, int(min(rate, 1e9))))
        check(limit)
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None

    async def work(metadata: OpenMetadata) -> None:
        if user is not None:
            await metadata.users.user(user)
        await metadata.store.put(key_of(*target), encode(limit))

    with_metadata(data, work)
    if json:
        print_json(_json(target, limit))
    else:
        print_line(f"{_text(target)}: {rate:g} requests a second, {limit.burst} at once", "green")


@app.command("clear")
@reported
def clear(
    user: ForUser = None,
    queue: ForQueue = None,
    every_user: EveryUser = False,
    every_queue: EveryQueue = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Remove a limit."""
    from penstock.cli.processes.metadata_store import with_metadata
    from penstock.metadata.request_limits import key_of
    from penstock.metadata.store.interface import ABSENT

    target = _target(user, queue, every_user, every_queue)
    if with_metadata(data, lambda metadata: metadata.store.delete(key_of(*target))) == ABSENT:
        raise CommandError(
            f"there is no limit for {_text(target)}; `penstock limit list` shows them", NOT_FOUND
        )
    if json:
        print_json({"cleared": target[0], "name": target[1]})
    else:
        print_line(f"{_text(target)}: no limit", "green")


@app.command("list")
@reported
def list_limits(data: Data = None, json: Json = False) -> None:
    """List the limits."""
    from penstock.cli.processes.metadata_store import with_metadata
    from penstock.metadata.request_limits import LIMITS, decode, parse_key

    listing = with_metadata(data, lambda metadata: metadata.store.list(LIMITS))
    limits = [
        (target, decode(entry.value))
        for entry in listing.entries
        if (target := parse_key(entry.key)) is not None
    ]
    if json:
        for target, limit in limits:
            print_json(_json(target, limit))
    elif limits:
        rows = [(_text(target), f"{limit.rate:g}", str(limit.burst)) for target, limit in limits]
        print_table(("for", "requests/s", "burst"), rows, right=(1, 2))
    else:
        print_line("there are no limits")
        print_hint("Next: penstock limit set --every-user --rate 100 --burst 200")


def _target(user: str | None, queue: str | None, every_user: bool, every_queue: bool) -> Target:
    chosen: list[Target] = []
    if user is not None:
        chosen.append(("user", user))
    if queue is not None:
        chosen.append(("queue", queue))
    if every_user:
        chosen.append(("user", None))
    if every_queue:
        chosen.append(("queue", None))
    if len(chosen) != 1 or chosen[0][1] == "":
        raise CommandError(
            "name exactly one of --user NAME, --queue QUEUE, --every-user or --every-queue", USAGE
        )
    return chosen[0]


def _text(target: Target) -> str:
    kind, name = target
    return f"{kind} {name}" if name is not None else f"every {kind}"


def _json(target: Target, limit: RequestLimit) -> dict[str, object]:
    return {"kind": target[0], "name": target[1], "rate": limit.rate, "burst": limit.burst}
