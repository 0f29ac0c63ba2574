"""A client that sends one message after the other all the time, and remembers when each was begun and acknowledged."""

from __future__ import annotations

import asyncio
import threading
import time
from types import TracebackType
from typing import Self

import penstock
from benchmarks.processes import BenchError
from penstock.model.errors import PenstockError

SETTLE_SECONDS = 60.0
"""Whatever is waited for, for so long at most."""
BETWEEN_SECONDS = 0.005
"""Between an acknowledgement and the next send: hundreds of seconds of sends must not become a backlog that is measured
instead, when a node that was killed reads it again."""
_PAUSE_SECONDS = 0.001


class Sender:
    """Sends one message after the other in a thread of its own, and notes when each was begun and acknowledged."""

    def __init__(self, url: str, queue: str) -> None:
        self._url = url
        self._queue = queue
        self._stop = threading.Event()
        self._news = threading.Condition()
        self.acknowledged: list[tuple[float, float]] = []
        self.refused = 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._send()), name="sender", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(SETTLE_SECONDS)

    def first_after(self, moment: float) -> float:
        """When the first message that was begun after the moment was acknowledged; waits for it."""
        deadline = time.monotonic() + SETTLE_SECONDS
        with self._news:
            while True:
                for began, done in reversed(self.acknowledged):
                    if began < moment:
                        break
                    found = done
                if self.acknowledged and self.acknowledged[-1][0] >= moment:
                    return found
                if not self._news.wait(max(0.0, deadline - time.monotonic())):
                    raise BenchError(f"nothing was acknowledged for {SETTLE_SECONDS:g} s after a failover")

    def longest_between(self, first: float, last: float) -> float:
        """The longest that a send took of those under way between two moments."""
        with self._news:
            return max(
                (done - began for began, done in self.acknowledged if done >= first and began <= last),
                default=0.0,
            )

    async def _send(self) -> None:
        body = bytes(1024)
        async with penstock.connect(self._url, timeout=SETTLE_SECONDS) as client:
            queue = client.queue(self._queue)
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    await queue.send(body)
                except PenstockError as error:
                    if not error.retryable:
                        raise
                    self.refused += 1
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                with self._news:
                    self.acknowledged.append((began, time.monotonic()))
                    self._news.notify_all()
                await asyncio.sleep(BETWEEN_SECONDS)
