"""The lag of replicas, asked of the nodes that lead, because it changes too often to be in the metadata. A node that does not
answer soon is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from penstock.cluster.layout.entries import NodeEntry
from penstock.config.address import Address
from penstock.model.errors import PenstockError
from penstock.runtime.cluster.reachability import check_reachability
from penstock.runtime.cluster.tls import ClusterTls
from penstock.runtime.engine.tcp_link import TcpLink
from penstock.steps.step import Reply
from penstock.wire.messages import ListQueues, QueueList, Request

ANSWER_SECONDS = 3.0
PAGE_QUEUES = 500

Lags = dict[int, dict[str, int]]
"""Partition → node → records that it has not confirmed."""


async def read_lags(nodes: Iterable[NodeEntry], secret: bytes, tls: ClusterTls | None = None) -> Lags:
    """The present lag at these nodes' partitions; raises `StrangerError` if they refuse this process."""
    nodes = list(nodes)
    await check_reachability(nodes, secret, tls)
    answers = await asyncio.gather(*(_ask_in_time(node, secret, tls) for node in nodes))
    return {partition: behind for answer in answers for partition, behind in answer.items()}


async def _ask_in_time(node: NodeEntry, secret: bytes, tls: ClusterTls | None) -> Lags:
    link = TcpLink(
        Address.parse(node.native, default_port=0),
        asyncio.get_running_loop(),
        name="penstock status",
        secret=secret,
        tls=tls,
    )
    link.start()
    found: Lags = {}
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await link.found()
            await _read(link, found)
    except (TimeoutError, PenstockError):
        pass  # its answers so far are valid
    finally:
        await link.close()
    return found


async def _read(link: TcpLink, found: Lags) -> None:
    after = ""
    while True:
        page = await _ask(link, ListQueues(after=after, limit=PAGE_QUEUES))
        for queue in page.queues:
            if queue.replica is not None and queue.replica.role == "primary":
                found[queue.queue_id] = queue.replica.behind
        if not page.more:
            return
        after = page.queues[-1].name


async def _ask(link: TcpLink, request: Request) -> QueueList:
    answered: asyncio.Future[QueueList] = asyncio.get_running_loop().create_future()

    def done(outcome: Reply | PenstockError) -> None:
        if answered.done():
            return
        if isinstance(outcome, PenstockError):
            answered.set_exception(outcome)
        elif isinstance(outcome.answer, QueueList):
            answered.set_result(outcome.answer)

    link.ask(request, b"", done)
    return await answered
