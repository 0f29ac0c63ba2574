"""The metrics of a node, requested like any other answer: they are those of `penstock queue show`, and an answer to `/health`
means that requests get through to it.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.engine import EngineLink
from penstock.metrics.group_figures import QueueGroup, group_families
from penstock.metrics.node_figures import node_families
from penstock.metrics.queue_figures import queue_families
from penstock.metrics.reader_figures import reader_families
from penstock.metrics.replica_figures import replica_families
from penstock.metrics.usage_figures import usage_families
from penstock.model.errors import PenstockError
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.cluster.reader_server import ReaderTotals
from penstock.runtime.monitoring.monitoring import Answer, failed, figures, well
from penstock.steps.asking import wrong_answer
from penstock.steps.step import Reply
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

QUEUES_A_PAGE = 1_000
GROUPS_A_PAGE = 1_000

Usage = Callable[[], UsageTotals]
"""The counters of usage rows so far."""
Readers = Callable[[], ReaderTotals]
"""The counters of the node's port for readers."""


class NodeSight:
    """See `Sight`: a node, its queues and replicas."""

    def __init__(
        self,
        link: EngineLink,
        clock: WallClock,
        usage: Usage | None = None,
        readers: Readers | None = None,
    ) -> None:
        self._link = link
        self._clock = clock
        self._usage = usage
        self._readers = readers

    def metrics(self, reply: Answer) -> None:
        """All figures."""
        _Look(self._link, self._clock, self._usage, self._readers, reply).begin()

    def health(self, reply: Answer) -> None:
        """Whether the node answers."""
        ask(self._link, DescribeNode(), reply, lambda _: reply(well()))


class _Look:
    """One reading of all metrics: the node's, then those of its queues and consumer groups, page by page."""

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
        """Queues whose groups must still be requested."""
        self._groups: list[QueueGroup] = []

    def begin(self) -> None:
        ask(self._link, DescribeNode(), self._reply, self._described)

    def _described(self, answered: Reply) -> None:
        if not isinstance(answered.answer, NodeDescription):
            raise wrong_answer(answered.answer, NodeDescription)
        self._node = answered.answer
        self._next_page("")

    def _next_page(self, after: str) -> None:
        ask(self._link, ListQueues(after=after, limit=QUEUES_A_PAGE), self._reply, self._listed)

    def _listed(self, answered: Reply) -> None:
        page = answered.answer
        if not isinstance(page, QueueList):
            raise wrong_answer(page, QueueList)
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
        self._reply(figures(families))

    def _next_groups(self, queue: QueueDescription, after: str) -> None:
        def done(outcome: Reply | PenstockError) -> None:
            page = outcome.answer if not isinstance(outcome, PenstockError) else None
            if not isinstance(page, GroupList):  # the queue was deleted meanwhile, or is damaged
                self._next_log()
                return
            self._groups += [(queue.name, group) for group in page.groups]
            if page.more:
                self._next_groups(queue, page.groups[-1].name)
            else:
                self._next_log()

        self._link.ask(ListGroups(queue.queue_id, after, GROUPS_A_PAGE), b"", done)


def ask(link: EngineLink, request: Request, reply: Answer, go_on: Callable[[Reply], None]) -> None:
    """Asks the node and continues with its answer; a refusal is reported at once."""

    def done(outcome: Reply | PenstockError) -> None:
        if isinstance(outcome, PenstockError):
            reply(failed(outcome.message))
            return
        try:
            go_on(outcome)
        except PenstockError as error:
            reply(failed(error.message))

    link.ask(request, b"", done)
