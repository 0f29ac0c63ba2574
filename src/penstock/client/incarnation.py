"""One incarnation of a queue: the id that requests carry, and the numbers of the batches sent to it."""

from __future__ import annotations

import asyncio
from collections import deque

from penstock.model import limits

NUMBERS_IN_FLIGHT = limits.PRODUCER_BATCHES_REMEMBERED - 24
"""Unanswered batches may span no more numbers than the server remembers, or one sent again would be refused."""


class Incarnation:
    """A queue that was deleted and made again is another one, and counts from 1 again."""

    __slots__ = ("_loop", "_number", "_unanswered", "_waiting", "queue_id")

    def __init__(self, queue_id: int, loop: asyncio.AbstractEventLoop) -> None:
        self.queue_id = queue_id
        self._loop = loop
        self._number = 0
        self._unanswered: dict[int, None] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_number(self) -> int | None:
        """The next batch number, or None while too many are unanswered (then await `number_free`)."""
        if self._unanswered and self._room() <= 0:
            return None
        self._number += 1
        self._unanswered[self._number] = None
        return self._number

    def answered(self, number: int) -> None:
        """The batch was answered, stored or refused, or given up."""
        self._unanswered.pop(number, None)
        if not self._waiting:
            return
        room = self._room()
        while self._waiting and room > 0:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                room -= 1

    def _room(self) -> int:
        """How many more numbers may be taken while the oldest is unanswered."""
        following = self._number + 1
        return NUMBERS_IN_FLIGHT - (following - next(iter(self._unanswered), following))

    def number_free(self) -> asyncio.Future[None]:
        """Resolves when it is worth asking for a number again."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiter)
        return waiter
