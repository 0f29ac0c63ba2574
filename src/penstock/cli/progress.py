"""A progress bar on the error output, if that is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from penstock.cli.output import error_console


class Show(Protocol):
    """Shows the progress, and a few words about it."""

    def __call__(self, done: int, note: str = "") -> None: ...


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Show]:
    """Shows the progress of a long operation; the function takes the amount that is done. `total` None: unknown."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    target = error_console()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=target,
        transient=True,
        disable=not target.is_terminal,
    ) as bar:
        task = bar.add_task(description, total=total)

        def show(done: int, note: str = "") -> None:
            bar.update(task, completed=done, description=f"{description}, {note}" if note else description)

        yield show
