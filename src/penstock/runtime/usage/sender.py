"""Runs the sending of usage rows (`frontend/usage/handing_on.py`): one task, beside the requests and never in their way."""

from __future__ import annotations

import asyncio
import time

from penstock.columnar.usage import USAGE_QUEUE
from penstock.frontend.engine import EngineLink
from penstock.frontend.usage.handing_on import Rest, UsageHandingOn
from penstock.frontend.usage.internal_log import InternalLog
from penstock.model.errors import PenstockError
from penstock.runtime.usage.internal_log import outcome_of, replicas_over
from penstock.steps.step import Ask, Reply
from penstock.streams.waiting import came
from penstock.usage.collector import UsageCollector, UsageTotals

CLOSE_SECONDS = 3.0


class UsageSender:
    """One task; begins with `start`."""

    def __init__(self, collector: UsageCollector, link: EngineLink) -> None:
        self._collector = collector
        self._link = link
        usage_log = InternalLog(USAGE_QUEUE, "records of requests", lambda: replicas_over(link))
        self._handing_on = UsageHandingOn(collector, usage_log, lambda: time.time_ns() // 1_000_000)
        self._many = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        collector.many = self._many.set

    def start(self) -> None:
        """Begins."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def totals(self) -> UsageTotals:
        """The counters of rows so far."""
        return self._collector.totals()

    async def close(self) -> None:
        """Hands on what waits, if the log takes it soon; the rest stays with the collector."""
        self._handing_on.closing = True
        self._closing.set()
        self._many.set()
        if self._task is not None:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._task
            except TimeoutError:
                pass

    async def _run(self) -> None:
        steps = self._handing_on.run()
        outcome: Reply | PenstockError | None = None
        while True:
            try:
                step = steps.throw(outcome) if isinstance(outcome, PenstockError) else steps.send(outcome)
            except StopIteration:
                return
            outcome = None
            if isinstance(step, Rest):
                await self._rest(step)
            else:
                assert isinstance(step, Ask)
                outcome = await outcome_of(self._link, step)

    async def _rest(self, rest: Rest) -> None:
        early = self._many if rest.until_many else self._closing
        await came(early, rest.seconds)
        if rest.until_many:
            self._many.clear()
