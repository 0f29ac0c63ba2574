"""Carries out the steps of one routed request, the twin of `runtime.cluster_link`: with callbacks, over simulated time.

What a node says that leads no more means nothing certain: the request may have been carried out and be part of what the next
primary has. So it is no answer, as when the connection was lost; only what may be asked twice is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.steps import (
    Ask,
    AskAll,
    AskAnyNode,
    AskFirst,
    ConflictError,
    Look,
    Outcome,
    Put,
    Remove,
    Reply,
    Step,
    Steps,
    Stored,
    Until,
)
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.schedule import Schedule
from penstock.simulation.tasks import Reply as ClientReply
from penstock.wire import messages

_NOT_TAKEN = (
    ErrorCode.NOT_PRIMARY,
    ErrorCode.SHUTTING_DOWN,
    ErrorCode.QUEUE_DAMAGED,
    ErrorCode.QUEUE_NOT_FOUND,
)
"""Said by nodes that cannot answer for the partition; another one can, or will."""
_TWICE = (messages.Send, messages.DescribeQueue, messages.Peek, messages.ReadLog, messages.FindOffset)
"""What does no harm when it is asked again although it may have been carried out."""
_WAITING = (messages.Receive, messages.ReadLog)
_AGAIN_MS = 60
_LOOK_MS = 20
_PATIENCE_MS = 4_000
"""Less than a front end has: clients of the simulation ask again by themselves, and their time is dear."""
_STRAY_SHARE = 0.03

Done = Callable[[Outcome], None]


def unreachable(why: str) -> PenstockError:
    """Nobody knows what became of a request."""
    return PenstockError(ErrorCode.UNREACHABLE, why)


class Call:
    """One request to whoever leads a partition, through moves and failovers."""

    def __init__(self, desk: Desk, ask: Ask, done: Done) -> None:
        self._desk = desk
        self._ask = ask
        self._done = done
        self._end_ms = desk.schedule.elapsed_ms + min(ask.patience_ms, _PATIENCE_MS)
        wait_ms = ask.request.wait_ms if isinstance(ask.request, _WAITING) else 0
        self._timeout_ms = wait_ms + 8_000
        self._ticket: tuple[SimulatedClient, int] | None = None
        self._cancelled = False
        self._uncertain = False
        desk.flying[ask.partition] = desk.flying.get(ask.partition, 0) + 1
        self._try()

    def cancel(self) -> None:
        """A request that waits for messages need not wait any longer."""
        self._cancelled = True
        if self._ticket is not None and isinstance(self._ask.request, _WAITING):
            client, number = self._ticket
            client.tell(messages.Unsubscribe(number))

    def _try(self) -> None:
        node = self._desk.node_for(self._ask.partition)
        if node is None or self._cancelled:
            self._again("no node serves it")
            return
        client = self._desk.clients[node]
        client.ask(self._ask.request, bytes(self._ask.body), self._timeout_ms, self._answered)
        self._ticket = (client, client.last_request)

    def _answered(self, reply: ClientReply | None) -> None:
        self._ticket = None
        if reply is None:
            self._lost("the connection was lost")
            return
        answer = reply.answer
        if not isinstance(answer, messages.Failed):
            self._end(Reply(answer, reply.body))
        elif answer.code in _NOT_TAKEN:
            self._again(answer.message)
        elif answer.code == ErrorCode.UNREACHABLE:
            self._lost(answer.message)
        else:
            self._end(PenstockError(ErrorCode(answer.code), answer.message))

    def _lost(self, why: str) -> None:
        if isinstance(self._ask.request, _TWICE):
            self._uncertain = True
            self._again(why)
        else:
            self._end(unreachable(why))

    def _again(self, why: str) -> None:
        desk = self._desk
        if self._cancelled or desk.schedule.elapsed_ms >= self._end_ms:
            desk.schedule.after(_AGAIN_MS, lambda: self._end(unreachable(why)))
        else:
            desk.schedule.after(_AGAIN_MS, self._try)

    def _end(self, outcome: Outcome) -> None:
        self._desk.flying[self._ask.partition] -= 1
        if self._uncertain and isinstance(outcome, PenstockError) and outcome.retryable:
            outcome = unreachable(outcome.message)  # an earlier attempt may have been taken
        self._done(outcome)


class Desk:
    """What the requests of one client share: its map, its connections, the store."""

    def __init__(
        self,
        name: str,
        cluster: ClusterMap,
        clients: Mapping[str, SimulatedClient],
        fabric: Fabric,
        metadata: SimulatedMetadata,
        schedule: Schedule,
        random: Random,
    ) -> None:
        self.name = name
        self.map = cluster
        self.clients = clients
        self.metadata = metadata
        self.schedule = schedule
        self._fabric = fabric
        self._random = random
        self.flying: dict[int, int] = {}

    def load(self, partition: int) -> float:
        """How many requests a partition has to answer; infinite where nobody serves it."""
        return float("inf") if self.map.leader(partition) is None else float(self.flying.get(partition, 0))

    def node_for(self, partition: int) -> str | None:
        """Whom to ask; now and then somebody who is out of date asks anybody."""
        if not self._fabric.calm and self._random.random() < _STRAY_SHARE:
            return self._random.choice(list(self.clients))
        leader = self.map.leader(partition)
        return leader.node if leader is not None else None

    def use_store(self, step: Look | Put | Remove, done: Callable[[Any], None]) -> None:
        """Reads or writes the layout; the outcome is a value or an exception."""
        store = self.metadata

        def carry_out() -> Any:
            match step:
                case Look(key):
                    found = store.entries.get(key)
                    return Stored(found.value, found.version) if found is not None else Stored(None, 0)
                case Put(key, value, version):
                    return store.entries[key].version if store.put(key, value, version) else ConflictError()
                case Remove(key, version):
                    return None if store.delete(key, version) else ConflictError()

        def answered(outcome: Any) -> None:
            if outcome is None and not isinstance(step, Remove):
                outcome = unreachable("the store does not answer")
            elif isinstance(step, Look):
                self.map.apply(step.key, outcome.value)
            done(outcome)

        store.ask(self.name, carry_out, answered)


class Errand:
    """One request under way; `ended` is called once."""

    def __init__(self, steps: Steps[Reply], desk: Desk, ended: Done) -> None:
        self._steps = steps
        self._desk = desk
        self._ended = ended
        self._calls: list[Call] = []
        self._step: Step | None = None
        self._resume(steps.send, None)

    def cancel(self) -> None:
        """What waits for messages is to end its wait."""
        for call in self._calls:
            call.cancel()

    def _resume(self, proceed: Callable[[Any], Step], value: Any) -> None:
        self._calls = []
        try:
            step = proceed(value)
        except StopIteration as end:
            self._ended(end.value)
        except PenstockError as error:
            self._ended(error)
        else:
            self._step = step
            self._carry_out(step)

    def _proceed(self, outcome: Any) -> None:
        self._resume(self._steps.throw if isinstance(outcome, Exception) else self._steps.send, outcome)

    def _carry_out(self, step: Step) -> None:
        desk = self._desk
        match step:
            case Ask():
                self._calls = [Call(desk, step, self._proceed)]
            case AskAll(asks) | AskFirst(asks, _, _):
                if not asks:
                    self._resume(self._steps.send, [] if isinstance(step, AskAll) else None)
                    return
                outcomes: dict[int, Outcome] = {}
                answered = self._one_of_all if isinstance(step, AskAll) else self._one_of_first
                self._calls = [
                    Call(desk, ask, partial(answered, step, outcomes, place))
                    for place, ask in enumerate(asks)
                ]
            case AskAnyNode(request):
                partition = min(desk.map.partitions)
                self._calls = [Call(desk, Ask(partition, request), self._proceed)]
            case Look() | Put() | Remove():
                desk.use_store(step, self._proceed)
            case Until(holds, wait_ms):
                self._look(holds, desk.schedule.elapsed_ms + wait_ms)

    def _look(self, holds: Callable[[], bool], end_ms: int) -> None:
        schedule = self._desk.schedule
        if holds() or schedule.elapsed_ms >= end_ms:
            self._resume(self._steps.send, holds())
        else:
            schedule.after(_LOOK_MS, lambda: self._look(holds, end_ms))

    def _one_of_all(
        self, step: AskAll | AskFirst, outcomes: dict[int, Outcome], place: int, outcome: Outcome
    ) -> None:
        outcomes[place] = outcome
        if len(outcomes) == len(step.asks):
            self._resume(self._steps.send, [outcomes[number] for number in range(len(outcomes))])

    def _one_of_first(
        self, step: AskAll | AskFirst, outcomes: dict[int, Outcome], place: int, outcome: Outcome
    ) -> None:
        assert isinstance(step, AskFirst)
        has_something = isinstance(outcome, Reply) and step.has_something(outcome)
        if self._step is not step:  # somebody was quicker
            if has_something:
                assert isinstance(outcome, Reply)
                Call(self._desk, step.give_back(step.asks[place].partition, outcome), lambda ignored: None)
            return
        outcomes[place] = outcome
        if has_something:
            calls, self._step = self._calls, None
            for call in calls:
                call.cancel()
            self._resume(self._steps.send, (place, outcome))
        elif len(outcomes) == len(step.asks):
            errors = [error for error in outcomes.values() if isinstance(error, PenstockError)]
            self._step = None
            if len(errors) == len(outcomes):
                self._resume(self._steps.throw, errors[0])
            else:
                self._resume(self._steps.send, None)
