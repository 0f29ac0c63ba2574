"""Queues of a cluster that nobody uses: deleted when every partition was idle, never when one was used a moment ago.

The nodes and the rules of the manager are the product; who carries the manager's changes to the store is here, late if the
dice say so, and twice, as if an old manager did not know yet that there is another one.
"""

from __future__ import annotations

import msgspec
import pytest

from penstock.cluster.layout.changes import Change
from penstock.cluster.layout.entries import (
    PARTITIONS,
    PartitionEntry,
    QueueEntry,
    encode,
    partition_key,
    queue_key,
)
from penstock.cluster.layout.view import ClusterView
from penstock.cluster.manager.idle_expiry import expire_idle
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import NAMES, Cluster

EXPIRY_MS = 5_000


class IdleQueue:
    """The queue's entry, and managers that may be behind what is in the store."""

    def __init__(self, cluster: Cluster, partitions: int = 1) -> None:
        self.cluster = cluster
        settings = QueueSettings(replicas=3, partitions=partitions, idle_expiry_ms=EXPIRY_MS)
        numbers = list(range(1, partitions + 1))
        for ordinal, number in enumerate(numbers):
            nodes = [NAMES[(ordinal + place) % 3] for place in range(3)]
            own = QueueSettings(replicas=3, idle_expiry_ms=EXPIRY_MS)
            cluster.create_partition("q", number, nodes, own, queue_id=100, ordinal=ordinal)
        self.queue = QueueEntry(
            name="q", queue_id=100, settings=settings, created_ms=cluster.now_ms, partitions=numbers
        )
        self.version = 1
        self.used_ms = cluster.now_ms

    @property
    def state(self) -> str:
        """Of the queue."""
        return self.queue.state

    def view(self) -> ClusterView:
        view = ClusterView()
        now_ms = self.cluster.now_ms
        view.apply(queue_key("q"), encode(self.queue), self.version, now_ms)
        for number, (entry, version) in self.cluster.entries.items():
            view.apply(partition_key(number), encode(entry), version, now_ms)
        return view

    def write(self, change: Change) -> None:
        """On condition of its version, as the store does it."""
        if change.key.startswith(PARTITIONS):
            number = int(change.key.removeprefix(PARTITIONS))
            assert isinstance(change.entry, PartitionEntry)
            if self.cluster.entries[number][1] == change.version:
                self.cluster.put(change.entry)
        elif change.version == self.version:
            assert isinstance(change.entry, QueueEntry)
            if change.entry.state == "deleting":
                assert self.cluster.now_ms - self.used_ms >= EXPIRY_MS, "it has just been used"
            self.queue, self.version = change.entry, self.version + 1

    def settle(self, milliseconds: int) -> None:
        """Time passes, and a manager does what is to be done."""
        end_ms = self.cluster.now_ms + milliseconds
        while self.cluster.now_ms < end_ms and self.queue.state == "ready":
            self.cluster.settle(100)
            for change in expire_idle(self.view()):
                self.write(change)

    def use(self, number: int) -> None:
        """Somebody sends, and tries again where nobody takes it."""
        for _ in range(100):
            machine = self.cluster.serving(number)
            request = machine.request(messages.Send(number), bytes(encode_parts([b"x"])))
            self.cluster.settle(60)
            answer = machine.answers.get(request)
            if isinstance(answer, messages.SendResult):
                self.used_ms = self.cluster.now_ms
                return
            assert isinstance(answer, messages.Failed)
            assert answer.code == ErrorCode.NOT_PRIMARY
            self.settle(100)
        raise AssertionError("nobody took it")


def cluster_of(partitions: int = 1, seed: int = 1) -> tuple[Cluster, IdleQueue]:
    cluster = Cluster(seed)
    idle = IdleQueue(cluster, partitions)
    cluster.settle(500)
    return cluster, idle


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_queue_that_nobody_uses_is_deleted_once_its_time_is_up(partitions: int) -> None:
    _, idle = cluster_of(partitions)
    idle.settle(EXPIRY_MS - 1_000)
    assert (idle.state, idle.queue.expiring) == ("ready", False)
    idle.settle(4_000)
    assert idle.state == "deleting"


