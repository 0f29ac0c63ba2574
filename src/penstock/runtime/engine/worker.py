"""A thread that does one kind of blocking work, in order, and reports to the event loop.

It decides nothing: the result is stored in the work itself, and read on the loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Generic, Protocol, TypeVar


class Work(Protocol):
    """Blocking work; `run` never raises but stores errors for the loop's thread."""

    def run(self) -> None: ...


Task = TypeVar("Task", bound=Work)


class Worker(Generic[Task]):
    """Runs work in its thread; `done(work)` is called on the loop's thread afterwards."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, done: Callable[[Task], None]) -> None:
        self._loop = loop
        self._done = done
        # A SimpleQueue is a list and a lock in C: putting costs about a microsecond and wakes the thread.
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        # A daemon, so that a disk that hangs cannot keep a process alive that must stop at once.
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def thread_id(self) -> int:
        """The kernel's id of the thread."""
        identity = self._thread.native_id
        assert identity is not None, "a thread that was started has an id"
        return identity

    def put(self, work: Task) -> None:
        """Hands over work; returns at once."""
        self._queue.put(work)

    def stop(self) -> None:
        """Finishes what was put, and ends; returns at once."""
        self._queue.put(None)

    def join(self, timeout_seconds: float) -> bool:
        """Waits for the thread to end after `stop`; False when it has not."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work.run()
            try:
                self._loop.call_soon_threadsafe(self._done, work)
            except RuntimeError:
                return  # the loop is closed: there is no receiver
