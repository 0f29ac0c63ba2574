"""The watches of a store: each is woken when there may be changes, and then reads them itself.

Nothing is queued for a watch, so a slow one costs no memory: it continues from the version that it has seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

from penstock.metadata.store.interface import Change
from penstock.streams.waiting import came

KEPT_CHANGES = 4096
"""How many changes a store remembers for watches that are behind."""
READ_AT_ONCE = 512


class News(NamedTuple):
    """Changes after a version, and the version up to which they are complete."""

    changes: list[Change]
    upto: int
    more: bool


Read = Callable[[str, int], Awaitable[News]]


class Watchers:
    """The watches of one handle of a store; lives on the event loop."""

    def __init__(self) -> None:
        self._signals: set[asyncio.Event] = set()
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._signals)

    async def follow(
        self, read: Read, prefix: str, after: int, poll_seconds: Callable[[], float | None] = lambda: None
    ) -> AsyncGenerator[Change, None]:
        """The changes that `read` finds, again after every wake; `poll_seconds` says how long to wait for one."""
        signal = asyncio.Event()
        self._signals.add(signal)
        try:
            while not self._closed:
                signal.clear()
                news = await read(prefix, after)
                for change in news.changes:
                    yield change
                after = news.upto
                if not news.more and not self._closed:
                    await came(signal, poll_seconds())
        finally:
            self._signals.discard(signal)

    def wake(self) -> None:
        """There may be news."""
        for signal in self._signals:
            signal.set()

    def close(self) -> None:
        """All watches end."""
        self._closed = True
        self.wake()