def test_a_use_of_one_partition_keeps_all_of_them() -> None:
    cluster, idle = cluster_of(3)
    for _ in range(5):
        idle.settle(EXPIRY_MS // 2)
        idle.use(2)
    assert idle.state == "ready"
    assert cluster.entry(1).idle == cluster.entry(1).epoch, "it is idle, but not alone in its queue"
    idle.use(1)
    idle.settle(200)
    assert cluster.entry(1).idle == 0
    idle.settle(EXPIRY_MS + 3_000)
    assert idle.state == "deleting"


def test_a_waiting_receiver_is_a_user() -> None:
    cluster, idle = cluster_of()
    cluster.serving(1).request(messages.Receive(1, 1, wait_ms=20_000))
    idle.settle(15_000)
    assert idle.state == "ready"


def test_who_asks_for_a_partition_that_is_closed_already_finds_it_open_again() -> None:
    cluster, idle = cluster_of(2)
    for _ in range(200):
        cluster.settle(100)
        if "closed" in (cluster.entry(1).expiry, cluster.entry(2).expiry):
            break
        for change in expire_idle(idle.view()):
            idle.write(change)
    closed = 1 if cluster.entry(1).expiry == "closed" else 2
    idle.use(closed)
    assert idle.state == "ready"
    assert not idle.queue.expiring
    for number in (1, 2):
        idle.use(number)
        assert cluster.entry(number).expiry == ""


def test_a_failover_counts_as_a_use_and_opens_what_was_closed() -> None:
    cluster, idle = cluster_of(2)
    idle.settle(EXPIRY_MS - 500)
    cluster.elect(1, "b")
    idle.settle(EXPIRY_MS - 500)
    assert idle.state == "ready"
    for _ in range(200):
        cluster.settle(100)
        if cluster.entry(1).expiry == cluster.entry(2).expiry == "closed":
            break
        for change in expire_idle(idle.view()):
            idle.write(change)
    cluster.elect(1, "c")
    cluster.settle(1_000)
    machine = cluster.serving(1)
    request = machine.request(messages.Send(1), bytes(encode_parts([b"x"])))
    cluster.settle(100)
    refused = machine.answers[request]
    assert isinstance(refused, messages.Failed), (
        "whoever wants to delete the queue has seen that it was closed"
    )
    idle.use(1)
    assert idle.state == "ready"


def test_one_whose_setting_was_taken_away_stays() -> None:
    cluster, idle = cluster_of()
    for _ in range(200):
        cluster.settle(100)
        if idle.queue.expiring:
            break
        for change in expire_idle(idle.view()):
            idle.write(change)
    idle.queue = msgspec.structs.replace(idle.queue, settings=QueueSettings(replicas=3))
    idle.version += 1
    idle.settle(10_000)
    assert idle.state == "ready"
    idle.use(1)


@pytest.mark.parametrize("seed", range(8))
def test_with_managers_that_are_behind_nothing_is_deleted_that_was_just_used(seed: int) -> None:
    cluster, idle = cluster_of(2, seed)
    dice = cluster.random
    late: list[Change] = []
    for _ in range(250):
        if idle.state != "ready":
            break
        cluster.settle(dice.choice((20, 60, 200, 500)))
        late += expire_idle(idle.view())
        if dice.random() < 0.5:
            dice.shuffle(late)
            for _ in range(dice.randint(0, len(late))):
                idle.write(late.pop())
        if dice.random() < 0.04:
            cluster.elect(dice.choice((1, 2)), dice.choice(NAMES))
        if dice.random() < 0.1:
            number = dice.choice((1, 2))
            entry = cluster.entry(number)
            assert entry.primary is not None
            machine = cluster.machines[entry.primary]
            request = machine.request(messages.Send(number), bytes(encode_parts([b"x"])))
            cluster.settle(60)
            if isinstance(machine.answers.get(request), messages.SendResult):
                idle.used_ms = cluster.now_ms
        late = late[-20:]
    idle.settle(60_000)
    assert idle.state == "deleting", "in the end nobody uses it"
