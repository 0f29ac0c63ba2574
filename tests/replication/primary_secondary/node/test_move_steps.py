"""The steps of a move from queue to queue: each waits for the one before, and none is lost where the journal has no room."""

from __future__ import annotations

import pytest

from penstock.backend.node.logbook import busy
from penstock.model.batch import encode_parts
from penstock.replication.primary_secondary.node.moves.cluster_moves import RETRY_MS
from penstock.storage.errors import JournalBusyError, JournalExhaustedError, StorageError
from penstock.wire import messages
from tests.backend.busy_journal import BusyJournal, at_every_append
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_failover import assert_same
from tests.replication.primary_secondary.node.test_many_journeys import everything

SOURCE, TARGET, DELAYED = 1, 2, 3


def send(cluster: Cluster, partition: int, bodies: list[bytes], **columns: object) -> None:
    batch = encode_parts(bodies, **columns)  # type: ignore[arg-type]  # as the caller names them
    assert isinstance(cluster.ask(messages.Send(partition), batch, partition), messages.SendResult)


def pump(cluster: Cluster, milliseconds: int, *, without: frozenset[str] = frozenset()) -> None:
    """Time passes, and nobody is elected; what would go between two nodes stays where it is."""
    for _ in range(milliseconds // 5):
        cluster.now_ms += 5
        for machine in cluster.machines.values():
            cluster.hear(machine)
            machine.turn()
            cluster.propose(machine)
        for pair in list(cluster.pipes):
            if frozenset(pair) != without:
                cluster.deliver(pair)


def test_what_moves_to_an_async_queue_is_not_lost_with_its_primary() -> None:
    cluster = Cluster()
    cluster.create("target", TARGET, ("b", "c"), replication="async")
    cluster.create("source", SOURCE, ("a",))
    cluster.settle(800)
    send(cluster, SOURCE, [b"one", b"two"])
    cluster.serving(SOURCE).request(messages.Redrive(SOURCE, "target"))
    pump(
        cluster, 500, without=frozenset("bc")
    )  # c hears nothing of what b takes in, and is in sync for all that is known
    node = cluster.machines["b"].node
    assert node is not None
    assert node.replication.state.parts.catalogue.partitions[TARGET].table.messages == 2, "b has them, alone"
    assert "c" in cluster.entry(TARGET).in_sync
    cluster.machines["b"].crash()
    assert cluster.elect(TARGET, "c")
    cluster.settle(3_000)
    found = everything(cluster, SOURCE) + everything(cluster, TARGET)
    assert sorted(found) == [b"one", b"two"]


def test_what_moves_from_an_async_queue_is_not_doubled_when_its_primary_is_lost() -> None:
    cluster = Cluster()
    cluster.create("target", TARGET, ("a",))
    cluster.create("source", SOURCE, ("b", "c"), replication="async")
    cluster.settle(800)
    send(cluster, SOURCE, [b"one", b"two"])
    cluster.settle(500)
    cluster.serving(SOURCE).request(messages.Redrive(SOURCE, "target"))
    pump(cluster, 500, without=frozenset("bc"))
    cluster.machines["b"].crash()
    assert cluster.elect(SOURCE, "c")
    cluster.settle(3_000)
    found = everything(cluster, SOURCE) + everything(cluster, TARGET)
    assert sorted(found) == [b"one", b"two"]


def test_a_move_that_is_abandoned_though_the_journal_has_no_room_is_abandoned_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    cluster.create("target", TARGET, ("b", "a", "c"))
    cluster.create(
        "source",
        SOURCE,
        dead_letter_queue="target",
        max_receives=1,
        visibility_timeout_ms=100,
        default_ttl_ms=None,
    )
    cluster.settle(500)
    send(cluster, SOURCE, [b"one"])
    cluster.parted = {frozenset("ab")}
    cluster.cut("a", "b")
    cluster.ask(messages.Receive(SOURCE, 1))
    cluster.settle(1_000)
    node = cluster.serving(SOURCE).node
    assert node is not None
    parts = node.replication.state.parts
    assert parts.catalogue.partitions[SOURCE].moves, "it is on its way"

    def no_room(*arguments: object) -> None:
        raise busy()

    with monkeypatch.context() as full:
        full.setattr(parts.logbook, "write", no_room)
        cluster.delete(TARGET)  # there is nowhere to go any more
        cluster.settle(RETRY_MS * 3)
        assert parts.catalogue.partitions[SOURCE].moves
    cluster.settle(RETRY_MS * 3)
    assert not parts.catalogue.partitions[SOURCE].moves
    delivery = cluster.ask(messages.Receive(SOURCE, 1))
    assert isinstance(delivery, messages.Delivery)
    assert sum(batch.count for batch in delivery.batches) == 1


def test_messages_move_while_others_keep_coming() -> None:
    """Something of the source is always on its way to the replicas; what has to leave does not wait for a pause."""
    cluster = Cluster()
    cluster.create("target", TARGET, ("b", "c", "a"))
    cluster.create("source", SOURCE)
    cluster.settle(500)
    send(cluster, SOURCE, [b"letter"])
    machine = cluster.serving(SOURCE)
    machine.request(messages.Redrive(SOURCE, "target"))
    node = cluster.machines["b"].node
    assert node is not None
    arrived = node.replication.state.parts.catalogue.partitions[TARGET].table
    for _ in range(300):
        cluster.now_ms += 5
        for one in cluster.machines.values():
            if one is machine:
                one.request(messages.Send(SOURCE), encode_parts([b"more"]))
            one.turn()
            cluster.propose(one)
            cluster.hear(one)
        for pair in list(cluster.pipes):
            cluster.deliver(pair)
    assert arrived.messages == 1


# -- at every append -----------------------------------------------------------------------------------------


def redriven_and_deleted(journal: BusyJournal) -> None:
    cluster = Cluster()
    cluster.create("target", TARGET, ("b", "c", "a"))
    cluster.create("source", SOURCE)
    cluster.create("later", DELAYED, ("c", "a", "b"), dead_letter_queue="target")
    cluster.settle(600)
    send(cluster, SOURCE, [b"one", b"two"])
    send(cluster, SOURCE, [b"three"])
    send(cluster, DELAYED, [b"four"], delays_ms=[600_000])
    cluster.settle(200)
    journal.arm()
    machine = cluster.serving(SOURCE)
    while True:
        number = machine.request(messages.Redrive(SOURCE, "target"))
        cluster.settle(200)
        answer = machine.answers[number]
        if isinstance(answer, messages.Redriven):
            break
        assert isinstance(answer, messages.Failed)
    cluster.delete(SOURCE)
    cluster.delete(DELAYED)
    cluster.settle(1_600)
    journal.disarm()
    cluster.settle(400)
    assert sorted(everything(cluster, TARGET)) == [b"four", b"one", b"three", b"two"]
    for partition in (SOURCE, DELAYED):
        assert cluster.holders(partition) == []
    assert_same(cluster, TARGET)


def died_and_came_back(journal: BusyJournal) -> None:
    """Dead letters arrive, are redriven to a queue that is gone, and stay."""
    cluster = Cluster()
    cluster.create("target", TARGET, ("b", "c", "a"))
    cluster.create("gone", DELAYED, ("c", "a", "b"))
    cluster.create("source", SOURCE, dead_letter_queue="target", max_receives=1, visibility_timeout_ms=100)
    cluster.settle(600)
    send(cluster, SOURCE, [b"one", b"two"])
    cluster.ask(messages.Receive(SOURCE, 10))
    journal.arm()
    cluster.settle(1_000)
    machine = cluster.serving(TARGET)
    machine.request(messages.Redrive(TARGET, "gone"))
    cluster.delete(DELAYED)
    cluster.settle(1_500)
    journal.disarm()
    cluster.settle(400)
    found = everything(cluster, TARGET) + everything(cluster, SOURCE)
    if not cluster.entry(DELAYED).retired:
        found += everything(cluster, DELAYED)
    assert sorted(found) == [b"one", b"two"]
    for partition in (SOURCE, TARGET):
        assert_same(cluster, partition)


@pytest.mark.parametrize("error", [JournalBusyError, JournalExhaustedError])
@pytest.mark.parametrize("scenario", [redriven_and_deleted, died_and_came_back])
def test_whichever_append_of_whichever_node_finds_no_room_nothing_is_lost_or_doubled(
    scenario: object, error: type[StorageError]
) -> None:
    assert callable(scenario)
    assert at_every_append(scenario, error=error) >= 10
