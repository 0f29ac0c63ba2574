"""Dead letters that cross from node to node while machines crash: each is in exactly one queue when all is well again."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model.batch import Batch, encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.moves.cluster_moves import ClusterMoves
from penstock.replication.primary_secondary.node.moves.journey import Journey
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import NAMES, Cluster
from tests.replication.primary_secondary.node.test_failover import assert_same

SOURCE, TARGET = 1, 2


def everything(cluster: Cluster, partition: int) -> list[bytes]:
    """The bodies in a queue, by looking and not by taking."""
    found: list[bytes] = []
    start = 0
    for _ in range(100):
        machine = cluster.serving(partition)
        number = machine.request(messages.Peek(partition, start, 1_000))
        while number not in machine.answers:
            cluster.settle(20)
        answer, body = machine.answers.pop(number), machine.bodies.pop(number)
        assert isinstance(answer, messages.Peeked), answer
        offset = 0
        for head in answer.batches:
            found += Batch(body[offset : offset + head.size]).bodies()
            offset += head.size
        if answer.next is None:
            return found
        start = answer.next
    raise AssertionError("there is no end of messages")


def live(cluster: Cluster, acknowledged: set[bytes], steps: int) -> None:
    """Messages are sent and received once, which makes them dead letters, while things go wrong."""
    dice = cluster.random
    waiting: dict[int, bytes] = {}
    for step in range(steps):
        cluster.now_ms += dice.choice((1, 20, 100))
        entry = cluster.entry(SOURCE)
        machine = cluster.machines[entry.primary or "a"]
        if machine.node is not None and dice.random() < 0.4:
            body = b"message %d" % step
            waiting[machine.request(messages.Send(SOURCE), encode_parts([body]))] = body
        elif machine.node is not None and dice.random() < 0.5:
            machine.request(messages.Receive(SOURCE, 5))
        if dice.random() < 0.05:
            cluster.machines[dice.choice(NAMES)].crash(power=dice.random() < 0.5)
        if dice.random() < 0.15:
            down = cluster.machines[dice.choice(NAMES)]
            if down.node is None:
                down.start()
        if dice.random() < 0.05:
            cluster.cut(*dice.sample(NAMES, 2))
        for partition in (SOURCE, TARGET):
            if cluster.needs_election(partition) or dice.random() < 0.03:
                cluster.elect(partition, dice.choice(NAMES))
        cluster.connect()
        for one in dice.sample(list(cluster.machines.values()), 3):
            cluster.hear(one, dice.choice((0, 1, 9)))
            one.turn(work=0.6)
            cluster.propose(one, lost=0.05)
            for number in list(one.answers):
                if isinstance(one.answers[number], messages.SendResult) and number in waiting:
                    acknowledged.add(waiting.pop(number))
                    del one.answers[number]
        for pair in list(cluster.pipes):
            cluster.deliver(pair, dice.choice((0, 1, 9)))


@pytest.mark.parametrize(
    ("seed", "replication"),
    [*((seed, "sync") for seed in range(30)), *((seed, "async") for seed in range(30, 45))],
)
def test_a_message_on_its_way_is_in_one_queue(seed: int, replication: str) -> None:
    cluster = Cluster(seed)
    cluster.create("dead", TARGET, ("b", "c", "a"), replication=replication)
    cluster.create("q", SOURCE, NAMES, dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=100)
    cluster.settle(400)
    acknowledged: set[bytes] = set()
    live(cluster, acknowledged, cluster.random.choice((80, 200)))
    for machine in cluster.machines.values():
        if machine.node is None:
            machine.start()
    cluster.settle(15_000, step_ms=50)
    for partition in (SOURCE, TARGET):
        assert_same(cluster, partition)
    left, moved = everything(cluster, SOURCE), everything(cluster, TARGET)
    both = left + moved
    assert len(both) == len(set(both)), "a message is in both queues, or twice in one"
    assert acknowledged <= set(both), "a message is in neither"


def test_a_journey_ends_when_all_have_arrived_though_the_first_did_long_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    cluster.create("dead", TARGET, NAMES)
    cluster.create("q", SOURCE, NAMES, dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=100)
    cluster.settle(400)
    for body in (b"one", b"two"):
        assert isinstance(cluster.ask(messages.Send(SOURCE), encode_parts([body])), messages.SendResult)
    cluster.ask(messages.Receive(SOURCE, 5))
    refused = 0
    send = ClusterMoves._send

    def refuse_the_second_twice(
        self: ClusterMoves, journey: Journey, source: Partition, *rest: Any, **more: Any
    ) -> None:
        nonlocal refused
        piece = rest[1]
        if piece.first == 2 and refused < 2:
            refused += 1
            raise PenstockError(ErrorCode.UNREACHABLE, "the target's primary is not connected")
        send(self, journey, source, *rest, **more)

    monkeypatch.setattr(ClusterMoves, "_send", refuse_the_second_twice)
    cluster.settle(5_000)
    assert refused == 2
    assert everything(cluster, SOURCE) == []
    assert sorted(everything(cluster, TARGET)) == [b"one", b"two"]
