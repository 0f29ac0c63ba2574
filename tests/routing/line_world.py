"""A small world for the line of one partition: two nodes that take turns to lead, connections that break, and their log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, encode, node_key, partition_key
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.line_call import Call, Cancel, Finish, LookUp, Transmit
from penstock.routing.partition_line import PartitionLines
from penstock.steps.step import Ask, Outcome, Reply
from penstock.wire.messages import Done, Request, Send, SendResult
from penstock.wire.send_order import SendOrder

NODES = ("a", "b")


@dataclass(eq=False)
class Wire:
    """One connection: requests that the node has not read yet, answers that have not arrived yet."""

    node: str
    number: int
    alive: bool = True
    requests: deque[Transmit] = field(default_factory=deque)
    answers: list[tuple[Transmit, Outcome]] = field(default_factory=list)
    unanswered: list[Transmit] = field(default_factory=list)


class LineWorld:
    """Whatever happens happens when the test says so."""

    def __init__(self) -> None:
        self.map = ClusterMap()
        self.now = 0.0
        self.epoch = 1
        self.leader: str | None = "a"
        self.log: list[tuple[int, int]] = []
        """(producer, number) of what is stored, in order. A deposed node stores nothing."""
        self.carried_out: list[Request] = []
        """What nodes did beside that."""
        self.refusals: deque[ErrorCode] = deque()
        """What the leader says to the next requests."""
        self.transmitted: list[tuple[str, Request]] = []
        self.looked: list[str] = []
        self.cancelled: list[Call] = []
        self._orders = {node: SendOrder() for node in NODES}
        self._wires: dict[str, Wire] = {}
        self._old: list[Wire] = []
        self._numbers = 0
        self.lines = PartitionLines(self.map, self)
        for node in NODES:
            self.map.apply(
                node_key(node),
                encode(NodeEntry(node=node, native=f"{node}:1", peers=f"{node}:2", started_ms=1)),
            )
            self.connect(node)
        self.publish()

    # -- the world -------------------------------------------------------------------------------------------

    def incarnation(self, address: str) -> int:
        """See `Wires`."""
        wire = self._wires.get(address.partition(":")[0])
        return wire.number if wire is not None else 0

    def connect(self, node: str) -> None:
        """There is a connection, if there was none."""
        if node not in self._wires:
            self._numbers += 1
            self._wires[node] = Wire(node, self._numbers)

    def break_off(self, node: str) -> Wire | None:
        """The connection is gone, and nobody has been told what became of its requests; see `tell_lost`."""
        wire = self._wires.pop(node, None)
        if wire is not None:
            wire.alive = False
            self._old.append(wire)
        return wire

    def tell_lost(self) -> None:
        """What was under way on connections that are gone fails."""
        for wire in self._old:
            unanswered, wire.unanswered = wire.unanswered, []
            wire.answers.clear()
            for sent in unanswered:
                self._answer(sent, PenstockError(ErrorCode.UNREACHABLE, "the connection was lost"))

    def lead(self, node: str | None) -> None:
        """Another node leads, or none; front ends hear of it by `publish`."""
        self.epoch += 1
        self.leader = node

    def publish(self) -> None:
        """The map is what is so."""
        entry = PartitionEntry(
            partition=1,
            queue_id=1,
            queue="q",
            ordinal=0,
            settings=QueueSettings(ordering="fifo", replicas=2),
            epoch=self.epoch,
            serving=self.epoch if self.leader is not None else 0,
            primary=self.leader,
            replicas=list(NODES),
            in_sync=list(NODES),
        )
        self.map.apply(partition_key(1), encode(entry))
        self.lines.changed(partition_key(1), self.now)
        self.run()

    def delete(self) -> None:
        """The partition is gone."""
        self.map.apply(partition_key(1), None)
        self.lines.changed(partition_key(1), self.now)
        self.run()

    def start(self, request: Request, done: Callable[[Outcome], None], patience_ms: int = 8_000) -> Call:
        """A request comes."""
        call = self.lines.start(Ask(request, b"", 1, patience_ms), done, self.now)
        self.run()
        return call

    def wait(self, seconds: float) -> None:
        """Time passes."""
        end = self.now + seconds
        while (at := self.lines.next_at()) is not None and at <= end:
            self.now = max(self.now, at)
            self.lines.tick(self.now)
            self.run()
        self.now = end

    def run(self) -> None:
        """Carries out what the line wants done."""
        while effects := self.lines.take():
            for effect in effects:
                match effect:
                    case Transmit(call, _, leader, request):
                        wire = self._wires.get(leader.node)
                        assert wire is not None, "nothing is written where there is no connection"
                        assert wire.number == call.wire
                        wire.requests.append(effect)
                        wire.unanswered.append(effect)
                        self.transmitted.append((leader.node, request))
                    case Finish(call, outcome):
                        call.done(outcome)
                    case Cancel(call):
                        self.cancelled.append(call)
                    case LookUp(partition, key):
                        self.looked.append(key)
                        self.lines.looked_up(partition, key, self.now)

    # -- the nodes -------------------------------------------------------------------------------------------

    def wires(self) -> list[Wire]:
        """All connections on which something is under way, those that are gone among them."""
        return [
            wire
            for wire in (*self._old, *self._wires.values())
            if wire.requests or (wire.alive and wire.answers)
        ]

    def read(self, wire: Wire) -> None:
        """The node reads one request; also one that had arrived before the connection was gone."""
        if not wire.requests:
            return
        sent = wire.requests.popleft()
        outcome = self._carried_out(wire, sent.request)
        if wire.alive:
            wire.answers.append((sent, outcome))

    def hear(self, wire: Wire, place: int = 0) -> None:
        """An answer arrives; not always in the order of requests."""
        if wire.answers:
            sent, outcome = wire.answers.pop(place % len(wire.answers))
            wire.unanswered.remove(sent)
            self._answer(sent, outcome)

    def _answer(self, sent: Transmit, outcome: Outcome) -> None:
        self.lines.answered(sent.call, sent.attempt, outcome, self.now)
        self.run()

    def _carried_out(self, wire: Wire, request: Request) -> Outcome:
        if wire.node != self.leader:
            return PenstockError(ErrorCode.NOT_PRIMARY, "another node leads it")
        if not isinstance(request, Send):
            if self.refusals:
                return PenstockError(self.refusals.popleft(), "not now")
            self.carried_out.append(request)
            return Reply(Done())
        order = self._orders[wire.node]
        try:
            order.check(wire.number, request)
        except PenstockError as error:
            return error
        if self.refusals:
            return PenstockError(self.refusals.popleft(), "not now")
        order.taken(wire.number, request)
        if (request.producer, request.number) not in self.log:
            self.log.append((request.producer, request.number))
        return Reply(SendResult([(request.number, 1)], [], 1))

    def serve(self) -> None:
        """Everything under way is read and answered, until nothing is."""
        while wires := self.wires():
            for wire in wires:
                self.read(wire)
                self.hear(wire)
