"""Carries out single steps of the router over connections to the nodes, the mirror of the metadata, and the loop's time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.model.errors import ErrorCode, PenstockError, VersionConflictError
from penstock.routing.cluster_map import ClusterMap
from penstock.runtime.cluster.link.node_links import NodeLinks
from penstock.runtime.cluster.link.partition_calls import Call, PartitionCalls
from penstock.runtime.engine.tcp_link import TcpLink
from penstock.steps.runner import not_carried_out
from penstock.steps.step import Ask, Look, Outcome, Put, Remove, Single, Stored, StoreStep, Until

logger = logging.getLogger(__name__)


class ClusterWorld:
    """See `World`."""

    def __init__(
        self,
        cluster: ClusterMap,
        mirror: MetadataMirror,
        links: NodeLinks,
        calls: PartitionCalls,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._mirror = mirror
        self._links = links
        self._calls = calls
        self._loop = loop
        self._untils: dict[int, tuple[Until, Callable[[bool], None], asyncio.TimerHandle]] = {}
        self._last_until = 0
        self._tasks: set[asyncio.Task[None]] = set()
        cluster.listen(self._changed)

    async def close(self) -> None:
        """Nothing is carried out any more."""
        for _, _, timer in self._untils.values():
            timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, step: Single, done: Callable[[Any], None]) -> Call | None:
        """See `World`."""
        match step:
            case Ask() if step.partition:
                return self._calls.start(step, done)
            case Ask():
                self._ask_any_node(step, done)
            case Look() | Put() | Remove():
                task = self._loop.create_task(self._use_store(step, done))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case Until():
                self._wait_until(step, done)
            case _:
                raise not_carried_out(step)
        return None

    def cancel(self, under_way: Call) -> None:
        """See `World`."""
        self._calls.cancel(under_way)

    def _ask_any_node(self, step: Ask, done: Callable[[Outcome], None]) -> None:
        """Asks one node after the other, until one answers."""
        untried = self._links.connected()

        def try_next() -> None:
            if not untried:
                error = PenstockError(
                    ErrorCode.UNREACHABLE, "no node of the cluster can be reached; try again"
                )
                self._loop.call_soon(done, error)
                return
            link: TcpLink = untried.pop(0)
            link.ask(step.request, b"", answered)

        def answered(outcome: Outcome) -> None:
            if isinstance(outcome, PenstockError) and outcome.code in (
                ErrorCode.UNREACHABLE,
                ErrorCode.SHUTTING_DOWN,
            ):
                try_next()
            else:
                done(outcome)

        try_next()

    async def _use_store(self, step: StoreStep, done: Callable[[Any], None]) -> None:
        """Reads or writes through the mirror, so that the map knows at once."""
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
            outcome = error
        except StoreUnavailableError as error:
            outcome = PenstockError(
                ErrorCode.METADATA_UNAVAILABLE, f"the metadata cannot be reached now, try again: {error}"
            )
        except Exception as error:  # the request that waits for this has to be answered
            logger.exception("the store could not be asked: this is a defect of Penstock; please report it")
            message = f"a defect of the front end: {type(error).__name__}: {error}"
            outcome = PenstockError(ErrorCode.INTERNAL, message)
        done(outcome)

    # -- waiting for the layout ------------------------------------------------------------------------------

    def _wait_until(self, step: Until, done: Callable[[bool], None]) -> None:
        """Checks after every change of the map."""
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

    def _changed(self, key: str) -> None:
        for number in [number for number, (step, _, _) in self._untils.items() if step.holds()]:
            self._loop.call_soon(self._until_if_there, number)

    def _until_if_there(self, number: int) -> None:
        if number in self._untils:
            self._until_over(number)
