"""Sends lifecycle rows from a node of a cluster to their log, wherever in the cluster that is led.

The node is a client of its own cluster for this, with the same router as front ends. The link is opened for the first
rows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.columnar.lifecycle import LIFECYCLE_QUEUE
from penstock.replication.cluster_interface import LifecycleReport
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.runtime.usage.internal_log import InternalLog

logger = logging.getLogger(__name__)

Outcome = Callable[[LifecycleReport, bool], None]
"""Called with the outcome of every report."""


class LifecycleSender:
    """A task for each report in progress."""

    def __init__(self, make_link: Callable[[], ClusterLink], done: Outcome) -> None:
        self._make_link = make_link
        self._done = done
        self._link: ClusterLink | None = None
        self._log: InternalLog | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def send(self, report: LifecycleReport) -> None:
        """Starts; the outcome is reported later."""
        if self._closed:
            return
        task = asyncio.get_running_loop().create_task(self._send(report))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """The next primary sends unfinished reports again."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._link is not None:
            await self._link.close()

    async def _send(self, report: LifecycleReport) -> None:
        if self._log is None:
            self._link = self._make_link()
            self._log = InternalLog(self._link, LIFECYCLE_QUEUE, "lifecycles of messages")
        stored = False
        try:
            stored = await self._log.store(report.batch)
        except Exception:  # a report without an outcome would stay in progress forever
            logger.exception(
                "lifecycle rows wait: this is a defect of Penstock; please report it with what follows"
            )
        self._done(report, stored)
