"""Requests to the leader of a partition, through moves and failovers: which request waits for which, and what is sent again
when.

It is synchronous. Events and the time come in, effects go out (`take`): the runtime carries them out over sockets, the
simulation over its network.

All requests to a partition are in one line, in the order of arrival, until they end. One that returns unanswered waits at
its place. Sends keep that order: a send leaves only if no send before it waits, and none before it is in transit
elsewhere, that is to another leader or over another connection. So the sends in transit are the front of the line, on one
connection, which keeps them in order. ADR 30 describes the node's part.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

import msgspec

from penstock.cluster.layout.decoder import node_of_key, partition_of_key
from penstock.cluster.layout.entries import partition_key, queue_key
from penstock.cluster.layout.serving import Leader, has_other_replicas
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.attempts import WAITING, shortened
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.line import NEVER, Line
from penstock.routing.line_call import Call, Cancel, Done, Effect, Finish, LookUp, State, Transmit
from penstock.steps.step import Ask, Outcome, Reply
from penstock.wire.messages import Delivery, Receive, Send
from penstock.wire.send_order import out_of_order

LOOK_AGAIN_SECONDS = 0.05
"""The interval at which a waiting line checks whether it may continue, besides every change of the map."""
REFRESH_SECONDS = 1.0
"""The interval at which the store is read for a partition that a request waits for; its changes are also received by watch."""
SAME_NODE_SECONDS = 0.1
"""A node that refused a request is asked again after so long at most, if no other node leads."""
SAME_NODE_SOON_SECONDS = 0.004
"""The first time: others may learn that a primary serves before the primary itself does."""
DEPOSED_SECONDS = 0.5
"""How long a node that was deposed gets to answer what it was asked before."""

_PARKED = {
    ErrorCode.UNREACHABLE: ("cannot be reached", False),
    ErrorCode.QUEUE_NOT_FOUND: ("does not know it", True),
    ErrorCode.QUEUE_DAMAGED: ("has it damaged", True),
    ErrorCode.NOT_ENOUGH_REPLICAS: ("has too few replicas in sync", True),
}
"""Why a request waits, and whether the node's own error is reported when it times out."""


class Wires(Protocol):
    """The connections to nodes."""

    def incarnation(self, address: str) -> int:
        """The number of the connection to an address that can be written to now, another one each time; 0: none can."""
        ...


