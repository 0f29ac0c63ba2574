"""A log that Penstock itself writes: found or made when there is first something for it, and left alone while it is away."""

from __future__ import annotations

import asyncio
import logging

from penstock.frontend.engine import EngineLink
from penstock.frontend.steps import Reply, wrong_answer
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.internal_queues import internal_log_settings
from penstock.runtime.cluster_link.cluster_link import ClusterLink
from penstock.wire.messages import CreateQueue, DescribeQueue, QueueDescription, Request, Send

log = logging.getLogger(__name__)

MOST_REPLICAS = 3
"""On so many nodes of a cluster it is, if there are so many when it is made."""


class InternalLog:
    """The way to it over one link."""

    def __init__(self, link: EngineLink, name: str, contents: str) -> None:
        """`contents`: what waits while the log cannot take it, in the words of a warning."""
        self._link = link
        self._name = name
        self._contents = contents
        self._queue_id: int | None = None
        self._looking = asyncio.Lock()
        self._failing = False

    async def store(self, batch: Buffer, producer: int = 0, number: int = 0) -> bool:
        """Whether the log has the batch on disk; a producer's batch that it has already is not stored again."""
        try:
            async with self._looking:
                if self._queue_id is None:
                    self._queue_id = await self._found_or_made()
            await self._ask(Send(self._queue_id, producer, number, internal=True), batch)
        except PenstockError as error:
            if error.code is ErrorCode.QUEUE_NOT_FOUND:  # it was deleted: there will be another
                self._queue_id = None
            if not self._failing:
                self._failing = True
                log.warning("%s wait: %s cannot take them: %s", self._contents, self._name, error.message)
            return False
        if self._failing:
            self._failing = False
            log.warning("%s reach %s again", self._contents, self._name)
        return True

    async def _found_or_made(self) -> int:
        try:
            return await self._described(DescribeQueue(self._name))
        except PenstockError as missing:
            if missing.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
        try:
            return await self._described(CreateQueue(self._name, internal_log_settings(self._replicas())))
        except PenstockError as refused:
            if refused.code is not ErrorCode.QUEUE_EXISTS:
                raise
            # Another process was quicker, and saw more of the nodes, or fewer.
            return await self._described(DescribeQueue(self._name))

    def _replicas(self) -> int:
        if not isinstance(self._link, ClusterLink):
            return 1
        return max(1, min(MOST_REPLICAS, len(self._link.map.nodes)))

    async def _described(self, request: Request) -> int:
        answer = (await self._ask(request)).answer
        if not isinstance(answer, QueueDescription):
            raise wrong_answer(answer, QueueDescription)
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
