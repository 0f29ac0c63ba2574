"""The whole way of a send in one process: clients, front ends, connections, and partitions that fail over.

Real are what a client decides (`client_core`), the order that a gateway keeps, the router with its turns, claims and lines, and the
partitions with their producers, ids and bars. Connections, clocks and replicas are the dice's. Nothing is answered before it is
committed, and a failover loses some of what is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from penstock.cluster.layout.entries import (
    NodeEntry,
    PartitionEntry,
    QueueEntry,
    encode,
    node_key,
    partition_key,
    queue_key,
)
from penstock.model.batch import Batch, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import EpochBegan
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import send as sending
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.state import id_claims
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.line_call import Call, Finish, LookUp, Transmit
from penstock.routing.partition_line import PartitionLines
from penstock.routing.router import routed
from penstock.steps.step import Ask, Outcome, Reply, Single
from penstock.wire.messages import (
    ClaimedIds,
    ClaimIds,
    FindIds,
    FoundIds,
    Request,
    Send,
    SendResult,
)
from penstock.wire.send_order import SendOrder
from tests.queue.rig import START_MS, Rig
from tests.routing.send_path_clients import Client, Connection, Settings
from tests.routing.test_send_turns import PARTITIONS

NODES = ("a", "b")
LOST = PenstockError(ErrorCode.UNREACHABLE, "the connection was lost, or the node lost the partition")
AT_THE_DOOR = (ErrorCode.THROTTLED, ErrorCode.DISK_FULL)
AT_A_NODE = (ErrorCode.OVERLOADED, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.DISK_FULL)


class Partition:
    """One partition of the queue, and what its leader has that is not committed yet."""

    def __init__(self, dice: Random, ordinal: int, settings: QueueSettings) -> None:
        self._dice, self._settings = dice, settings
        self.ordinal, self.id = ordinal, 2 + ordinal
        self.rig = Rig(settings, partition_id=self.id)
        self.epoch, self.leader = 0, ""
        self._committed = 0
        self._waiting: list[tuple[int, Wire, Transmit, Outcome]] = []

    def lead(self, node: str, now_ms: int) -> None:
        """A failover: some of what is not committed survives."""
        log = self.rig.log
        kept = self._dice.randint(self._committed, len(log))
        for _, wire, sent, _ in self._waiting:
            wire.answer(sent, LOST)
        self._waiting = []
        if kept < len(log):
            self.rig = Rig(self._settings, partition_id=self.id)
            self.rig.log = log[:kept]
            self.rig.partition = self.rig.replayed()
        self.epoch, self.leader = self.epoch + 1, node
        self.rig.write([PendingRecord(EpochBegan(self.epoch, now_ms))])

    def commit(self) -> None:
        """Some more is committed, and told."""
        self._committed = self._dice.randint(self._committed, len(self.rig.log))
        waiting, self._waiting = self._waiting, []
        for row in waiting:
            if row[0] <= self._committed:
                row[1].answer(row[2], row[3])
            else:
                self._waiting.append(row)

    def answers(self, wire: Wire, sent: Transmit, outcome: Outcome) -> None:
        """An answer to what is written by now."""
        self._waiting.append((len(self.rig.log), wire, sent, outcome))

    def entry(self) -> bytes:
        """Who leads it."""
        return encode(
            PartitionEntry(
                partition=self.id,
                queue_id=1,
                queue="q",
                ordinal=self.ordinal,
                settings=self._settings,
                epoch=self.epoch,
                serving=self.epoch,
                primary=self.leader,
                replicas=list(NODES),
                in_sync=list(NODES),
            )
        )


class Wire:
    """A connection of a front end to a node."""

    def __init__(self, node: str, number: int) -> None:
        self.node, self.number = node, number
        self.alive = True
        self.requests: deque[Transmit] = deque()
        self.answered: list[tuple[Transmit, Outcome]] = []
        self.unanswered: list[Transmit] = []

    def answer(self, sent: Transmit, outcome: Outcome) -> None:
        """The node answers; nobody hears that on a connection that is gone."""
        if self.alive:
            self.answered.append((sent, outcome))


class FrontEnd:
    """The gateway, the router and the lines of one front end."""

    def __init__(self, path: SendPath, producer: int) -> None:
        self._path = path
        self.map = ClusterMap()
        partitions = [partition.id for partition in path.partitions]
        queue = QueueEntry(
            name="q", queue_id=1, settings=path.queue_settings, created_ms=1, partitions=partitions
        )
        self.map.apply(queue_key("q"), encode(queue))
        for node in NODES:
            entry = NodeEntry(node=node, native=f"{node}:1", peers=f"{node}:2", started_ms=1)
            self.map.apply(node_key(node), encode(entry))
        for partition in path.partitions:
            self.map.apply(partition_key(partition.id), partition.entry())
        self.wires: dict[str, Wire] = {}
        self.lines = PartitionLines(self.map, self)
        self._context = RoutingContext(
            self.map, producer=producer, now_ms=lambda: path.now_ms, load=lambda _: 0.0
        )
        self._order = SendOrder()
        self._soon: deque[Callable[[], None]] = deque()
        self.news: deque[Partition] = deque()

    def take(self, connection: Connection, request_id: int, request: Send, body: Buffer) -> None:
        """A send of a client."""

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, PenstockError):
                self._order.refused(connection.number, request)
            connection.answered.append((request_id, outcome))

        try:
            self._path.refuse(self._path.settings.refused_at_the_door, AT_THE_DOOR)
            self._order.check(connection.number, request)
        except PenstockError as error:
            connection.answered.append((request_id, error))
            return
        self._order.taken(connection.number, request)
        routed(self._context, request, body, self, done).start()

    def hear(self) -> None:
        """It hears of a partition, as it is by now."""
        self._learn(self.news.popleft())

    def _learn(self, partition: Partition) -> None:
        self.map.apply(partition_key(partition.id), partition.entry())
        self.lines.changed(partition_key(partition.id), self._path.now)
        self.run()

    def answered(self, sent: Transmit, outcome: Outcome) -> None:
        """A node has answered, or the connection to it is lost."""
        self.lines.answered(sent.call, sent.attempt, outcome, self._path.now)
        self.run()

    def run(self) -> None:
        """Carries out what the lines want done."""
        while effects := self.lines.take():
            for effect in effects:
                match effect:
                    case Transmit(_, _, leader, _):
                        wire = self.wires[leader.node]
                        wire.requests.append(effect)
                        wire.unanswered.append(effect)
                    case Finish(call, outcome):
                        self._soon.append(lambda call=call, outcome=outcome: call.done(outcome))  # type: ignore[misc]  # mypy cannot infer lambdas with defaults
                    case LookUp(partition, key):
                        self._soon.append(
                            lambda partition=partition, key=key: self._looked_up(partition, key)  # type: ignore[misc]  # as above
                        )
                    case _:
                        raise AssertionError(effect)

    def _looked_up(self, partition: int, key: str) -> None:
        if self._path.dice.random() < 0.5:  # else the store does not answer
            self._learn(self._path.partitions[partition - 2])
        self.lines.looked_up(partition, key, self._path.now)
        self.run()

    def turn(self) -> None:
        """What is due, and what was to be told."""
        self.lines.tick(self._path.now)
        self.run()
        while self._soon:
            self._soon.popleft()()

    # -- what lines and runners need -------------------------------------------------------------------------

    def incarnation(self, address: str) -> int:
        wire = self.wires.get(address.partition(":")[0])
        return wire.number if wire is not None else 0

    def start(self, step: Single, done: Callable[[Any], None]) -> Call:
        assert isinstance(step, Ask)
        call = self.lines.start(step, done, self._path.now)
        self.run()
        return call

    def cancel(self, call: Call) -> None:
        raise AssertionError


class SendPath:
    """All of them. Whatever happens happens when the walk says so."""

    def __init__(self, dice: Random, *, ordered: bool = True) -> None:
        self.dice = dice
        self.settings = Settings(dice)
        self.now = 0.0
        self.queue_settings = QueueSettings(
            ordering="fifo" if ordered else "best-effort",
            partitions=PARTITIONS,
            replicas=2,
            deduplication_window_ms=self.settings.window_ms,
        )
        self.partitions = [Partition(dice, ordinal, self.queue_settings) for ordinal in range(PARTITIONS)]
        for partition in self.partitions:
            partition.lead(dice.choice(NODES), self.now_ms)
        self._orders = {node: SendOrder() for node in NODES}
        self._numbers = 0
        self.old: list[Wire] = []
        """Connections that are gone, with requests that nodes read all the same."""
        self.front_ends = [FrontEnd(self, 99 + place) for place in range(self.settings.front_ends)]
        self.clients = [Client(self, 1_000 + place) for place in range(self.settings.clients)]

    @property
    def now_ms(self) -> int:
        return START_MS + int(self.now * 1_000)

    def number(self) -> int:
        """Of a connection, or a front end."""
        self._numbers += 1
        return self._numbers

    def refuse(self, likelihood: float, codes: tuple[ErrorCode, ...]) -> None:
        """Raises now and then."""
        if self.dice.random() < likelihood:
            raise PenstockError(self.dice.choice(codes), "not now")

    def break_off(self, front_end: FrontEnd, node: str, *, told: bool = True) -> None:
        """A connection to a node is gone; what was written to it may arrive or not."""
        wire = front_end.wires.pop(node, None)
        if wire is None:
            return
        wire.alive = False
        if self.dice.random() < 0.5:
            self.old.append(wire)
        for sent in wire.unanswered if told else ():
            front_end.answered(sent, LOST)

    def read(self, wire: Wire) -> None:
        """A node reads a request."""
        sent = wire.requests.popleft()
        partition = self.partitions[sent.call.ask.partition - 2]
        try:
            if wire.node != partition.leader:
                raise PenstockError(ErrorCode.NOT_PRIMARY, "another node leads it")
            outcome = self._carried_out(wire, partition.rig, sent.request, sent.call.ask.body)
        except PenstockError as error:
            wire.answer(sent, error)
        else:
            partition.answers(wire, sent, outcome)

    def _carried_out(self, wire: Wire, rig: Rig, request: Request, body: Buffer) -> Outcome:
        match request:
            case ClaimIds(_, ids, owners, instead_of):
                claims = rig.carry_out(id_claims.claim(rig.partition, ids, owners, instead_of, self.now_ms))
                return Reply(ClaimedIds(claims.owners, claims.versions))
            case FindIds(_, ids, versions, lift):
                found = id_claims.find(rig.partition, ids, versions, self.now_ms, lift=lift)
                return Reply(FoundIds(rig.carry_out(found)))
            case Send(_, producer, number, left_out=left_out):
                order, epoch = self._orders[wire.node], rig.partition.epochs.last
                order.check(wire.number, request, epoch)
                self.refuse(self.settings.refused_at_a_node, AT_A_NODE)
                if len(body):
                    batch = Batch(body)
                    decision = sending.admit(
                        rig.partition, batch, producer, number, self.now_ms, left_out=left_out
                    )
                else:
                    decision = sending.remember(rig.partition, producer, number, self.now_ms, left_out)
                admitted = rig.carry_out(decision)
                order.taken(wire.number, request, epoch)
                return Reply(SendResult(admitted.runs, admitted.duplicates, admitted.sent_ms))
            case _:
                raise AssertionError(request)
