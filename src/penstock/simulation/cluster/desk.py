"""What a simulated front end carries out steps with, the twin of `runtime.cluster_link`: over simulated time and networks.

What is decided about answers is the product's (`routing.errand`, `routing.attempts`); here is only how questions travel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.attempts import WAITING, Attempts, shortened
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.steps import (
    Ask,
    AskAnyNode,
    ConflictError,
    Look,
    Outcome,
    Put,
    Remove,
    Reply,
    Stored,
    Until,
)
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.schedule import Schedule
from penstock.simulation.tasks import Reply as ClientReply
from penstock.wire import messages

_AGAIN_MS = 60
_LOOK_MS = 20
_PATIENCE_MS = 4_000
"""Less than a front end has: clients of the simulation ask again by themselves, and their time is dear."""
_STRAY_SHARE = 0.03

Done = Callable[[Outcome], None]


def unreachable(why: str) -> PenstockError:
    """Nobody knows what became of a request."""
    return PenstockError(ErrorCode.UNREACHABLE, why)


class Call(Attempts):
    """One request to whoever leads a partition, through moves and failovers."""

    __slots__ = ("_ask", "_cancelled", "_desk", "_done", "_end_ms", "_ticket", "_wait_end_ms")

    def __init__(self, desk: Desk, ask: Ask, done: Done) -> None:
        super().__init__()
        self._desk = desk
        self._ask = ask
        self._done = done
        now_ms = desk.schedule.elapsed_ms
        self._end_ms = now_ms + min(ask.patience_ms, _PATIENCE_MS)
        self._wait_end_ms = now_ms + (ask.request.wait_ms if isinstance(ask.request, WAITING) else 0)
        self._ticket: tuple[SimulatedClient, int] | None = None
        self._cancelled = False
        desk.flying[ask.partition] = desk.flying.get(ask.partition, 0) + 1
        self._try()

    def cancel(self) -> None:
        """A request that waits for messages need not wait any longer."""
        self._cancelled = True
        if self._ticket is not None and isinstance(self._ask.request, WAITING):
            client, number = self._ticket
            client.tell(messages.Unsubscribe(number))

    def _try(self) -> None:
        node = self._desk.node_for(self._ask.partition)
        if node is None or self._cancelled:
            self._again(unreachable("no node serves it"))
            return
        client = self._desk.clients[node]
        left_ms = self._wait_end_ms - self._desk.schedule.elapsed_ms
        request = shortened(self._ask.request, left_ms)
        client.ask(request, bytes(self._ask.body), max(0, left_ms) + 8_000, self._answered)
        self._ticket = (client, client.last_request)

    def _answered(self, reply: ClientReply | None) -> None:
        self._ticket = None
        if reply is None:
            error = unreachable("the connection was lost")
        elif isinstance(reply.answer, messages.Failed):
            error = PenstockError(ErrorCode(reply.answer.code), reply.answer.message)
        else:
            self._end(Reply(reply.answer, reply.body))
            return
        if self.asks_again(self._ask.request, error, others_have_it=True):
            self._again(error)
        else:
            self._end(error)

    def _again(self, error: PenstockError) -> None:
        desk = self._desk
        if self._cancelled or desk.schedule.elapsed_ms >= self._end_ms:
            desk.schedule.after(_AGAIN_MS, lambda: self._end(unreachable(error.message)))
        else:
            desk.schedule.after(_AGAIN_MS, self._try)

    def _end(self, outcome: Outcome) -> None:
        self._desk.flying[self._ask.partition] -= 1
        if not self.is_known(self._ask.request, outcome):  # checkers ask for more than what clients are told
            outcome = unreachable("an earlier attempt may have done it")
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

    # -- what steps are carried out with ---------------------------------------------------------------------

    @property
    def calls(self) -> Desk:
        """Questions to partitions."""
        return self

    def start(self, ask: Ask, done: Done) -> Call:
        """Asks whoever leads a partition."""
        return Call(self, ask, done)

    def cancel(self, call: Call) -> None:
        """It need not wait any longer."""
        call.cancel()

    def ask_any_node(self, step: AskAnyNode, done: Done) -> None:
        """Asks somebody who leads something."""
        self.start(Ask(min(self.map.partitions), step.request), done)

    def wait_until(self, step: Until, done: Callable[[bool], None]) -> None:
        """Looks at the map now and then."""
        self._look(step.holds, self.schedule.elapsed_ms + step.wait_ms, done)

    def _look(self, holds: Callable[[], bool], end_ms: int, done: Callable[[bool], None]) -> None:
        if holds() or self.schedule.elapsed_ms >= end_ms:
            done(holds())
        else:
            self.schedule.after(_LOOK_MS, lambda: self._look(holds, end_ms, done))

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
