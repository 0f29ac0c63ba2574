"""Runs message move tasks: asks the mover what is due, carries it out, and calls it again at the requested time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.frontend.move_tasks.mover import SOONEST_MS, Mover
from penstock.frontend.move_tasks.task import PREFIX
from penstock.frontend.services import Services
from penstock.metadata.store.interface import Change
from penstock.steps.runner import StepRunner

logger = logging.getLogger(__name__)


class MoveTimer:
    """One timer for all tasks of a front end."""

    def __init__(self, front: Services, mover: Mover, now_ms: Callable[[], int]) -> None:
        self._front = front
        self._mover = mover
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        front.metadata.listen(PREFIX, self._changed)
        self._come_again()

    def close(self) -> None:
        """Starts nothing more; a running slice ends by itself, and the task continues elsewhere or later."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _changed(self, change: Change) -> None:
        # Not at once: the mover may hear of the change after us.
        self._set(SOONEST_MS)

    def _come_again(self) -> None:
        pause_ms = self._mover.pause_ms(self._now_ms())
        if pause_ms is not None:
            self._set(pause_ms)

    def _set(self, pause_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._closed:
            self._timer = self._loop.call_later(pause_ms / 1000, self._run)

    def _run(self) -> None:
        now_ms = self._now_ms()
        for native in self._mover.due(now_ms):
            StepRunner(self._mover.move(native, now_ms), self._front.world, self._ended).start()
        self._come_again()

    def _ended(self, result: Exception | None) -> None:
        if result is not None:
            logger.warning("a message move task failed and is retried: %(error)s", {"error": result})
        self._come_again()
