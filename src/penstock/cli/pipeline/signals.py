"""Ctrl-C and SIGTERM in a run of the pipeline: while Spark starts they end it at once, later after the running batch."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from penstock.cli.output import error_console

if TYPE_CHECKING:
    from penstock.runtime.processes.stop_flag import StopFlag


@contextmanager
def interruptible_start() -> Iterator[None]:
    """While Spark starts: a first Ctrl-C or SIGTERM ends the command once it has, a second one at once.

    To be interrupted while it starts is what Spark's Python is not made for: it may leave Java behind, which runs on, and it
    writes a traceback to the log.
    """
    root = logging.getLogger()
    root.addFilter(_is_worth_saying)
    with _told_first("stopping as soon as Spark has started; press Ctrl-C again to stop at once") as told:
        try:
            with _without_handler_of_spark():
                yield
        except Exception:
            if not told.is_set():
                raise
        finally:
            root.removeFilter(_is_worth_saying)
    if told.is_set():
        raise KeyboardInterrupt


def _is_worth_saying(record: logging.LogRecord) -> bool:
    return record.exc_info is None or record.exc_info[0] is not KeyboardInterrupt


@contextmanager
def _without_handler_of_spark() -> Iterator[None]:
    """Spark would replace our handler long before it has started, by one that calls Java in the middle of another call, which
    fails with a traceback. It has no setting for that. If Spark renames the function, its handler is used.
    """
    from pyspark.core import context

    names = vars(context)
    usual = names.get("signal")
    if usual is None:
        yield
        return
    names["signal"] = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda number, handler: None)
    try:
        yield
    finally:
        names["signal"] = usual


@contextmanager
def stop_signals() -> Iterator[StopFlag]:
    """A first Ctrl-C or SIGTERM lets the batch that runs be finished; a second one ends at once, which is safe too."""
    with _told_first("stopping after this batch; press Ctrl-C again to stop at once") as stop:
        yield stop


@contextmanager
def _told_first(sentence: str) -> Iterator[StopFlag]:
    """The flag is set by a first Ctrl-C or SIGTERM, which is answered with the sentence; a second one interrupts."""
    from penstock.runtime.processes.stop_flag import StopFlag

    told = StopFlag()

    def handle(number: int, frame: Any) -> None:
        if told.is_set():
            raise KeyboardInterrupt
        told.set()
        error_console().print(sentence, style="dim")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)
