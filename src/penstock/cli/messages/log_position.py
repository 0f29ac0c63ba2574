"""Positions in a retained log as users write them: a number, a duration ago, a time, `beginning` or `end`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import typer

from penstock.cli.exits import USAGE, CommandError
from penstock.config.units import parse_duration_ms

if TYPE_CHECKING:
    from penstock.client.client import Client
    from penstock.client.log.log import Log
    from penstock.client.log.start import Moment, Start

EXAMPLES = "a sequence number, 10m (so long ago), 2026-05-01T12:00, beginning or end"
_DURATION = re.compile(r"[0-9.]+\s*[a-z]+.*")


class LogPosition(NamedTuple):
    """Exactly one of the two is set."""

    start: Start | None
    from_time: Moment | None


def log_position(text: str, option: str) -> LogPosition:
    """Reads a place; `option` is named where it is none."""
    word = text.strip()
    if word == "beginning":
        return LogPosition("beginning", None)
    if word == "end":
        return LogPosition("end", None)
    if word.isascii() and word.isdigit():
        return LogPosition(int(word), None)
    try:
        if _DURATION.fullmatch(word):
            return LogPosition(None, timedelta(milliseconds=parse_duration_ms(word)))
        moment = datetime.fromisoformat(word)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a place in a log; use {EXAMPLES}", param_hint=option
        ) from None
    return LogPosition(None, moment.astimezone())


async def log_of(client: Client, name: str) -> Log:
    """The queue's log; raises with what to do instead where it has none."""
    settings = (await client.describe_queue(name)).settings
    if not settings.has_log:
        raise CommandError(
            f"queue {name} has no retained log. Show its messages with `penstock "
            f"peek {name}`, or create a queue with `--consumption log` (or `both`)",
            USAGE,
        )
    return client.queue(name).log()
