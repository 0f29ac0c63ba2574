"""Requests to whoever leads a partition, through moves and failovers.

A request that the node did not take, or whose connection was lost and that may be asked twice, is asked again: once the
map has a primary that serves, for as long as the request has patience. Who waits for a partition waits in line, so
that sends keep their order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

from penstock.cluster.layout import NODES, PARTITIONS, partition_key, queue_key
from penstock.frontend.steps import Reply as LinkReply
from penstock.frontend.telling import tell
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.attempts import NOT_TWICE, WAITING, Attempts, shortened
from penstock.routing.cluster_map import ClusterMap, Leader
from penstock.routing.steps import Ask, Outcome, Reply
from penstock.runtime.cluster_link.node_links import NodeLinks
from penstock.runtime.engine_link.tcp_link import TcpLink
from penstock.wire.messages import Delivery, Receive, Request, Send

LOOK_AGAIN_SECONDS = 0.05
"""How often a line that waits looks whether it may go on, beside every change of the map."""
REFRESH_SECONDS = 1.0
"""How often the store is asked about a partition that somebody waits for; its changes are heard of anyway."""
SAME_NODE_SECONDS = 0.1
"""A node that said no is asked again after so long at most, if nobody else leads."""
SAME_NODE_SOON_SECONDS = 0.004
"""The first time: a primary's own word that it serves may reach everybody else before it reaches itself."""
DEPOSED_SECONDS = 0.5
"""How long a node that was deposed gets to answer what it was asked before."""

_PARKED = {
    ErrorCode.UNREACHABLE: ("cannot be reached", False),
    ErrorCode.QUEUE_NOT_FOUND: ("does not know it", True),
    ErrorCode.QUEUE_DAMAGED: ("has it damaged", True),
    ErrorCode.NOT_ENOUGH_REPLICAS: ("has too few replicas in sync", True),
}
"""Why somebody waits in line, and whether the node's own words are told when it took too long."""

Done = Callable[[Outcome], None]


class Call(Attempts):
    """One request on its way."""

    __slots__ = (
        "ask",
        "attempt",
        "done",
        "ended",
        "give_up",
        "last_refusal",
        "leader",
        "link",
        "reason",
        "refused",
        "retry_at",
        "ticket",
        "wait_end",
    )

    def __init__(self, ask: Ask, done: Done, now: float) -> None:
        super().__init__()
        self.ask = ask
        self.done = done
        self.attempt = 0
        self.ended = False
        self.give_up: float | None = None
        """When its patience ends; None while there is no trouble."""
        self.leader: Leader | None = None
        """Who was asked last."""
        self.link: TcpLink | None = None
        self.ticket = 0
        self.reason = ""
        self.last_refusal: PenstockError | None = None
        """What the node said, where that says more than why nobody can be asked."""
        self.refused = 0
        """How often in a row the same leader did not take it."""
        self.retry_at = 0.0
        request = ask.request
        self.wait_end = now + request.wait_ms / 1000 if isinstance(request, WAITING) else 0.0


