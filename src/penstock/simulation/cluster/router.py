"""Clients of a cluster, each with a separate front end: the real routing, with a map that may be out of date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from penstock.model.errors import ERRORS, ErrorCode, PenstockError
from penstock.routing.context import RoutingContext
from penstock.routing.line_call import Call
from penstock.routing.router import routed
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.cluster.front_ends import FrontEnds, Told
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.partition_calls import is_second_answer
from penstock.simulation.cluster.step_world import StepWorld
from penstock.simulation.message_history import QueueLife
from penstock.simulation.network import Network
from penstock.simulation.tasks import Reply
from penstock.simulation.trace import Trace
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.steps.runner import StepRunner
from penstock.steps.step import Ask, Outcome, Single
from penstock.steps.step import Reply as RoutedReply
from penstock.wire import messages

_STALE_SHARE = 0.3
"""How often a client continues with an incarnation that may be gone."""

Done = Callable[[Reply | None], None]


class NotedStepWorld:
    """The world of one request; its requests to partitions are recorded."""

    def __init__(self, world: StepWorld) -> None:
        self._world = world
        self._asked: list[tuple[Call, list[Outcome]]] = []

    def start(self, step: Single, done: Callable[[Any], None]) -> Call | None:
        """See `World`."""
        if not isinstance(step, Ask) or not step.partition:
            return self._world.start(step, done)
        outcomes: list[Outcome] = []

        def answered(outcome: Outcome) -> None:
            outcomes.append(outcome)
            done(outcome)

        call = self._world.calls.start(step, answered)
        self._asked.append((call, outcomes))
        return call

    def cancel(self, under_way: Call) -> None:
        """See `World`."""
        self._world.cancel(under_way)

    def asked_again(self) -> bool:
        """Whether something was settled of which an earlier attempt may have been carried out."""
        return any(is_second_answer(call, outcome) for call, outcomes in self._asked for outcome in outcomes)


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
        self._world = StepWorld(name, self._inner, fabric, metadata, self._schedule, random)
        self.map = self._world.map
        self._context = RoutingContext(
            self.map,
            producer=random.getrandbits(60) + 1,
            now_ms=lambda: self._schedule.now_ms,
            load=self._world.calls.load,
        )
        self._runners: dict[int, StepRunner[RoutedReply, Call]] = {}
        self._number = 0

    def ask(self, request: messages.Request, body: bytes, timeout_ms: int, done: Done) -> None:
        """Has a request routed; `done` gets the answer, or None where there is none that is certain."""
        is_open = True

        def end(reply: Reply | None) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                self._runners.pop(number, None)
                done(reply)

        def ended(outcome: Outcome, *, again: bool) -> None:
            reply = self._told(request, outcome, again=again)
            # Never from within: the caller may continue only after it has asked.
            self._schedule.after(0, lambda: end(reply))

        number = self._number + 1
        self._schedule.after(timeout_ms, lambda: end(None))
        self.carry_out(request, body, ended)

    def carry_out(self, request: messages.Request, body: bytes, done: Told) -> int:
        """Has a request routed; `done` gets what the front end says. Returns a number for it."""
        world = NotedStepWorld(self._world)

        def ended(outcome: Outcome) -> None:
            if isinstance(outcome, PenstockError) and outcome.__cause__ is not None:
                self._fabric.defects.append((self._schedule.now_ms, f"{self.name}: {outcome.message}"))
            done(outcome, again=world.asked_again())

        self._number = number = self._number + 1
        self._runners[number] = runner = routed(self._context, request, body, world, ended)
        runner.start()
        return number

    def stop(self) -> None:
        """The front end is killed."""
        self._world.stop()
        self.disconnect()

    def _told(self, request: messages.Request, outcome: Outcome, *, again: bool) -> Reply | None:
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
            return Reply(answer, memoryview(outcome.body), again)
        if outcome.code in (ErrorCode.UNREACHABLE, ErrorCode.INTERNAL, ErrorCode.METADATA_UNAVAILABLE):
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
        runner = self._runners.get(request.subscription)
        if runner is not None:
            runner.stop_waiting()

    def disconnect(self) -> None:
        """Breaks all its connections."""
        for inner in self._inner.values():
            inner.disconnect()

    def send_raw(self, data: bytes) -> None:
        """Sends bytes as they are to some node."""
        self._inner[self._random.choice(sorted(self._inner))].send_raw(data)


class ClusterStage(Stage):
    """The stage of a cluster: its clients use the routing."""

    fabric: Fabric
    metadata: SimulatedMetadata

    def client(self, name: str) -> SimulatedClient:
        """A new client."""
        client = RoutingClient(name, self.fabric.clients, self.fabric, self.metadata, self.random, self.trace)
        self.fabric.client_names.append(name)
        self.clients.append(client)
        return client

    def front_end(self, name: str, random: Random) -> RoutingClient:
        """The router of one front end process."""
        return RoutingClient(name, self.fabric.clients, self.fabric, self.metadata, random, self.trace)

    def network_of(self, name: str) -> Network:
        """The native ports of front ends behind a balancer."""
        fabric, random = self.fabric, self.random
        fabric.client_names.append(name)
        front_ends = FrontEnds(
            lambda: self.front_end(name, random),
            random.choice((1, 1, 2)),
            self.schedule,
            random,
            lambda: fabric.calm or self.stopping,
        )
        return Network(self.schedule, random, front_ends)

    def life_of(self, name: str) -> QueueLife | None:
        """Some clients do not know yet that a queue was deleted and created again."""
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
