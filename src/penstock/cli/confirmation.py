"""Asks a person before something is lost that cannot come back."""

from __future__ import annotations

import sys

import typer

from penstock.cli.exits import USAGE, CommandError


def confirm_loss(question: str) -> None:
    """Returns on yes; raises where the answer is no or nobody is there to ask."""
    if not sys.stdin.isatty():
        raise CommandError(f"{question.rstrip('?')}: add --yes to do it without being asked", USAGE)
    if not typer.confirm(question, err=True):
        raise CommandError("nothing was done")
