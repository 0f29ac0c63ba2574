"""Asks a person before an irreversible loss."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from penstock.cli.exits import USAGE, CommandError

if TYPE_CHECKING:
    from penstock.wire.messages import QueueStatistics


def at_stake(statistics: QueueStatistics) -> int:
    """How many messages are lost with a queue and its log; waiting ones may be in both."""
    waiting = statistics.ready + statistics.leased + statistics.delayed + statistics.held
    return max(waiting, statistics.log_messages)


def confirm_loss(question: str) -> None:
    """Returns on yes; raises if the answer is no or there is no terminal."""
    if not sys.stdin.isatty():
        raise CommandError(f"{question.rstrip('?')}: add --yes to do it without being asked", USAGE)
    if not typer.confirm(question, err=True):
        raise CommandError("nothing was done")
