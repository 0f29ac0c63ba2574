"""Wakes all that wait for changes; nothing is queued for them, each then reads what it has not seen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Broadcast:
    """Lives on the event loop."""

    def __init__(self) -> None:
        self._listening: set[asyncio.Event] = set()

    def __len__(self) -> int:
        return len(self._listening)

    @contextmanager
    def subscribed(self) -> Iterator[asyncio.Event]:
        """An event that is set at every change; the waiting task clears it before it reads the changes."""
        event = asyncio.Event()
        self._listening.add(event)
        try:
            yield event
        finally:
            self._listening.discard(event)

    def notify(self) -> None:
        """There may be news."""
        for event in self._listening:
            event.set()
