"""The link to a cluster: an engine for a front end, made from the layout and connections to the nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from penstock.frontend.engine import Answered
from penstock.frontend.telling import tell
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.interface import Change
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import ReadOffer, RoutingContext
from penstock.routing.router import routed, told
from penstock.routing.unheard import look_for
from penstock.runtime.cluster.link.cluster_world import ClusterWorld
from penstock.runtime.cluster.link.node_links import MakeLink, NodeLinks
from penstock.runtime.cluster.link.partition_calls import Call, PartitionCalls
from penstock.steps.runner import StepRunner
from penstock.steps.step import Outcome, Reply, Steps
from penstock.wire.messages import Done, Request

logger = logging.getLogger(__name__)

LAYOUT = "cluster/"


class ClusterLink:
    """See `EngineLink`. The caller owns the mirror and closes it after the link."""

    def __init__(
        self,
        mirror: MetadataMirror,
        loop: asyncio.AbstractEventLoop,
        *,
        make_link: MakeLink,
        producer: int,
        now_ms: Callable[[], int],
        replicas: int = 1,
        offer: ReadOffer | None = None,
    ) -> None:
        self._loop = loop
        self.map = ClusterMap()
        for entry in mirror.cache.list(LAYOUT):
            self.map.apply(entry.key, entry.value)
        mirror.cache.listen(LAYOUT, self._heard)
        self.links = NodeLinks(self.map, loop, make_link)
        self.calls = PartitionCalls(self.map, self.links, mirror.refresh, loop)
        self._context = RoutingContext(
            self.map, producer=producer, now_ms=now_ms, load=self.calls.load, replicas=replicas
        )
        self._context.offer = offer
        self._world = ClusterWorld(self.map, mirror, self.links, self.calls, loop)
        self._runners: dict[int, StepRunner[Reply, Call]] = {}
        self._last_ticket = 0

    @property
    def connected(self) -> bool:
        """Whether any node can be asked right now."""
        return any(link.connected for link in self.links)

    async def found(self) -> None:
        """Returns when there is a connection to any of the nodes that are known now."""
        await self.links.first_contact()

    async def close(self) -> None:
        """Everything outstanding fails."""
        await self.calls.close()
        await self.links.close()
        await self._world.close()

    # -- asking ----------------------------------------------------------------------------------------------

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        """See `EngineLink`."""
        self._last_ticket = ticket = self._last_ticket + 1
        within = True

        def ended(outcome: Outcome) -> None:
            self._runners.pop(ticket, None)
            if (
                isinstance(outcome, PenstockError)
                and outcome.code is ErrorCode.INTERNAL
                and outcome.__cause__
            ):
                logger.error(
                    "%(error)s; please report it", {"error": outcome.message}, exc_info=outcome.__cause__
                )
            if within:
                self._loop.call_soon(tell, done, outcome)
            else:
                tell(done, outcome)

        try:
            runner = routed(self._context, request, body, self._world, ended)
        except PenstockError as error:
            ended(error)
            return ticket
        self._runners[ticket] = runner
        runner.start()
        within = False
        return ticket

    def unheard(self, queue_ids: Iterable[int]) -> list[int]:
        """See `Learner`."""
        return [queue_id for queue_id in queue_ids if not self.map.has_heard_of(queue_id)]

    def learn(self, queue_ids: Iterable[int], done: Callable[[PenstockError | None], None]) -> None:
        """See `Learner`."""

        def ended(result: Reply | Exception) -> None:
            outcome = told(result)
            self._loop.call_soon(tell, done, outcome if isinstance(outcome, PenstockError) else None)

        StepRunner(_learning(self._context, queue_ids), self._world, ended).start()

    def cancel(self, ticket: int) -> None:
        """See `EngineLink`."""
        runner = self._runners.get(ticket)
        if runner is not None:
            runner.stop_waiting()

    def _heard(self, change: Change) -> None:
        self.map.apply(change.key, change.value)


def _learning(context: RoutingContext, queue_ids: Iterable[int]) -> Steps[Reply]:
    for queue_id in queue_ids:
        if not context.map.has_heard_of(queue_id):
            yield from look_for(context, queue_id)
    return Reply(Done())