class PartitionCalls:
    """All requests of a front end to partitions."""

    def __init__(
        self,
        cluster: ClusterMap,
        links: NodeLinks,
        refresh: Callable[[str], Awaitable[None]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._map = cluster
        self._links = links
        self._refresh = refresh
        self._loop = loop
        self._flying: dict[int, dict[Call, None]] = {}
        self._lines: dict[int, deque[Call]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._retries: dict[int, asyncio.TimerHandle] = {}
        """By partition: when the first in its line may ask the same leader again."""
        self._refreshing: dict[int, asyncio.Task[None]] = {}
        self._refreshed: dict[int, float] = {}
        self._closed = False
        cluster.listen(self._changed)

    def load(self, partition: int) -> float:
        """How many requests a partition has to answer; infinite where nobody serves it."""
        if self._map.leader(partition) is None:
            return float("inf")
        return len(self._flying.get(partition, ())) + len(self._lines.get(partition, ()))

    def start(self, ask: Ask, done: Done) -> Call:
        """Asks; `done` is called once, later, never from within."""
        call = Call(ask, done, self._loop.time())
        if isinstance(ask.request, Send) and ask.partition in self._lines:
            self._park(call, "others wait already")
        else:
            self._try(call)
        return call

    def cancel(self, call: Call) -> None:
        """A request that waits for messages need not wait any longer; its `done` is still called."""
        if call.ended or not isinstance(call.ask.request, WAITING):
            return
        line = self._lines.get(call.ask.partition)
        if line is not None and call in line:
            line.remove(call)
            self._end_later(call, self._too_late(call))
        elif call.link is not None:
            call.link.cancel(call.ticket)

    async def close(self) -> None:
        """Nobody waits any longer."""
        self._closed = True
        for timer in (self._timer, *self._retries.values()):
            if timer is not None:
                timer.cancel()
        for line in list(self._lines.values()):
            for call in list(line):
                self._end_later(
                    call, PenstockError(ErrorCode.UNREACHABLE, "the front end is stopping; try another")
                )
        self._lines.clear()
        tasks = list(self._refreshing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- asking ----------------------------------------------------------------------------------------------

    def _try(self, call: Call) -> None:
        partition = call.ask.partition
        leader = self._map.leader(partition)
        if leader is None:
            self._park(call, "no node serves it")
            return
        link = self._links.to(leader.address)
        if not link.connected:
            call.leader = leader
            self._park(call, f"{leader.node} ({leader.address}) cannot be reached")
            return
        request = self._shortened(call) if call.attempt else call.ask.request
        call.attempt += 1
        if leader != call.leader:
            call.refused = 0
        call.leader, call.link = leader, link
        self._flying.setdefault(partition, {})[call] = None
        call.ticket = link.ask(request, call.ask.body, partial(self._answered, call, call.attempt))

    def _shortened(self, call: Call) -> Request:
        """What waits for messages waits in all as long as it was to."""
        return shortened(call.ask.request, round(1000 * (call.wait_end - self._loop.time())))

    def _answered(self, call: Call, attempt: int, outcome: LinkReply | PenstockError) -> None:
        if call.ended or attempt != call.attempt:
            return
        if not isinstance(outcome, PenstockError):
            self._end(call, Reply(outcome.answer, outcome.body))
            return
        leader = call.leader
        assert leader is not None
        entry = self._map.partitions.get(call.ask.partition)
        others_have_it = entry is not None and len(entry.replicas) > 1
        if call.asks_again(call.ask.request, outcome, others_have_it=others_have_it):
            why, is_told_later = _PARKED.get(outcome.code, ("does not lead it any more", False))
            self._park(call, f"{leader.node} {why}", outcome if is_told_later else None)
        else:
            self._end(call, outcome)

    def _end(self, call: Call, outcome: Outcome) -> None:
        if call.ended:
            return
        call.ended = True
        self._landed(call)
        tell_outcome(call.done, call.certain(call.ask.request, outcome) if call.uncertain else outcome)

    def _end_later(self, call: Call, outcome: Outcome) -> None:
        self._loop.call_soon(self._end, call, outcome)

    def _landed(self, call: Call) -> None:
        partition = call.ask.partition
        flying = self._flying.get(partition)
        if flying is not None and flying.pop(call, self) is None and not flying:
            del self._flying[partition]

    # -- waiting for a primary -------------------------------------------------------------------------------

    def _park(self, call: Call, reason: str, error: PenstockError | None = None) -> None:
        self._landed(call)
        call.reason, call.last_refusal = reason, error
        now = self._loop.time()
        if call.give_up is None:
            call.give_up = now + call.ask.patience_ms / 1000
        if self._closed or now >= call.give_up:
            self._end_later(call, self._too_late(call))
            return
        soon = SAME_NODE_SOON_SECONDS * 2 ** min(call.refused, 8)
        call.retry_at = now + (min(SAME_NODE_SECONDS, soon) if error is None else SAME_NODE_SECONDS)
        call.refused += 1
        self._retry_at(call.ask.partition, call.retry_at)
        self._lines.setdefault(call.ask.partition, deque()).append(call)
        self._look_up(call.ask.partition)
        self._set_timer()

    def _too_late(self, call: Call) -> Outcome:
        """What is told who has waited for long enough: nothing came, or that nobody could be asked."""
        partition = call.ask.partition
        if isinstance(call.ask.request, Receive) and call.wait_end and call.ask.request.wait_ms:
            return Reply(Delivery(b"", 0, []))
        entry = self._map.partitions.get(partition)
        if entry is None or entry.retired:
            return PenstockError(ErrorCode.QUEUE_NOT_FOUND, "the queue was deleted; look it up again")
        if call.last_refusal is not None:
            return call.last_refusal
        name = f"partition {entry.ordinal} of queue {entry.queue!r}"
        return PenstockError(ErrorCode.UNREACHABLE, f"{name} cannot be asked now: {call.reason}; try again")

    def _look_up(self, partition: int) -> None:
        """Asks the store about a partition, not more often than makes sense."""
        now = self._loop.time()
        if partition in self._refreshing or now - self._refreshed.get(partition, -1e9) < REFRESH_SECONDS:
            return
        self._refreshed[partition] = now
        task = self._loop.create_task(self._looked_up(partition))
        self._refreshing[partition] = task

    async def _looked_up(self, partition: int) -> None:
        try:
            await self._refresh(partition_key(partition))
            entry = self._map.partitions.get(partition)
            name = self._map.name_of(partition)
            if (entry is None or entry.retired) and name is not None:
                await self._refresh(queue_key(name))  # who looks it up by its name finds what is there now
        except StoreUnavailableError:
            pass  # what is known has to do
        finally:
            del self._refreshing[partition]
        entry = self._map.partitions.get(partition)
        if entry is None:
            self._refreshed.pop(partition, None)
        if entry is None or entry.retired:
            self._give_up_line(partition)
        else:
            self._go_on(partition)

    def _give_up_line(self, partition: int) -> None:
        for call in self._lines.pop(partition, ()):
            self._end_later(
                call, PenstockError(ErrorCode.QUEUE_NOT_FOUND, "the queue was deleted; look it up again")
            )

    def _retry_at(self, partition: int, at: float) -> None:
        if partition not in self._retries:
            self._retries[partition] = self._loop.call_at(at, self._retry, partition)

    def _retry(self, partition: int) -> None:
        del self._retries[partition]
        now = self._loop.time()  # before the others look at it: whoever is too early for them comes up again
        self._go_on(partition)
        later = [call.retry_at for call in self._lines.get(partition, ()) if call.retry_at > now]
        if later and not self._closed:
            self._retry_at(partition, min(later))

    def _set_timer(self) -> None:
        if self._timer is None and self._lines and not self._closed:
            self._timer = self._loop.call_later(LOOK_AGAIN_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        for partition in list(self._lines):
            self._go_on(partition)
            if partition in self._lines:
                self._look_up(partition)
        self._set_timer()

    def _changed(self, key: str) -> None:
        if key.startswith(PARTITIONS):
            partition = int(key.removeprefix(PARTITIONS))
            if partition not in self._map.partitions:
                self._refreshed.pop(partition, None)
            leader = self._map.leader(partition)
            if leader is not None and any(
                call.leader is not None and call.leader.epoch < leader.epoch
                for call in self._flying.get(partition, ())
            ):
                self._loop.call_later(DEPOSED_SECONDS, self._abandon, partition, leader.epoch)
            if partition in self._lines:
                self._loop.call_soon(self._go_on, partition)
        elif key.startswith(NODES):
            for partition in self._lines:
                self._loop.call_soon(self._go_on, partition)

    def _go_on(self, partition: int) -> None:
        """Those in line ask again, in order, as far as there is somebody to ask whom they have not just asked."""
        line = self._lines.get(partition)
        if line is None or self._closed:
            return
        now = self._loop.time()
        leader = self._map.leader(partition)
        link = self._links.to(leader.address) if leader is not None else None
        waiting: list[Call] = []
        going: list[Call] = []
        send_waits = False
        for call in line:
            assert call.give_up is not None
            can_go = link is not None and link.connected and (leader != call.leader or now >= call.retry_at)
            if can_go and not (send_waits and isinstance(call.ask.request, Send)):
                going.append(call)
            elif now >= call.give_up:
                self._end_later(call, self._too_late(call))
            else:
                waiting.append(call)
                send_waits = send_waits or isinstance(call.ask.request, Send)
        if waiting:
            self._lines[partition] = deque(waiting)
        else:
            del self._lines[partition]
        for call in going:
            self._try(call)

    def _abandon(self, partition: int, epoch: int) -> None:
        """A node that was deposed and does not answer is waited for no longer."""
        for call in list(self._flying.get(partition, ())):
            if call.leader is None or call.leader.epoch >= epoch or isinstance(call.ask.request, NOT_TWICE):
                continue
            self._landed(call)
            call.attempt += 1
            call.uncertain = True
            self._try(call)


def tell_outcome(done: Done, outcome: Outcome) -> None:
    """Calls back; a defect there concerns nobody else."""
    tell(done, outcome)
