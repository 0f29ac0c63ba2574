"""Sends what became of messages from a node of a cluster to the log of lifecycles, wherever in the cluster that is led.

The node is a client of its own cluster for this, through the same router as front ends; the link is made when there is
first something to send. The log is made when it is missing, with as many replicas as there are nodes for, up to three.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.backend.replication.lifecycle_sending import LifecycleReport
from penstock.columnar.lifecycle import LIFECYCLE_QUEUE
from penstock.frontend.steps import Reply
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.internal_queues import internal_log_settings
from penstock.runtime.cluster_link.cluster_link import ClusterLink
from penstock.wire.messages import CreateQueue, DescribeQueue, QueueDescription, Request, Send

log = logging.getLogger(__name__)

MOST_REPLICAS = 3

Outcome = Callable[[LifecycleReport, bool], None]
"""Told of every report whether it is stored."""


class LifecycleSender:
    """A task for each report that is under way."""

    def __init__(self, make_link: Callable[[], ClusterLink], done: Outcome) -> None:
        self._make_link = make_link
        self._done = done
        self._link: ClusterLink | None = None
        self._queue_id: int | None = None
        self._looking = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failing = False
        self._closed = False

    def send(self, report: LifecycleReport) -> None:
        """Begins; the outcome is told later."""
        if self._closed:
            return
        task = asyncio.get_running_loop().create_task(self._send(report))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """What is under way is left to whoever leads next."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._link is not None:
            await self._link.close()

    async def _send(self, report: LifecycleReport) -> None:
        if self._link is None:
            self._link = self._make_link()
        link = self._link
        try:
            async with self._looking:
                if self._queue_id is None:
                    self._queue_id = await _found_or_made(link)
            await _ask(link, Send(self._queue_id, internal=True), report.batch)
        except PenstockError as error:
            if error.code is ErrorCode.QUEUE_NOT_FOUND:
                self._queue_id = None
            if not self._failing:
                self._failing = True
                log.warning(
                    "lifecycles of messages wait: %s cannot take them: %s", LIFECYCLE_QUEUE, error.message
                )
            self._done(report, False)
            return
        if self._failing:
            self._failing = False
            log.warning("lifecycles of messages reach %s again", LIFECYCLE_QUEUE)
        self._done(report, True)


async def _found_or_made(link: ClusterLink) -> int:
    try:
        return await _described(link, DescribeQueue(LIFECYCLE_QUEUE))
    except PenstockError as missing:
        if missing.code is not ErrorCode.QUEUE_NOT_FOUND:
            raise
    replicas = max(1, min(MOST_REPLICAS, len(link.map.nodes)))
    try:
        return await _described(link, CreateQueue(LIFECYCLE_QUEUE, internal_log_settings(replicas)))
    except PenstockError as error:
        if (
            error.code is not ErrorCode.QUEUE_EXISTS
        ):  # another node was quicker, and saw more of the others, or fewer
            raise
        return await _described(link, DescribeQueue(LIFECYCLE_QUEUE))


async def _described(link: ClusterLink, request: Request) -> int:
    answer = (await _ask(link, request)).answer
    assert isinstance(answer, QueueDescription)
    return answer.queue_id


async def _ask(link: ClusterLink, request: Request, body: Buffer = b"") -> Reply:
    answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def done(outcome: Reply | PenstockError) -> None:
        if answered.done():
            return
        if isinstance(outcome, PenstockError):
            answered.set_exception(outcome)
        else:
            answered.set_result(outcome)

    link.ask(request, body, done)
    return await answered
