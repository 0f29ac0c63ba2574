"""What the store decided counts once, however often a node has to try to act upon it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import msgspec
import pytest

from penstock.backend.node.logbook import busy
from penstock.model.batch import encode_parts
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster, Machine


@contextmanager
def no_room(machine: Machine) -> Iterator[None]:
    """The journal has no room for a moment."""
    assert machine.node is not None
    logbook = machine.node.replication.state.parts.logbook
    real = logbook.write

    def refuse(partition: Partition, decided: Iterable[PendingRecord]) -> None:
        raise busy()

    logbook.write = refuse  # type: ignore[method-assign]  # of this object alone
    try:
        yield
    finally:
        logbook.write = real  # type: ignore[method-assign]  # as it was


def part(cluster: Cluster, node: str) -> None:
    """A node can reach no other."""
    for other in cluster.machines:
        if other != node:
            cluster.parted.add(frozenset((node, other)))
            cluster.cut(node, other)


def turns(cluster: Cluster, until: Callable[[], bool], deaf: Machine | None = None) -> None:
    """Time passes; one machine may hear nothing of the layout, and what nodes want is not asked of the store."""
    for _ in range(200):
        cluster.now_ms += 5
        for machine in cluster.machines.values():
            if machine is not deaf:
                cluster.hear(machine)
            machine.turn()
        for pair in list(cluster.pipes):
            cluster.deliver(pair)
        if until():
            return


@pytest.mark.parametrize(("nodes", "least"), [(("a", "b", "c"), 2), (("a", "b"), 1)])
def test_settings_that_find_no_room_do_not_undo_a_wanted_growth_of_the_in_sync_set(
    nodes: tuple[str, ...], least: int
) -> None:
    """Else a message is acknowledged without a replica that the store has in sync, and which may be elected."""
    cluster = Cluster(seed=5)
    cluster.create(nodes=nodes, min_in_sync=least)
    cluster.settle(800)
    a, last = cluster.machines["a"], nodes[-1]
    part(cluster, last)
    a.request(messages.Send(1), encode_parts([b"first"]))
    cluster.settle(4000)
    assert last not in cluster.entry().in_sync
    entry = cluster.entry()
    settings = msgspec.structs.replace(entry.settings, visibility_timeout_ms=1234)
    with no_room(a):
        cluster.put(msgspec.structs.replace(entry, settings=settings))
        cluster.hear(a)
        cluster.parted.clear()
        cluster.connect()
        turns(cluster, lambda: bool(a.proposals), deaf=a)
        wanted = a.proposals.popleft()
        assert last in wanted.entry.in_sync
        cluster.put(wanted.entry)  # the store has it, and the primary has not heard of that yet
        a.heard.pop()
    a.turn()  # there is room again
    part(cluster, last)
    number = a.request(messages.Send(1), encode_parts([b"precious"]))
    turns(cluster, lambda: number in a.answers, deaf=a)
    acknowledged = isinstance(a.answers.get(number), messages.SendResult)
    for name in nodes[:-1]:
        cluster.machines[name].crash(power=True)
    cluster.parted.clear()
    cluster.settle(1500)
    assert cluster.entry().primary == last
    delivery = cluster.ask(messages.Receive(1, 10))
    assert isinstance(delivery, messages.Delivery)
    assert sum(head.count for head in delivery.batches) == 1 + acknowledged
    assert not acknowledged


def test_settings_that_find_no_room_do_not_open_a_partition_again_that_closes() -> None:
    """A primary that has asked for the word that its idle partition is closed takes nothing more."""
    cluster = Cluster(seed=5)
    cluster.create(idle_expiry_ms=60_000)
    cluster.settle(800)
    a = cluster.machines["a"]
    assert a.node is not None
    led = a.node.replication.state.led[1]
    with no_room(a):
        entry = cluster.entry()
        settings = msgspec.structs.replace(entry.settings, visibility_timeout_ms=1234)
        cluster.put(msgspec.structs.replace(entry, settings=settings))
        cluster.hear(a)
        assert a.node.replication.roles.is_waiting
        a.node.replication.leadership.close(led)
        a.turn()
    assert led.closes
    a.turn()
    assert led.closes
    assert not a.node.replication.roles.is_waiting
