"""Hands usage on to its log: a batch at a time, each until the log has it, beside the requests and never in their way."""

from __future__ import annotations

import asyncio
import logging
import time

from penstock.columnar.usage import USAGE_QUEUE
from penstock.frontend.engine import EngineLink
from penstock.model.batch import encode_one
from penstock.runtime.internal_log import InternalLog
from penstock.usage.batch import UsageBatch
from penstock.usage.collector import UsageCollector, UsageTotals

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.5
"""How long an event waits for company."""
AGAIN_SECONDS = 2.0
"""How long the log is left alone after it could not take a batch."""
CLOSE_SECONDS = 3.0


class UsageSender:
    """One task; begins with `start`."""

    def __init__(self, collector: UsageCollector, link: EngineLink) -> None:
        self._collector = collector
        self._log = InternalLog(link, USAGE_QUEUE, "records of requests")
        self._many = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        collector.many = self._many.set

    def start(self) -> None:
        """Begins."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def totals(self) -> UsageTotals:
        """What became of the events so far."""
        return self._collector.totals()

    async def close(self) -> None:
        """Hands on what waits, if the log takes it soon; the rest stays with the collector."""
        self._closing.set()
        self._many.set()
        if self._task is not None:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._task
            except TimeoutError:
                pass

    async def _run(self) -> None:
        while True:
            await _until(self._many, PAUSE_SECONDS)
            self._many.clear()
            self._collector.record_sums(None if self._closing.is_set() else time.time_ns() // 1_000_000)
            while (batch := self._collector.next_batch()) is not None:
                if await self._stored(batch):
                    self._collector.reported(batch)
                elif self._closing.is_set():
                    return
                else:
                    await _until(self._closing, AGAIN_SECONDS)
                if not self._collector.has_many and not self._closing.is_set():
                    break  # else every few requests of a busy client would be written on their own
            if self._closing.is_set():
                return

    async def _stored(self, batch: UsageBatch) -> bool:
        try:
            return await self._log.store(
                encode_one(self._collector.stream(batch)), batch.producer, batch.batch
            )
        except Exception:  # a task that ends takes the record of all later requests along
            log.exception(
                "records of requests wait: this is a defect of Penstock; please report it with what follows"
            )
            return False


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
