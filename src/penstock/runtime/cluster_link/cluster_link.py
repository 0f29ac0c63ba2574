"""The link to a cluster: an engine for a front end, made of the layout and of connections to the nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from penstock.frontend.engine import Answered
from penstock.frontend.steps import Reply as LinkReply
from penstock.frontend.telling import tell
from penstock.metadata.mirror import MetadataMirror
from penstock.metadata.store.interface import (
    Change,
    StoreUnavailableError,
    VersionConflictError,
)
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import ReadOffer, RoutingContext
from penstock.routing.errand import Errand
from penstock.routing.router import route
from penstock.routing.steps import (
    AskAnyNode,
    ConflictError,
    Look,
    Outcome,
    Put,
    Remove,
    Reply,
    Steps,
    Stored,
    Until,
)
from penstock.routing.unheard import look_for
from penstock.runtime.cluster_link.node_links import MakeLink, NodeLinks
from penstock.runtime.cluster_link.partition_calls import Call, PartitionCalls
from penstock.runtime.engine_link.tcp_link import TcpLink
from penstock.wire.messages import Done, Request

log = logging.getLogger(__name__)

LAYOUT = "cluster/"


class ClusterLink:
    """See `EngineLink`. The mirror stays the caller's, who closes it after the link."""

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
        self._mirror = mirror
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
        self._errands: dict[int, Errand[Call]] = {}
        self._last_ticket = 0
        self._untils: dict[int, tuple[Until, Callable[[bool], None], asyncio.TimerHandle]] = {}
        self._last_until = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.map.listen(self._changed)

    @property
    def connected(self) -> bool:
        """Whether any node can be asked right now."""
        return any(link.connected for link in self.links)

    async def found(self) -> None:
        """Returns when there is a connection to any of the nodes that are known now."""
        await self.links.first_contact()

    async def close(self) -> None:
        """Everything outstanding fails."""
        self._closed = True
        await self.calls.close()
        await self.links.close()
        for _, _, timer in self._untils.values():
            timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- asking ----------------------------------------------------------------------------------------------

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        """See `EngineLink`."""
        self._last_ticket = ticket = self._last_ticket + 1
        within = True

        def ended(outcome: Outcome) -> None:
            self._errands.pop(ticket, None)
            if isinstance(outcome, Reply):
                told: LinkReply | PenstockError = LinkReply(outcome.answer, memoryview(outcome.body))
            else:
                told = outcome
                if outcome.__cause__ is not None and outcome.code is ErrorCode.INTERNAL:
                    log.error("%s; please report it", outcome.message, exc_info=outcome.__cause__)
            if within:
                self._loop.call_soon(tell, done, told)
            else:
                tell(done, told)

        try:
            errand = Errand(route(self._context, request, body), self, ended)
        except PenstockError as error:
            ended(error)
            return ticket
        self._errands[ticket] = errand
        errand.start()
        within = False
        return ticket

    def unheard(self, queue_ids: Iterable[int]) -> list[int]:
        """See `Learner`."""
        return [queue_id for queue_id in queue_ids if not self.map.has_heard_of(queue_id)]

    def learn(self, queue_ids: Iterable[int], done: Callable[[PenstockError | None], None]) -> None:
        """See `Learner`."""

        def ended(outcome: Outcome) -> None:
            self._loop.call_soon(tell, done, outcome if isinstance(outcome, PenstockError) else None)

        Errand(_learning(self._context, queue_ids), self, ended).start()

    def cancel(self, ticket: int) -> None:
        """See `EngineLink`."""
        errand = self._errands.get(ticket)
        if errand is not None:
            errand.cancel()

    # -- what steps are carried out with ---------------------------------------------------------------------

    def ask_any_node(self, step: AskAnyNode, done: Callable[[Outcome], None]) -> None:
        """Asks one node after the other, until one answers."""
        untried = self.links.connected()

        def try_next() -> None:
            if not untried:
                error = PenstockError(
                    ErrorCode.UNREACHABLE, "no node of the cluster can be reached; try again"
                )
                self._loop.call_soon(done, error)
                return
            link: TcpLink = untried.pop(0)
            link.ask(step.request, b"", answered)

        def answered(outcome: LinkReply | PenstockError) -> None:
            if isinstance(outcome, PenstockError):
                if outcome.code in (ErrorCode.UNREACHABLE, ErrorCode.SHUTTING_DOWN):
                    try_next()
                else:
                    done(outcome)
            else:
                done(Reply(outcome.answer, outcome.body))

        try_next()

    def use_store(self, step: Look | Put | Remove, done: Callable[[Any], None]) -> None:
        """Reads or writes through the mirror, so that the map knows at once."""
        task = self._loop.create_task(self._use_store(step, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _use_store(self, step: Look | Put | Remove, done: Callable[[Any], None]) -> None:
        outcome: Any = None
        try:
            match step:
                case Look():
                    await self._mirror.refresh(step.key)
                    entry = self._mirror.cache.get(step.key)
                    outcome = Stored(entry.value, entry.version) if entry is not None else Stored(None, 0)
                case Put():
                    outcome = await self._mirror.put(step.key, step.value, step.version)
                case Remove():
                    await self._mirror.delete(step.key, step.version)
        except VersionConflictError as error:
            outcome = ConflictError(str(error))
        except StoreUnavailableError as error:
            outcome = PenstockError(
                ErrorCode.METADATA_UNAVAILABLE, f"the metadata cannot be reached now, try again: {error}"
            )
        except Exception as error:  # the request that waits for this has to be answered
            log.exception("the store could not be asked: this is a defect of Penstock; please report it")
            message = f"a defect of the front end: {type(error).__name__}: {error}"
            outcome = PenstockError(ErrorCode.INTERNAL, message)
        done(outcome)

    def wait_until(self, step: Until, done: Callable[[bool], None]) -> None:
        """Looks at every change of the map."""
        if step.holds():
            self._loop.call_soon(done, True)
            return
        self._last_until = number = self._last_until + 1
        timer = self._loop.call_later(step.wait_ms / 1000, self._until_over, number)
        self._untils[number] = (step, done, timer)

    def _until_over(self, number: int) -> None:
        step, done, timer = self._untils.pop(number)
        timer.cancel()
        done(step.holds())

    # -- the layout ------------------------------------------------------------------------------------------

    def _heard(self, change: Change) -> None:
        self.map.apply(change.key, change.value)

    def _changed(self, key: str) -> None:
        for number in [number for number, (step, _, _) in self._untils.items() if step.holds()]:
            self._loop.call_soon(self._until_if_there, number)

    def _until_if_there(self, number: int) -> None:
        if number in self._untils:
            self._until_over(number)


def _learning(context: RoutingContext, queue_ids: Iterable[int]) -> Steps[Reply]:
    for queue_id in queue_ids:
        if not context.map.has_heard_of(queue_id):
            yield from look_for(context, queue_id)
    return Reply(Done())