class PartitionLines:
    """The lines of all partitions of one front end."""

    def __init__(self, cluster: ClusterMap, wires: Wires) -> None:
        self._map = cluster
        self._wires = wires
        self._lines: dict[int, Line] = {}
        self._effects: list[Effect] = []
        self._wakes: list[tuple[float, int]] = []
        self._serial = 0
        self._looking: set[int] = set()
        """Partitions about which the store is being asked."""
        self._looked: dict[int, float] = {}
        """When it was asked last."""
        self._closed = False

    def load(self, partition: int) -> float:
        """How many requests a partition has to answer; infinite where no node serves it."""
        if self._map.leader(partition) is None:
            return NEVER
        line = self._lines.get(partition)
        return float(len(line.calls)) if line is not None else 0.0

    def take(self) -> list[Effect]:
        """The effects to carry out, in this order."""
        effects, self._effects = self._effects, []
        return _failures_first(effects) if len(effects) > 1 else effects

    def next_at(self) -> float | None:
        """When `tick` has something to do."""
        wakes = self._wakes
        while wakes:
            at, partition = wakes[0]
            line = self._lines.get(partition)
            if line is not None and at == line.next_at():
                return at
            heappop(wakes)
        return None

    # -- events ----------------------------------------------------------------------------------------------

    def start(self, ask: Ask, done: Done, now: float) -> Call:
        """A request comes."""
        call = Call(ask, done, now)
        line = self._lines.get(ask.partition)
        if line is None:
            line = self._lines[ask.partition] = Line(ask.partition)
        line.enter(call)
        leader = self._map.leader(ask.partition)
        wire = self._wires.incarnation(leader.address) if leader is not None else 0
        if leader is None:
            self._park(line, call, "no node serves it", now)
        elif not wire:
            call.leader = leader
            self._park(line, call, f"{leader.node} ({leader.address}) cannot be reached", now)
        elif call.is_send and line.holds_back((leader, wire)):
            self._park(line, call, "sends before it wait", now, pause=False)
        else:
            self._fly(line, call, leader, wire, now)
        return call

    def cancel(self, call: Call) -> None:
        """A request that waits for messages need not wait any longer; it ends all the same."""
        if not isinstance(call.ask.request, WAITING):
            return
        if call.state is State.WAITS:
            self._end(self._lines[call.ask.partition], call, self._too_late(call))
        elif call.state is State.UNDER_WAY:
            call.cancelled = True
            self._effects.append(Cancel(call))

    def answered(self, call: Call, attempt: int, outcome: Outcome, now: float) -> None:
        """A node has answered, or the connection was lost (`unreachable`)."""
        if call.state is not State.UNDER_WAY or attempt != call.attempt:
            return
        line = self._lines[call.ask.partition]
        route, next_turn = call.route, call.behind
        if not isinstance(outcome, PenstockError):
            self._end(line, call, outcome)
        elif outcome.code is ErrorCode.OUT_OF_ORDER and call.after:
            call.waits_for_before = True
            self._park(line, call, "the send before it was refused", now, outcome, pause=False)
            next_turn = call
        elif not self._asks_again(call, outcome):
            self._end(line, call, outcome)
        else:
            why, is_told_later = _PARKED.get(outcome.code, ("does not lead it any more", False))
            node = call.leader.node if call.leader is not None else ""
            self._park(line, call, f"{node} {why}", now, outcome if is_told_later else None)
        was_last_elsewhere = route not in line.routes
        if line.parked and (was_last_elsewhere or (next_turn is not None and next_turn.waits_for_before)):
            self._go_on(line, now)

    def changed(self, key: str, now: float) -> None:
        """An entry of the map has changed."""
        partition = partition_of_key(key)
        if partition is not None:
            if partition not in self._map.partitions:
                self._looked.pop(partition, None)
            line = self._lines.get(partition)
            if line is None:
                return
            leader = self._map.leader(partition)
            if leader is not None and line.asked_before(leader):
                line.abandons.append((now + DEPOSED_SECONDS, leader))
            self._go_on(line, now)
            self._forget_if_gone(line)
        elif node_of_key(key) is not None:
            for line in [line for line in self._lines.values() if line.parked]:
                self._go_on(line, now)

    def looked_up(self, partition: int, key: str, now: float) -> None:
        """The store was read, with or without an answer; the request continues with what is known."""
        entry = self._map.partitions.get(partition)
        is_gone = entry is None or entry.retired
        name = self._map.name_of(partition)
        if is_gone and name is not None and key != queue_key(name):
            # A client that looks the queue up by its name then finds what is there now.
            self._effects.append(LookUp(partition, queue_key(name)))
            return
        self._looking.discard(partition)
        if entry is None:
            self._looked.pop(partition, None)
        line = self._lines.get(partition)
        if line is None:
            return
        if is_gone:
            self._end_waiting(line, _deleted())
        else:
            self._go_on(line, now)

    def tick(self, now: float) -> None:
        """Does what is due."""
        while (at := self.next_at()) is not None and at <= now:
            line = self._lines[heappop(self._wakes)[1]]
            line.pushed_at = NEVER
            while line.abandons and line.abandons[0][0] <= now:
                self._abandon(line, line.abandons.popleft()[1], now)
            self._go_on(line, now)

    def close(self) -> None:
        """No request waits any longer."""
        self._closed = True
        for line in list(self._lines.values()):
            self._end_waiting(
                line, PenstockError(ErrorCode.UNREACHABLE, "the front end is stopping; try another")
            )

    # -- asking ----------------------------------------------------------------------------------------------

    def _fly(self, line: Line, call: Call, leader: Leader, wire: int, now: float) -> None:
        """Asks the leader; the sends before a send are under way over the same connection."""
        request = call.ask.request
        if isinstance(request, Send):
            if (after := call.follows()) != call.after:
                request = msgspec.structs.replace(request, after=after)
        elif call.attempt:
            request = shortened(request, round(1000 * (call.wait_end - now)))
        if leader != call.leader:
            call.refused = 0
        call.attempt += 1
        self._serial += 1
        call.serial = self._serial
        call.leader, call.wire = leader, wire
        call.waits_for_before = False
        line.flies(call)
        self._effects.append(Transmit(call, call.attempt, leader, request))

    def _asks_again(self, call: Call, error: PenstockError) -> bool:
        entry = self._map.partitions.get(call.ask.partition)
        others_have_it = entry is not None and has_other_replicas(entry)
        return call.asks_again(call.ask.request, error, others_have_it=others_have_it)

    def _end(
        self, line: Line, call: Call, outcome: Outcome, to_followers: PenstockError | None = None
    ) -> None:
        """A request has its outcome. Sends that follow one which was refused are stored only when its client knows that."""
        ending: list[tuple[Call, Outcome]] = [(call, outcome)]
        while ending:
            call, outcome = ending.pop()
            if call.uncertain:
                outcome = call.certain(call.ask.request, outcome)
            followers = line.followers(call) if isinstance(outcome, PenstockError) else []
            line.leave(call)
            for follower in followers:
                follower.broken = True
                if follower.state is State.WAITS and all(follower is not one for one, _ in ending):
                    ending.append((follower, to_followers or out_of_order()))
            self._effects.append(Finish(call, outcome))
        self._forget_if_gone(line)

    def _end_waiting(self, line: Line, error: PenstockError) -> None:
        for call in list(line.calls):
            if call.state is State.WAITS:
                self._end(line, call, error, error)

    def _forget_if_gone(self, line: Line) -> None:
        if not line.calls and line.partition not in self._map.partitions:
            self._lines.pop(line.partition, None)

    # -- waiting for a primary -------------------------------------------------------------------------------

    def _park(
        self,
        line: Line,
        call: Call,
        reason: str,
        now: float,
        error: PenstockError | None = None,
        *,
        pause: bool = True,
    ) -> None:
        """The request waits at its place, until its patience ends; one that follows a refused send is not asked again here."""
        line.landed(call)
        if call.broken:
            self._end(line, call, out_of_order())
            return
        call.reason, call.last_refusal = reason, error
        call.give_up = min(call.give_up, now + call.ask.patience_ms / 1000)
        if self._closed or call.cancelled or now >= call.give_up:
            self._end(line, call, self._too_late(call))
            return
        line.parks(call)
        call.retry_at = now
        if pause:
            soon = SAME_NODE_SOON_SECONDS * 2 ** min(call.refused, 8)
            call.retry_at += min(SAME_NODE_SECONDS, soon) if error is None else SAME_NODE_SECONDS
            call.refused += 1
        self._look_up(line.partition, now)
        self._wake(line, min(line.wake_at, now + LOOK_AGAIN_SECONDS, call.retry_at if pause else NEVER))

    def _go_on(self, line: Line, now: float) -> None:
        """Those that wait ask again, in order, as far as there is a node to ask which they have not just asked."""
        if self._closed:
            return
        leader = self._map.leader(line.partition)
        wire = self._wires.incarnation(leader.address) if leader is not None else 0
        send_waits = False
        wake_at = NEVER
        for call in list(line.calls) if line.parked else ():
            if call.state is State.UNDER_WAY:
                send_waits = send_waits or (call.is_send and call.route != (leader, wire))
            if call.state is not State.WAITS:
                continue
            held = call.is_send and (send_waits or _waits_for_before(call))
            if leader is not None and wire and not held and (leader != call.leader or now >= call.retry_at):
                self._fly(line, call, leader, wire, now)
            elif now >= call.give_up:
                self._end(line, call, self._too_late(call))
            else:
                send_waits = send_waits or call.is_send
                wake_at = min(wake_at, call.give_up, call.retry_at if call.retry_at > now else NEVER)
        if line.parked:
            self._look_up(line.partition, now)
            wake_at = min(wake_at, now + LOOK_AGAIN_SECONDS)
        self._wake(line, wake_at)

    def _wake(self, line: Line, at: float) -> None:
        line.wake_at = at
        next_at = line.next_at()
        if next_at != line.pushed_at and next_at < NEVER:
            heappush(self._wakes, (next_at, line.partition))
        line.pushed_at = next_at

    def _abandon(self, line: Line, leader: Leader, now: float) -> None:
        """A node that was deposed and does not answer is waited for no longer."""
        for call in line.asked_before(leader):
            call.attempt += 1
            call.uncertain = True
            node = call.leader.node if call.leader is not None else ""
            self._park(line, call, f"{node} was deposed and did not answer", now, pause=False)

    def _too_late(self, call: Call) -> Outcome:
        """The error for a caller that has waited too long: no answer came, or no node could be asked."""
        if isinstance(call.ask.request, Receive) and call.ask.request.wait_ms:
            return Reply(Delivery(b"", 0, []))
        entry = self._map.partitions.get(call.ask.partition)
        if entry is None or entry.retired:
            return _deleted()
        if call.last_refusal is not None:
            return call.last_refusal
        name = f"partition {entry.ordinal} of queue {entry.queue!r}"
        return PenstockError(ErrorCode.UNREACHABLE, f"{name} cannot be reached now: {call.reason}; try again")

    def _look_up(self, partition: int, now: float) -> None:
        """Asks the store about a partition, not more often than makes sense."""
        if partition not in self._looking and now - self._looked.get(partition, -NEVER) >= REFRESH_SECONDS:
            self._looked[partition] = now
            self._looking.add(partition)
            self._effects.append(LookUp(partition, partition_key(partition)))


def _failures_first(effects: list[Effect]) -> list[Effect]:
    """Reports failed sends before other outcomes: a caller may react at once with a send that follows."""
    told = [effect for effect in effects if isinstance(effect, Finish)]
    if len(told) < 2:
        return effects
    told.sort(key=lambda finish: not (finish.call.is_send and isinstance(finish.outcome, PenstockError)))
    in_order = iter(told)
    return [next(in_order) if isinstance(effect, Finish) else effect for effect in effects]


def _waits_for_before(call: Call) -> bool:
    """Whether the send before it has to be asked again first, or to end: the node refused this one for its sake."""
    before = call.predecessor() if call.waits_for_before else None
    return before is not None and before.serial < call.serial


def _deleted() -> PenstockError:
    return PenstockError(ErrorCode.QUEUE_NOT_FOUND, "the queue was deleted; look it up again")
