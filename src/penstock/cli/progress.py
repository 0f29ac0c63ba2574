"""A progress bar on the error output, where a person looks; nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.cli.output import error_console


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Shows how far a long work is; the function takes what is done so far. `total` None: nobody knows."""
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
        yield lambda done: bar.update(task, completed=done)
