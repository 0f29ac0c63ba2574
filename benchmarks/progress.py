"""The progress bar of a run: how far the sections are, by the time they usually take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich import progress as bars
from rich.console import Console

_WEIGHTS = {
    "machine": 10,
    "throughput": 60,
    "single": 20,
    "end-to-end": 18,
    "memory": 20,
    "backlog": 80,
    "fifo": 30,
    "priority": 30,
    "sqs-throughput": 40,
    "sqs-single": 25,
    "sqs-long-poll": 20,
    "sqs-idle": 40,
    "log": 90,
    "order": 300,
    "cluster-throughput": 60,
    "cluster-log": 50,
    "cluster-single": 40,
    "cluster-failover": 500,
    "cluster-queues": 60,
    "spark-source": 150,
    "spark-jobs": 130,
    "spark-follow": 250,
}
"""Seconds of a full run; a quick one is in proportion."""


class Progress:
    """Shows a bar on a terminal; elsewhere nothing."""

    def __init__(self, console: Console, sections: Sequence[str]) -> None:
        self._bar = bars.Progress(
            bars.SpinnerColumn(),
            bars.BarColumn(),
            bars.TimeElapsedColumn(),
            bars.TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=sum(_WEIGHTS[section] for section in sections))
        self._done = 0.0
        self._weight = 0.0
        self._section = ""
        self._begun = 0.0

    def begin(self, section: str) -> None:
        """The next section starts; the one before counts as done."""
        self._done += self._weight
        self._weight = _WEIGHTS[section]
        self._section = section
        self._begun = time.monotonic()
        self.step(section)

    def step(self, sentence: str) -> None:
        """Says what is being done now."""
        within = min(self._weight, time.monotonic() - self._begun)
        self._bar.update(
            self._task, completed=self._done + within, description=f"{self._section}: {sentence}"
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
