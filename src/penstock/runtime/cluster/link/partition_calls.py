"""Requests to the leaders of partitions, over connections to their nodes. `PartitionLines` makes all decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from penstock.frontend.telling import tell
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.line_call import Call, Cancel, Done, Effect, Finish, LookUp, Transmit
from penstock.routing.partition_line import PartitionLines
from penstock.runtime.cluster.link.node_links import NodeLinks
from penstock.steps.step import Ask, Outcome
from penstock.wire.messages import Request

__all__ = ["Call", "PartitionCalls"]

logger = logging.getLogger(__name__)


class PartitionCalls:
    """Runs the lines of a front end: sockets, timers, the store."""

    def __init__(
        self,
        cluster: ClusterMap,
        links: NodeLinks,
        refresh: Callable[[str], Awaitable[None]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._links = links
        self._refresh = refresh
        self._loop = loop
        self.lines = PartitionLines(cluster, self)
        self._running = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        """When it is due. The handle does not always know: uvloop's has no time where that has passed already."""
        self._looks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._without_link: set[str] = set()
        """Addresses of nodes to which no link could be made; each is logged once."""
        cluster.listen(self._changed)

    def incarnation(self, address: str) -> int:
        """See `Wires`."""
        try:
            return self._links.to(address).incarnation
        except Exception:  # requests wait for another leader then, and are answered when that takes too long
            if address not in self._without_link:
                self._without_link.add(address)
                logger.exception(
                    "could not connect to %(address)s: this is a defect of Penstock; please report it",
                    {"address": address},
                )
            return 0

    def load(self, partition: int) -> float:
        """How many requests a partition has to answer; infinite where no node serves it."""
        return self.lines.load(partition)

    def start(self, ask: Ask, done: Done) -> Call:
        """Asks; `done` is called once, later, never from within."""
        call = self.lines.start(ask, done, self._loop.time())
        self._run(within=True)
        return call

    def cancel(self, call: Call) -> None:
        """A request that waits for messages need not wait any longer; its `done` is still called."""
        self.lines.cancel(call)
        self._run(within=True)

    async def close(self) -> None:
        """No request waits any longer."""
        self._closed = True
        self.lines.close()
        self._run(within=True)
        looks = list(self._looks)
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)

    # -- events ----------------------------------------------------------------------------------------------

    def _answered(self, call: Call, attempt: int, outcome: Outcome) -> None:
        self.lines.answered(call, attempt, outcome, self._loop.time())
        self._run()

    def _changed(self, key: str) -> None:
        self._loop.call_soon(self._heard, key)  # all other listeners must be called first

    def _heard(self, key: str) -> None:
        self.lines.changed(key, self._loop.time())
        self._run()

    def _tick(self) -> None:
        self._timer = None
        self.lines.tick(self._loop.time())
        self._run()

    async def _look_up(self, partition: int, key: str) -> None:
        try:
            await self._refresh(key)
        except StoreUnavailableError:
            pass  # the request continues with what is known
        except Exception:  # the waiting requests continue all the same
            logger.exception("could not look up a partition: this is a defect of Penstock; please report it")
        self.lines.looked_up(partition, key, self._loop.time())
        self._run()

    # -- effects ---------------------------------------------------------------------------------------------

    def _run(self, *, within: bool = False) -> None:
        """Carries out the effects of the lines. `within` a call of the caller's: it is told later."""
        if self._running:
            return  # the running call continues with them
        self._running = True
        try:
            while effects := self.lines.take():
                for effect in effects:
                    self._carry_out(effect, within)
        finally:
            self._running = False
        self._set_timer()

    def _carry_out(self, effect: Effect, within: bool) -> None:
        match effect:
            case Transmit(call, attempt, leader, request):
                self._transmit(call, attempt, leader.address, request)
            case Finish(call, outcome):
                if within:
                    self._loop.call_soon(tell, call.done, outcome)
                else:
                    tell(call.done, outcome)
            case Cancel(call):
                call.ticket()
            case LookUp(partition, key):
                if not self._closed:
                    look = self._loop.create_task(self._look_up(partition, key))
                    self._looks.add(look)
                    look.add_done_callback(self._looks.discard)

    def _transmit(self, call: Call, attempt: int, address: str, request: Request) -> None:
        """Asks a node. A request that cannot be asked fails alone: those behind it in the same turn are asked all the same."""
        answered = partial(self._answered, call, attempt)
        try:
            link = self._links.to(address)
            ticket = link.ask(request, call.ask.body, answered)
        except Exception as error:
            message = f"a defect of the front end: {type(error).__name__}: {error}"
            logger.exception(
                "could not send a request to %(address)s: this is a defect of Penstock; please report it",
                {"address": address},
            )
            call.ticket = _nothing
            self._loop.call_soon(answered, PenstockError(ErrorCode.INTERNAL, message))
        else:
            call.ticket = partial(link.cancel, ticket)

    def _set_timer(self) -> None:
        at = None if self._closed else self.lines.next_at()
        if self._timer is not None:
            if at is not None and self._timer_at <= at:
                return  # it looks again by itself
            self._timer.cancel()
            self._timer = None
        if at is not None:
            self._timer, self._timer_at = self._loop.call_at(at, self._tick), at


def _nothing() -> None:
    """There is nothing to cancel."""
