"""Clients of a cluster, each with a front end of its own: the real routing, over a map that may be out of date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from penstock.model.errors import ERRORS, ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.errand import Errand
from penstock.routing.router import route
from penstock.routing.steps import Outcome
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.desk import Call, Desk
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.cluster.metadata import SimulatedMetadata, StoredChange
from penstock.simulation.message_history import QueueLife
from penstock.simulation.network import Network
from penstock.simulation.tasks import Reply
from penstock.simulation.trace import Trace
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.wire import messages

_STALE_SHARE = 0.3
"""How often a client goes on with an incarnation that may be gone."""

Done = Callable[[Reply | None], None]


class RoutingClient(SimulatedClient):
    """One client that asks a front end, which has a connection to each node."""

    def __init__(
        self,
        name: str,
        networks: Mapping[str, Network],
        fabric: Fabric,
        metadata: SimulatedMetadata,
        random: Random,
        trace: Trace,
    ) -> None:
        network = next(iter(networks.values()))
        super().__init__(name, network, random, trace)
        self._schedule = network.schedule
        self._fabric = fabric
        self._inner = {node: SimulatedClient(name, way, random, trace) for node, way in networks.items()}
        self.map = ClusterMap()
        self._desk = Desk(name, self.map, self._inner, fabric, metadata, self._schedule, random)
        self._context = RoutingContext(
            self.map,
            producer=random.getrandbits(60) + 1,
            now_ms=lambda: self._schedule.now_ms,
            load=self._desk.load,
        )
        self._errands: dict[int, Errand[Call]] = {}
        self._number = 0
        metadata.watch(name, self._heard)

    def _heard(self, change: StoredChange) -> None:
        self.map.apply(change.key, change.value)

    def ask(self, request: messages.Request, body: bytes, timeout_ms: int, done: Done) -> None:
        """Has a request routed; `done` gets the answer, or None where there is none that is certain."""
        self._number += 1
        name, number, is_open = self.name, self._number, True

        def end(reply: Reply | None) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                self._errands.pop(number, None)
                done(reply)

        def ended(outcome: Outcome) -> None:
            if isinstance(outcome, PenstockError) and outcome.__cause__ is not None:
                self._fabric.defects.append((self._schedule.now_ms, f"{name}: {outcome.message}"))
            reply = self._told(request, outcome)
            # Never from within: whoever asks may go on only after it has asked.
            self._schedule.after(0, lambda: end(reply))

        self._schedule.after(timeout_ms, lambda: end(None))
        self._errands[number] = errand = Errand(route(self._context, request, body), self._desk, ended)
        errand.start()

    def _told(self, request: messages.Request, outcome: Outcome) -> Reply | None:
        if not isinstance(outcome, PenstockError):
            answer = outcome.answer
            described = (
                answer.queues
                if isinstance(answer, messages.QueueList)
                else [answer]
                if isinstance(answer, messages.QueueDescription)
                else []
            )
            if any(one.damage is not None for one in described):
                return (
                    None  # a partition does not answer, or is about to get another primary: asked again later
                )
            return Reply(answer, memoryview(outcome.body))
        if outcome.code in (ErrorCode.UNREACHABLE, ErrorCode.INTERNAL):
            return None
        if isinstance(request, messages.Send) and ERRORS[outcome.code].retryable:
            queue = self.map.incarnation(request.queue_id)
            if queue is not None and len(queue.partitions) > 1:
                return None  # another partition may have stored its share
        return Reply(messages.Failed(outcome.code, outcome.message), memoryview(b""))

    @property
    def last_request(self) -> int:
        """A number for the last request, as this client counts them."""
        return self._number

    def tell(self, request: messages.Request) -> None:
        """Ends the wait of a request, at the nodes that were asked."""
        assert isinstance(request, messages.Unsubscribe)
        errand = self._errands.get(request.subscription)
        if errand is not None:
            errand.cancel()

    def disconnect(self) -> None:
        """Breaks all its connections."""
        for inner in self._inner.values():
            inner.disconnect()

    def send_raw(self, data: bytes) -> None:
        """Sends bytes as they are to some node."""
        self._inner[self._random.choice(sorted(self._inner))].send_raw(data)


class ClusterStage(Stage):
    """The stage of a cluster: its clients find their way."""

    fabric: Fabric
    metadata: SimulatedMetadata

    def client(self, name: str) -> SimulatedClient:
        """A new client."""
        client = RoutingClient(name, self.fabric.clients, self.fabric, self.metadata, self.random, self.trace)
        self.fabric.client_names.append(name)
        self.clients.append(client)
        return client

    def life_of(self, name: str) -> QueueLife | None:
        """Some have not heard yet that a queue was deleted and made again."""
        return self._earlier(self.queues.get(name))

    def pick_queue(self) -> QueueLife | None:
        """The same for those who receive. Dead and late letters are mostly left for operators to redrive."""
        life = super().pick_queue()
        if life is not None and life.name.endswith(MOVED_TO) and self.random.random() < 0.8:
            life = super().pick_queue()
        return self._earlier(life)

    def _earlier(self, life: QueueLife | None) -> QueueLife | None:
        if life is None or self.stopping:
            return life
        others = [other for other in self.recorder.history.lives_named(life.name) if other is not life]
        return self.random.choice(others) if others and self.random.random() < _STALE_SHARE else life
