"""Background work of a link: tasks that no caller awaits, and objects that must be closed before the link."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol
from weakref import WeakSet


class Dependent(Protocol):
    """An object that must be closed before its link: a producer, a consumer."""

    async def close(self) -> None:
        """Finishes what is under way."""


class Background:
    """Keeps tasks alive while they run, and knows the objects to close."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._dependents: WeakSet[Dependent] = WeakSet()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a task that no caller awaits; it handles its own errors."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def run_from_collector(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs work when an object is collected, which happens in any thread, at any time, and also after the end of the loop."""
        try:
            self._loop.call_soon_threadsafe(lambda: self.run(work()))
        except RuntimeError:
            pass  # the loop is closed, and the connection with it

    def add(self, dependent: Dependent) -> None:
        """Closes it when the link is closed, if it still exists by then."""
        self._dependents.add(dependent)

    async def close(self) -> list[BaseException]:
        """Closes all dependents; returns what went wrong."""
        results = await asyncio.gather(
            *(one.close() for one in list(self._dependents)), return_exceptions=True
        )
        return [result for result in results if isinstance(result, BaseException)]
