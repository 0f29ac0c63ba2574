"""Hands usage on to its log: a batch at a time, each until the log has it, beside the requests and never in their way."""

from __future__ import annotations

import asyncio
import logging

from penstock.columnar.usage import USAGE_QUEUE
from penstock.frontend.engine import EngineLink
from penstock.frontend.steps import Reply
from penstock.model.batch import Buffer, encode_one
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.internal_queues import internal_log_settings
from penstock.usage.batch import UsageBatch
from penstock.usage.collector import UsageCollector, UsageTotals
from penstock.wire.messages import CreateQueue, DescribeQueue, QueueDescription, Request, Send

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.5
"""How long an event waits for company."""
AGAIN_SECONDS = 2.0
"""How long the log is left alone after it could not take a batch."""
CLOSE_SECONDS = 3.0


class UsageSender:
    """One task; begins with `start`."""

    def __init__(self, collector: UsageCollector, link: EngineLink, most_replicas: int) -> None:
        self._collector = collector
        self._link = link
        self._most_replicas = most_replicas
        self._queue_id: int | None = None
        self._many = asyncio.Event()
        self._closing = asyncio.Event()
        self._failing = False
        self._task: asyncio.Task[None] | None = None
        collector.many = self._many.set

    def start(self) -> None:
        """Begins."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def totals(self) -> UsageTotals:
        """What became of the events so far."""
        return self._collector.totals()

    async def close(self) -> None:
        """Hands on what waits, if the log takes it soon; the rest is kept for the next process."""
        self._closing.set()
        self._many.set()
        if self._task is not None:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._task
            except TimeoutError:
                pass
        self._collector.close()

    async def _run(self) -> None:
        while True:
            await _until(self._many, PAUSE_SECONDS)
            self._many.clear()
            while (batch := self._collector.next_batch()) is not None:
                if await self._sent(batch):
                    self._collector.reported(batch)
                    continue
                if self._closing.is_set():
                    return
                await _until(self._closing, AGAIN_SECONDS)
            if self._closing.is_set():
                return

    async def _sent(self, batch: UsageBatch) -> bool:
        try:
            if self._queue_id is None:
                self._queue_id = await self._found_or_made()
            body = encode_one(batch.stream())
            await self._ask(Send(self._queue_id, batch.producer, batch.batch, internal=True), body)
        except PenstockError as error:
            if error.code is ErrorCode.QUEUE_NOT_FOUND:  # somebody deleted it: there will be another
                self._queue_id = None
            self._failed(error)
            return False
        if self._failing:
            self._failing = False
            log.warning("usage reaches %s again", USAGE_QUEUE)
        return True

    async def _found_or_made(self) -> int:
        try:
            return await self._described(DescribeQueue(USAGE_QUEUE))
        except PenstockError as missing:
            if missing.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
        for replicas in range(self._most_replicas, 1, -1):
            try:
                return await self._described(CreateQueue(USAGE_QUEUE, internal_log_settings(replicas)))
            except PenstockError as refused:
                if refused.code is ErrorCode.QUEUE_EXISTS:  # another front end was quicker
                    return await self._described(DescribeQueue(USAGE_QUEUE))
                log.debug("%s cannot have %d replicas: %s", USAGE_QUEUE, replicas, refused.message)
        return await self._described(CreateQueue(USAGE_QUEUE, internal_log_settings(1)))

    async def _described(self, request: Request) -> int:
        answer = (await self._ask(request)).answer
        assert isinstance(answer, QueueDescription)
        return answer.queue_id

    async def _ask(self, request: Request, body: Buffer = b"") -> Reply:
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def done(outcome: Reply | PenstockError) -> None:
            if answered.done():
                return
            if isinstance(outcome, PenstockError):
                answered.set_exception(outcome)
            else:
                answered.set_result(outcome)

        self._link.ask(request, body, done)
        return await answered

    def _failed(self, error: PenstockError) -> None:
        if not self._failing:
            self._failing = True
            log.warning("usage waits on disk: %s cannot take it: %s", USAGE_QUEUE, error.message)


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
