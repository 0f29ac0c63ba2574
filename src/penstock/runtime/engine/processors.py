"""The processors of the process: the configured ones, and the one that its busiest threads share.

Only Linux can restrict a thread to a processor, and only with `/proc` can the effect be measured; elsewhere `auto` leaves
everything to the kernel. See `docs/adr/0012-the-loop-and-the-flush-share-a-processor.md`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from pathlib import Path

from penstock.config.processors import Processors, format_processors
from penstock.runtime.engine.cpu_affinity import AffinityChoice, Sample
from penstock.runtime.processes.listening import StartError

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
_TASKS = Path("/proc/self/task")
_PROCESSOR_FIELD = 36
"""Of `/proc/…/stat`, counted from behind the name of the thread."""


def use_processors(processors: Processors) -> None:
    """Keeps the process, and every thread it starts from now on, to processors that were named; raises `StartError`."""
    if isinstance(processors, str):
        return
    named = format_processors(processors)
    if not hasattr(os, "sched_setaffinity"):
        raise StartError(f"cannot use only processors {named}: only Linux can; use --cpus all")
    allowed = tuple(sorted(os.sched_getaffinity(0)))
    if not set(processors) <= set(allowed):
        raise StartError(
            f"cannot use only processors {named}: this process may use {format_processors(allowed)}; "
            "name some of these with --cpus, or use --cpus auto"
        )
    os.sched_setaffinity(0, processors)


class SharedProcessor:
    """Restricts the event loop's thread and its partners to one processor while that is faster."""

    def __init__(self, partners: tuple[int, ...]) -> None:
        """To be made on the event loop's thread; `partners` are ids that the kernel gave to threads."""
        self._loop_thread = threading.get_native_id()
        self._partners = partners
        self._placement = AffinityChoice()
        self._allowed: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def kept_on(self) -> int | None:
        """The processor they are kept to right now."""
        return self._placement.kept_on

    def start(self) -> None:
        """Looks every now and then, unless there is nothing to choose."""
        if not self._partners or not hasattr(os, "sched_setaffinity"):
            return
        self._allowed = os.sched_getaffinity(self._loop_thread)
        if len(self._allowed) > 1:
            self._look_later()

    def stop(self) -> None:
        """Stops checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self, sample: Sample | None = None) -> bool:
        """Restricts or releases; False if another program has changed the processors."""
        placement = self._placement
        try:
            if not self._still_ours():
                logger.info(
                    "the processors of this process were already restricted; Penstock does not change them"
                )
                return False
            if placement.look(sample if sample is not None else self._sample()):
                kept = placement.kept_on
                self._keep_to(self._allowed if kept is None else {kept})
                logger.debug(
                    "event loop and flush %(what)s",
                    {"what": "let go" if kept is None else f"kept to processor {kept}"},
                )
        except (OSError, ValueError, IndexError) as error:
            logger.info(
                "could not keep the threads of the server on one processor: %(error)s", {"error": error}
            )
            return False
        return True

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_and_go_on)

    def _look_and_go_on(self) -> None:
        if self.look():
            self._look_later()

    def _still_ours(self) -> bool:
        kept = self._placement.kept_on
        expected = self._allowed if kept is None else {kept}
        return os.sched_getaffinity(self._loop_thread) == expected

    def _keep_to(self, processors: set[int]) -> None:
        for thread in (self._loop_thread, *self._partners):
            os.sched_setaffinity(thread, processors)

    def _sample(self) -> Sample:
        ran_ns, waited_ns = _schedule_of(self._loop_thread)
        partners_ran_ns = sum(_schedule_of(thread)[0] for thread in self._partners)
        status = (_TASKS / str(self._loop_thread) / "stat").read_text()
        processor = int(status.rpartition(")")[2].split()[_PROCESSOR_FIELD])
        return Sample(time.monotonic_ns(), ran_ns, waited_ns, partners_ran_ns, processor)


def _schedule_of(thread: int) -> tuple[int, int]:
    """How long a thread has run, and how long it waited for a processor, in nanoseconds."""
    ran, waited, _ = (_TASKS / str(thread) / "schedstat").read_text().split()
    return int(ran), int(waited)
