"""Where monitoring looks: `/metrics` for figures, `/health` for whether the node answers.

The figures are asked of the node like anything else, so they are those that `penstock queue show` tells, and an
answer to `/health` means that requests get through to it.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.config.address import Address
from penstock.frontend.engine import EngineLink
from penstock.frontend.steps import Reply
from penstock.metrics.exposition import CONTENT_TYPE, exposition
from penstock.metrics.group_figures import QueueGroup, group_families
from penstock.metrics.node_figures import node_families
from penstock.metrics.queue_figures import queue_families
from penstock.metrics.reader_figures import reader_families
from penstock.metrics.replica_figures import replica_families
from penstock.metrics.usage_figures import usage_families
from penstock.model.errors import PenstockError
from penstock.runtime.clock import WallClock
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.http.server import HttpServer
from penstock.runtime.listening import bind, check_loopback
from penstock.runtime.reader_door import ReaderTotals
from penstock.sqs.http import HttpRequest, HttpResponse, Peer
from penstock.usage.collector import UsageTotals
from penstock.wire.messages import (
    DescribeNode,
    GroupList,
    ListGroups,
    ListQueues,
    NodeDescription,
    QueueDescription,
    QueueList,
    Request,
)

LIMITS = HttpLimits(max_connections=100)
QUEUES_A_PAGE = 1_000
GROUPS_A_PAGE = 1_000

_PLAIN = (("Content-Type", "text/plain; charset=utf-8"),)
_METRICS = (("Content-Type", CONTENT_TYPE),)

Answer = Callable[[HttpResponse], None]
Usage = Callable[[], UsageTotals]
"""What became of the record of requests so far."""
Readers = Callable[[], ReaderTotals]
"""What has gone through the node's door for readers."""


class Monitoring:
    """Serves figures; made by `open_monitoring`."""

    def __init__(
        self,
        link: EngineLink,
        clock: WallClock,
        usage: Usage | None = None,
        readers: Readers | None = None,
    ) -> None:
        self._readers = readers
        self._link = link
        self._clock = clock
        self._usage = usage
        self._server = HttpServer(self.handle, limits=LIMITS)
        self.address = Address("127.0.0.1", 0)

    @property
    def url(self) -> str:
        """Where to look."""
        return f"http://{self.address}/metrics"

    async def start(self, listen: Address) -> None:
        """Listens; raises `StartError`."""
        listener = bind(listen, "--monitoring-listen")
        self.address = Address(listen.host, listener.getsockname()[1])
        try:
            await self._server.start(listener)
        except BaseException:
            listener.close()
            raise

    async def close(self) -> None:
        """Answers what was asked and stops."""
        await self._server.close(1.0)

    def handle(self, request: HttpRequest, peer: Peer, reply: Answer) -> None:
        """One look."""
        if request.method not in ("GET", "HEAD"):
            reply(HttpResponse(405, (*_PLAIN, ("Allow", "GET, HEAD")), b"only GET\n"))
        elif request.path == "/health":
            ask(self._link, DescribeNode(), reply, lambda _: reply(HttpResponse(200, _PLAIN, b"ok\n")))
        elif request.path == "/metrics":
            _Look(self._link, self._clock, self._usage, self._readers, reply).begin()
        else:
            reply(HttpResponse(404, _PLAIN, b"look at /metrics or /health\n"))


class _Look:
    """One reading of all figures: the node's, then those of its queues and of their groups of readers, page by page."""

    def __init__(
        self,
        link: EngineLink,
        clock: WallClock,
        usage: Usage | None,
        readers: Readers | None,
        reply: Answer,
    ) -> None:
        self._readers = readers
        self._link = link
        self._clock = clock
        self._usage = usage
        self._reply = reply
        self._queues: list[QueueDescription] = []
        self._node: NodeDescription | None = None
        self._logs: list[QueueDescription] = []
        """Queues whose groups are still to be asked for."""
        self._groups: list[QueueGroup] = []

    def begin(self) -> None:
        ask(self._link, DescribeNode(), self._reply, self._described)

    def _described(self, answered: Reply) -> None:
        assert isinstance(answered.answer, NodeDescription)
        self._node = answered.answer
        self._next_page("")

    def _next_page(self, after: str) -> None:
        ask(self._link, ListQueues(after=after, limit=QUEUES_A_PAGE), self._reply, self._listed)

    def _listed(self, answered: Reply) -> None:
        page = answered.answer
        assert isinstance(page, QueueList)
        assert self._node is not None
        self._queues += page.queues
        if page.more:
            self._next_page(page.queues[-1].name)
            return
        self._logs = [queue for queue in self._queues if queue.statistics.log_groups]
        self._next_log()

    def _next_log(self) -> None:
        if self._logs:
            self._next_groups(self._logs.pop(), "")
            return
        assert self._node is not None
        families = (
            *node_families(self._node),
            *replica_families(self._node, self._queues),
            *queue_families(self._queues, self._clock.now_ms()),
            *group_families(self._groups),
            *(usage_families(*self._usage()) if self._usage is not None else ()),
            *(reader_families(*self._readers()) if self._readers is not None else ()),
        )
        self._reply(HttpResponse(200, _METRICS, exposition(families)))

    def _next_groups(self, queue: QueueDescription, after: str) -> None:
        def done(outcome: Reply | PenstockError) -> None:
            if isinstance(outcome, PenstockError):  # the queue was deleted meanwhile, or is damaged
                self._next_log()
                return
            page = outcome.answer
            assert isinstance(page, GroupList)
            self._groups += [(queue.name, group) for group in page.groups]
            if page.more:
                self._next_groups(queue, page.groups[-1].name)
            else:
                self._next_log()

        self._link.ask(ListGroups(queue.queue_id, after, GROUPS_A_PAGE), b"", done)


def ask(link: EngineLink, request: Request, reply: Answer, go_on: Callable[[Reply], None]) -> None:
    """Asks the node and goes on with its answer; a refusal is told at once."""

    def done(outcome: Reply | PenstockError) -> None:
        if isinstance(outcome, PenstockError):
            reply(HttpResponse(503, _PLAIN, f"{outcome.message}\n".encode()))
        else:
            go_on(outcome)

    link.ask(request, b"", done)


async def open_monitoring(
    listen: Address,
    link: EngineLink,
    clock: WallClock,
    usage: Usage | None = None,
    readers: Readers | None = None,
) -> Monitoring:
    """Monitoring that listens; raises `StartError`."""
    check_loopback(listen, "--monitoring-listen 127.0.0.1:9325", "see the names and figures of all queues")
    monitoring = Monitoring(link, clock, usage, readers)
    await monitoring.start(listen)
    return monitoring
