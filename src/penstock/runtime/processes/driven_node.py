"""A node and its driver, as the process around them sees them: what a single server and a node of a cluster have in common."""

from __future__ import annotations

from typing import Generic, TypeVar

from penstock.backend.node.node import Node
from penstock.backend.node.opening import OpeningReport
from penstock.runtime.engine.driver import Driver

AnyNode = TypeVar("AnyNode", bound=Node)
AnyDriver = TypeVar("AnyDriver", bound=Driver)


class DrivenNode(Generic[AnyNode, AnyDriver]):
    """A node that runs in this process."""

    def __init__(self, node: AnyNode, driver: AnyDriver) -> None:
        self._node = node
        self._driver = driver

    @property
    def report(self) -> OpeningReport:
        """What recovery found."""
        return self._node.opening_report

    @property
    def failure(self) -> BaseException | None:
        """Why it stopped by itself, if it did."""
        return self._driver.failure

    @property
    def partner_threads(self) -> tuple[int, ...]:
        """Threads that hand the interpreter's lock to the event loop's and take it back, all the time."""
        return (self._driver.flush_thread_id,)

    async def ended(self) -> None:
        """Returns when the node has failed or was closed."""
        await self._driver.ended.wait()
