"""Carries out the steps that store something in a log of Penstock's own, over a link to the engine."""

from __future__ import annotations

import asyncio

from penstock.frontend.engine import EngineLink
from penstock.frontend.usage import internal_log
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.steps.step import Ask, Reply, Steps

MOST_REPLICAS = 3
"""On so many nodes of a cluster it is, if there are so many when it is made."""


class InternalLog:
    """The log over one link."""

    def __init__(self, link: EngineLink, name: str, contents: str) -> None:
        """`contents`: the waiting rows, in the words of a warning."""
        self._link = link
        self._log = internal_log.InternalLog(name, contents, lambda: replicas_over(link))
        self._looking = asyncio.Lock()

    async def store(self, batch: Buffer, producer: int = 0, number: int = 0) -> bool:
        """Whether the log has the batch on disk; a producer's batch that it has already is not stored again."""
        steps = self._log.store(batch, producer, number)
        async with self._looking:  # while it is not known one looks, and the others wait
            if not self._log.is_known:
                return await self._carried_out(steps)
        return await self._carried_out(steps)

    async def _carried_out(self, steps: Steps[bool]) -> bool:
        outcome: Reply | PenstockError | None = None
        while True:
            try:
                step = steps.throw(outcome) if isinstance(outcome, PenstockError) else steps.send(outcome)
            except StopIteration as end:
                stored: bool = end.value
                return stored
            assert isinstance(step, Ask)
            outcome = await outcome_of(self._link, step)


def replicas_over(link: EngineLink) -> int:
    """The number of replicas of a new log: as many as the cluster has nodes, and no more than it needs."""
    if not isinstance(link, ClusterLink):
        return 1
    return max(1, min(MOST_REPLICAS, len(link.map.nodes)))


async def outcome_of(link: EngineLink, step: Ask) -> Reply | PenstockError:
    """The engine's answer."""
    answered: asyncio.Future[Reply | PenstockError] = asyncio.get_running_loop().create_future()

    def done(outcome: Reply | PenstockError) -> None:
        if not answered.done():
            answered.set_result(outcome)

    link.ask(step.request, step.body, done)
    return await answered
