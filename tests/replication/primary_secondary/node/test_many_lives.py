"""Many short lives of a cluster: machines crash, connections break, news come late, primaries are deposed at a whim.

Whatever happened: what was acknowledged is there once, what was deleted stays deleted, a batch that was sent again under
the same number is one batch, two consumers never hold a message at once, and all replicas are the same in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from penstock.model.batch import Batch, encode_parts
from penstock.model.runs import count_of
from penstock.replication.primary_secondary.core.primary import Primary
from penstock.replication.primary_secondary.node.leader.leader import Leader
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import NAMES, Cluster, Machine
from tests.replication.primary_secondary.node.test_failover import assert_same


@dataclass
class Asked:
    """A request under way."""

    machine: Machine
    life: int
    number: int
    what: str
    body: bytes = b""
    batch: int = 0
    runs: list[tuple[int, int]] = field(default_factory=list)


class World:
    """A cluster and one client of it, who is never told a lie."""

    def __init__(self, seed: int) -> None:
        self.cluster = Cluster(seed)
        self.random = self.cluster.random
        self.cluster.create(visibility_timeout_ms=2_000)
        self.cluster.settle(300)
        self.under_way: list[Asked] = []
        self.next_batch = 1
        self.to_send: Asked | None = None
        self.acknowledged: dict[int, bytes] = {}
        """By sequence number."""
        self.deleted: set[int] = set()
        self.maybe_deleted: set[int] = set()
        self.held: dict[int, int] = {}
        """Sequence number → until when a consumer holds it."""
        self.leases: list[tuple[bytes, list[tuple[int, int]]]] = []

    # -- the client ------------------------------------------------------------------------------------------

    def target(self) -> Machine | None:
        """Mostly who leads by the store, sometimes who believes to."""
        name = self.cluster.entry().primary if self.random.random() < 0.8 else self.random.choice(NAMES)
        machine = self.cluster.machines[name or "a"]
        return machine if machine.node is not None else None

    def send(self) -> None:
        machine = self.target()
        if machine is None or any(asked.what == "send" for asked in self.under_way):
            return
        if self.to_send is None:
            body = b"%d " % self.next_batch + b"." * self.random.choice((10, 10, 3_000))
            self.to_send = Asked(machine, 0, 0, "send", body, self.next_batch)
            self.next_batch += 1
        batch = self.to_send
        number = machine.request(messages.Send(1, 7, batch.batch), encode_parts([batch.body]))
        self.under_way.append(Asked(machine, machine.starts, number, "send", batch.body, batch.batch))

    def receive(self) -> None:
        machine = self.target()
        if machine is not None:
            number = machine.request(messages.Receive(1, self.random.choice((1, 3))))
            self.under_way.append(Asked(machine, machine.starts, number, "receive"))

    def delete(self) -> None:
        machine = self.target()
        if machine is not None and self.leases:
            token, runs = self.leases.pop(self.random.randrange(len(self.leases)))
            number = machine.request(messages.Delete([messages.Receipt(token, runs)]))
            sequences = [s for first, count in runs for s in range(first, first + count)]
            self.maybe_deleted.update(sequences)
            self.under_way.append(Asked(machine, machine.starts, number, "delete", runs=runs))

    def hear(self) -> None:
        for asked in list(self.under_way):
            if asked.life != asked.machine.starts or asked.machine.node is None:
                self.under_way.remove(asked)  # nobody will ever answer
            elif asked.number in asked.machine.answers:
                self.under_way.remove(asked)
                answer = asked.machine.answers.pop(asked.number)
                if not isinstance(answer, messages.Failed):
                    self.answered(asked, answer, asked.machine.bodies.pop(asked.number, b""))

    def answered(self, asked: Asked, answer: messages.Answer, body: bytes) -> None:
        now_ms = self.cluster.now_ms
        if isinstance(answer, messages.SendResult):
            [(first, _)] = answer.runs
            assert self.acknowledged.setdefault(first, asked.body) == asked.body
            if self.to_send is not None and self.to_send.batch == asked.batch:
                self.to_send = None
        elif isinstance(answer, messages.Delivery) and answer.batches:
            runs, offset = [], 0
            for head in answer.batches:
                batch = Batch(body[offset : offset + head.size])
                offset += head.size
                runs.append((head.first, head.count))
                for sequence, message in enumerate(batch.bodies(), head.first):
                    self.delivered(sequence, message, answer.until_ms, now_ms)
            self.leases.append((answer.token, runs))
        elif isinstance(answer, messages.Settled) and answer.outcomes[0].done == count_of(asked.runs):
            for first, count in asked.runs:
                self.deleted.update(range(first, first + count))
                for sequence in range(first, first + count):
                    self.held.pop(sequence, None)

    def delivered(self, sequence: int, body: bytes, until_ms: int, now_ms: int) -> None:
        assert self.acknowledged.get(sequence, body) == body, f"message {sequence} has another body"
        assert sequence not in self.deleted, f"message {sequence} was deleted and came back"
        assert self.held.get(sequence, 0) <= until_ms - 2_000, f"message {sequence} is held by two consumers"
        self.held[sequence] = until_ms

    # -- what goes wrong -------------------------------------------------------------------------------------

    def crash(self) -> None:
        machine = self.cluster.machines[self.random.choice(NAMES)]
        if machine.node is not None and self.random.random() < 0.3:
            machine.crash(power=self.random.random() < 0.7)

    def restart(self) -> None:
        machine = self.cluster.machines[self.random.choice(NAMES)]
        if machine.node is None:
            machine.start()

    def break_connection(self) -> None:
        one, other = self.random.sample(NAMES, 2)
        if self.random.random() < 0.3:
            self.cluster.cut(one, other)
            if self.random.random() < 0.5:
                self.cluster.parted.add(frozenset((one, other)))

    def mend_connections(self) -> None:
        self.cluster.parted.clear()

    def elect(self) -> None:
        """A manager acts when it must, and sometimes because it believes what is not so."""
        if self.cluster.needs_election() or self.random.random() < 0.05:
            self.cluster.elect(leader=self.random.choice(NAMES))

    # -- steps -----------------------------------------------------------------------------------------------

    def step(self) -> None:
        cluster, dice = self.cluster, self.random
        cluster.now_ms += dice.choice((0, 1, 5, 20, 150))
        dice.choice(
            (self.send, self.send, self.send, self.receive, self.receive, self.delete, self.crash, self.restart,
             self.break_connection, self.mend_connections, self.elect)
        )()  # fmt: skip
        cluster.connect()
        for machine in dice.sample(list(cluster.machines.values()), 3):
            if dice.random() < 0.7:
                cluster.hear(machine, dice.choice((0, 1, 9)))
            if dice.random() < 0.8:
                machine.turn(work=0.5)
            if dice.random() < 0.6:
                cluster.propose(machine, lost=0.1)
        for pair in list(cluster.pipes):
            cluster.deliver(pair, dice.choice((0, 1, 2, 9)))
        self.hear()

    def heal(self) -> None:
        """Everything works again; then everything is received."""
        self.cluster.parted.clear()
        for machine in self.cluster.machines.values():
            if machine.node is None:
                machine.start()
        for _ in range(60):
            self.cluster.settle(100)
            self.hear()
        self.cluster.settle(4_000)
        self.hear()
        entry = self.cluster.entry()
        assert entry.serving == entry.epoch
        assert sorted(entry.in_sync) == list(NAMES), entry
        assert_same(self.cluster)
        left = self.drain()
        for sequence, body in self.acknowledged.items():
            if sequence not in self.maybe_deleted:
                assert left.get(sequence) == body, f"message {sequence} was acknowledged and is lost"
        assert not self.deleted & left.keys()
        assert len(set(left.values())) == len(left), "a batch is there twice"

    def drain(self) -> dict[int, bytes]:
        machine = self.cluster.leader
        found: dict[int, bytes] = {}
        for _ in range(200):
            number = machine.request(messages.Receive(1, 100))
            while number not in machine.answers:
                self.cluster.settle(20)
            answer, body = machine.answers.pop(number), machine.bodies.pop(number)
            assert isinstance(answer, messages.Delivery), answer
            offset = 0
            for head in answer.batches:
                batch = Batch(body[offset : offset + head.size])
                offset += head.size
                for sequence, message in enumerate(batch.bodies(), head.first):
                    assert sequence not in found
                    found[sequence] = message
            if not answer.batches:
                return found
        raise AssertionError("there is no end of messages")


@pytest.mark.parametrize("seed", range(60))
def test_nothing_acknowledged_is_lost(seed: int) -> None:
    live(seed)


def live(seed: int) -> None:
    world = World(seed)
    for _ in range(world.random.choice((60, 150, 300))):
        world.step()
    world.heal()


@pytest.mark.parametrize("rule", ["answers wait for the commitment", "a commitment waits for the replicas"])
def test_a_broken_rule_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test above is known to be able to fail."""
    if rule == "answers wait for the commitment":
        monkeypatch.setattr(Leader, "is_committed", lambda self, need: True)
    else:

        def commit(primary: Primary) -> None:
            primary._committed = max(primary._committed, primary._flushed)

        monkeypatch.setattr(Primary, "_commit", commit)
    for seed in range(120):
        try:
            live(seed)
        except AssertionError:
            return
    raise AssertionError(f"nobody noticed that the rule is broken: {rule}")
