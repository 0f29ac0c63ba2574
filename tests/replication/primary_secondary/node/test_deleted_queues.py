"""A deleted queue in a cluster: what is on its way from it arrives, whoever fails meanwhile; then every node drops it."""

from __future__ import annotations

import logging

import msgspec
import pytest

from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.replication.primary_secondary.node.leader.draining import EXPLAIN_MS
from penstock.replication.primary_secondary.node.moves.cluster_moves import HOMELESS_MS
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import NAMES, Cluster
from tests.replication.primary_secondary.node.test_failover import assert_same
from tests.replication.primary_secondary.node.test_many_journeys import everything
from tests.replication.primary_secondary.node.test_move_steps import send
from tests.replication.primary_secondary.node.test_settled_arrivals import part

MAIN, DEAD, AGAIN, OTHER = 1, 2, 3, 4
LETTERS = [b"one", b"two", b"three"]


def two_queues(seed: int = 3, **settings: object) -> Cluster:
    """`main`, led by b, and `dead`, led by a."""
    cluster = Cluster(seed)
    cluster.create("dead", DEAD, ("a", "b", "c"))
    cluster.create("main", MAIN, ("b", "a", "c"), **settings)
    cluster.settle(800)
    return cluster


def redrive(cluster: Cluster, messages_in_all: int) -> None:
    redriven = cluster.ask(messages.Redrive(DEAD, "main", 100, 0), partition=DEAD)
    assert redriven == messages.Redriven(messages_in_all, None)


def parted_then_redriven_and_deleted() -> Cluster:
    """Letters set out for a queue whose primary cannot be reached, and then their own queue is deleted."""
    cluster = two_queues()
    send(cluster, DEAD, LETTERS)
    part(cluster, "a", "b")
    # b, which the others cannot confirm anything to, leads `main` and follows nobody: the letters cannot arrive.
    redrive(cluster, 3)
    cluster.delete(DEAD)
    return cluster


def test_redriven_messages_arrive_though_their_queue_is_deleted_before_they_can() -> None:
    cluster = parted_then_redriven_and_deleted()
    cluster.settle(8_000)
    assert cluster.holders(DEAD) == ["a", "b", "c"], "messages of it are on their way"
    assert everything(cluster, MAIN) == []
    cluster.parted.clear()
    cluster.settle(3_000)
    assert sorted(everything(cluster, MAIN)) == sorted(LETTERS)
    assert cluster.holders(DEAD) == []
    assert cluster.entry(DEAD).retired
    assert cluster.entry(DEAD).leaving == []
    assert_same(cluster, MAIN)


def test_a_deleted_queue_serves_nobody_while_it_waits_and_says_why_it_does() -> None:
    cluster = parted_then_redriven_and_deleted()
    cluster.settle(EXPLAIN_MS + 2_000)
    entry = cluster.entry(DEAD)
    assert entry.reason.startswith("the queue dead is deleted and waits: 3 messages are on the way to main")
    assert "b, its primary, is not connected" in entry.reason
    machine = cluster.machines[entry.primary or ""]
    for request in (
        messages.Receive(DEAD, 1),
        messages.Purge(DEAD),
        messages.Peek(DEAD),
        messages.Send(DEAD),
    ):
        number = machine.request(request, encode_parts([b"x"]) if isinstance(request, messages.Send) else b"")
        cluster.settle(100)
        refused = machine.answers[number]
        assert isinstance(refused, messages.Failed)
        assert refused.code == ErrorCode.NOT_PRIMARY


def test_the_reason_is_not_written_all_the_time() -> None:
    cluster = parted_then_redriven_and_deleted()
    cluster.settle(6_000)
    version = cluster.entries[DEAD][1]
    cluster.settle(30_000, step_ms=50)
    assert cluster.entries[DEAD][1] == version, "nothing has changed"


@pytest.mark.parametrize("leader", ["b", "c"])
def test_whoever_leads_next_goes_on_with_the_deletion(leader: str) -> None:
    cluster = parted_then_redriven_and_deleted()
    cluster.settle(1_000)
    part(cluster, "b", "c")
    cluster.machines["a"].crash()
    assert cluster.elect(DEAD, leader)
    cluster.settle(2_000)
    cluster.parted.clear()
    cluster.machines["a"].start()
    cluster.settle(6_000)
    assert sorted(everything(cluster, MAIN)) == sorted(LETTERS)
    assert cluster.holders(DEAD) == []


def test_delayed_messages_of_a_deleted_queue_go_to_its_dead_letter_queue() -> None:
    cluster = two_queues(dead_letter_queue="dead")
    send(cluster, MAIN, [b"now"])
    send(cluster, MAIN, [b"later", b"much later"], delays_ms=[60_000, 90_000])
    cluster.delete(MAIN)
    cluster.settle(2_000)
    assert sorted(everything(cluster, DEAD)) == [b"later", b"much later"]
    assert cluster.holders(MAIN) == []
    peeked = cluster.ask(messages.Peek(DEAD), partition=DEAD)
    assert isinstance(peeked, messages.Peeked)
    assert {head.origin.reason for head in peeked.batches if head.origin} == {"queue-deleted"}


def test_a_queue_that_goes_because_nobody_used_it_loses_nothing_either() -> None:
    """All of its partitions are closed when the manager deletes it."""
    cluster = two_queues(dead_letter_queue="dead", idle_expiry_ms=60_000)
    send(cluster, MAIN, [b"later"], delays_ms=[600_000])
    entry = cluster.entry(MAIN)
    cluster.put(msgspec.structs.replace(entry, idle=entry.epoch, expiry="closed"))
    cluster.settle(500)
    cluster.delete(MAIN)
    cluster.settle(2_000)
    assert everything(cluster, DEAD) == [b"later"]
    assert cluster.holders(MAIN) == []


@pytest.mark.parametrize("gone", [False, True])
def test_a_deletion_goes_on_after_a_hand_over(gone: bool) -> None:
    """Its primary's node is to be emptied while messages of it are on their way."""
    cluster = parted_then_redriven_and_deleted()
    part(cluster, "b", "c")
    cluster.settle(2_000)
    cluster.put(msgspec.structs.replace(cluster.entry(DEAD), hand_over_to="c"))
    cluster.settle(1_000)
    assert cluster.entry(DEAD).primary == "c"
    if gone:
        cluster.machines["a"].crash()
        cluster.settle(2_000)
        cluster.machines["a"].start()
    cluster.parted.clear()
    cluster.settle(6_000)
    assert sorted(everything(cluster, MAIN)) == sorted(LETTERS)
    assert cluster.holders(DEAD) == []


def test_a_queue_of_the_same_name_lives_while_the_old_one_drains() -> None:
    cluster = parted_then_redriven_and_deleted()
    cluster.create("dead", AGAIN, ("c", "a", "b"))
    cluster.settle(3_000)
    assert cluster.holders(DEAD) == ["a", "b", "c"]
    send(cluster, AGAIN, [b"new"])
    described = cluster.ask(messages.DescribeQueue("dead"), partition=AGAIN)
    assert isinstance(described, messages.QueueDescription)
    assert described.queue_id == AGAIN
    cluster.machines["c"].crash()  # whoever starts again knows which of the two has the name
    cluster.settle(200)
    cluster.machines["c"].start()
    cluster.parted.clear()
    cluster.settle(6_000)
    assert everything(cluster, AGAIN) == [b"new"]
    assert sorted(everything(cluster, MAIN)) == sorted(LETTERS)
    assert cluster.holders(DEAD) == []


def test_a_replica_of_a_deleted_queue_that_is_made_late_does_not_take_the_name() -> None:
    cluster = Cluster(3)
    cluster.create("dead", DEAD, ("a", "b"))
    cluster.create("main", MAIN, ("b",))
    cluster.settle(800)
    send(cluster, DEAD, LETTERS)
    part(cluster, "a", "b")
    assert cluster.ask(messages.Redrive(DEAD, "main", 100, 0), partition=DEAD) is not None
    cluster.delete(DEAD)
    cluster.create("dead", AGAIN, ("c",))
    cluster.settle(1_000)
    entry = cluster.entry(DEAD)  # the manager makes another replica of what has to wait
    cluster.put(msgspec.structs.replace(entry, replicas=[*entry.replicas, "c"]))
    cluster.settle(2_000)
    assert "c" in cluster.holders(DEAD)
    described = cluster.ask(messages.DescribeQueue("dead"), partition=AGAIN)
    assert isinstance(described, messages.QueueDescription)
    assert described.queue_id == AGAIN


def test_what_goes_to_a_queue_that_is_deleted_too_goes_with_its_own(caplog: pytest.LogCaptureFixture) -> None:
    cluster = two_queues(dead_letter_queue="dead")
    send(cluster, MAIN, [b"later"], delays_ms=[60_000])
    cluster.delete(DEAD)
    cluster.settle(500)
    with caplog.at_level(logging.WARNING):
        cluster.delete(MAIN)
        cluster.settle(HOMELESS_MS - 1_000)
        assert cluster.holders(MAIN) == ["a", "b", "c"], "it may just be made again"
        cluster.settle(3_000)
    assert cluster.holders(MAIN) == []
    assert caplog.text.count("deleted 1 messages with queue 'main'") == 1


def test_what_goes_to_a_queue_that_is_made_again_soon_arrives_there() -> None:
    cluster = two_queues(dead_letter_queue="dead")
    send(cluster, MAIN, [b"later"], delays_ms=[60_000])
    cluster.delete(DEAD)
    cluster.settle(500)
    cluster.delete(MAIN)
    cluster.settle(HOMELESS_MS - 1_000)
    cluster.create("dead", AGAIN, ("c", "a", "b"))
    cluster.settle(3_000)
    assert everything(cluster, AGAIN) == [b"later"]
    assert cluster.holders(MAIN) == []


def test_a_target_that_this_version_cannot_read_is_not_missing() -> None:
    cluster = two_queues(dead_letter_queue="dead")
    send(cluster, MAIN, [b"later"], delays_ms=[60_000])
    known = cluster.entries[DEAD]
    for machine in cluster.machines.values():
        assert machine.node is not None
        machine.node.replication.partition_gone(DEAD, cluster.now_ms, unreadable=True)
    cluster.delete(MAIN)
    cluster.settle(HOMELESS_MS + 5_000)
    assert cluster.holders(MAIN) == ["a", "b", "c"]
    cluster.put(known[0])  # upgraded
    cluster.settle(200)
    assert cluster.elect(DEAD)
    cluster.settle(3_000)
    assert everything(cluster, DEAD) == [b"later"]
    assert cluster.holders(MAIN) == []


def test_what_cannot_be_reached_holds_up_nothing_that_goes_elsewhere() -> None:
    cluster = two_queues()
    cluster.create("other", OTHER, ("c", "a", "b"))
    cluster.settle(500)
    send(cluster, DEAD, [b"for main", b"for other"])
    part(cluster, "a", "b")
    for target, first in (("main", 1), ("other", 2)):
        request = messages.Redrive(DEAD, target, 1, 0, [(first, 1)])
        assert cluster.ask(request, partition=DEAD) == messages.Redriven(1, None)
    cluster.settle(3_000)
    assert everything(cluster, OTHER) == [b"for other"]
    assert everything(cluster, MAIN) == []


def live(cluster: Cluster, steps: int, deleted: int) -> None:
    """Machines crash, connections break and elections are held; in the middle of it a queue is deleted."""
    dice = cluster.random
    for step in range(steps):
        cluster.now_ms += dice.choice((1, 20, 100))
        if step == deleted:
            cluster.delete(DEAD)
            cluster.delete(MAIN)
        if dice.random() < 0.05:
            cluster.machines[dice.choice(NAMES)].crash(power=dice.random() < 0.5)
        if dice.random() < 0.15:
            down = cluster.machines[dice.choice(NAMES)]
            if down.node is None:
                down.start()
        if dice.random() < 0.08:
            cluster.cut(*dice.sample(NAMES, 2))
        for partition in (MAIN, DEAD, OTHER):
            entry = cluster.entry(partition)
            if entry.replicas and (cluster.needs_election(partition) or dice.random() < 0.03):
                cluster.elect(partition, dice.choice(NAMES))
        cluster.connect()
        for one in dice.sample(list(cluster.machines.values()), 3):
            cluster.hear(one, dice.choice((0, 1, 9)))
            one.turn(work=0.6)
            cluster.propose(one, lost=0.05)
        for pair in list(cluster.pipes):
            cluster.deliver(pair, dice.choice((0, 1, 9)))


@pytest.mark.parametrize("replication", ["sync", "async"])
@pytest.mark.parametrize("seed", range(20))
def test_through_failovers_all_that_has_to_leave_a_deleted_queue_arrives_once(
    seed: int, replication: str
) -> None:
    """Letters of `dead` are on their way to `other`, and `main` has delayed messages, whose dead-letter queue is `other`."""
    cluster = Cluster(seed)
    cluster.create("other", OTHER, ("c", "a", "b"), replication=replication)
    cluster.create("dead", DEAD, ("a", "b", "c"))
    cluster.create("main", MAIN, ("b", "a", "c"), dead_letter_queue="other")
    cluster.settle(800)
    letters = [b"letter %d" % number for number in range(40)]
    delayed = [b"delayed %d" % number for number in range(20)]
    for body in letters:
        send(cluster, DEAD, [body])
    for body in delayed:
        send(cluster, MAIN, [body], delays_ms=[600_000])
    send(cluster, MAIN, [b"now"])
    redriven = cluster.ask(messages.Redrive(DEAD, "other", 100, 0), partition=DEAD)
    assert redriven == messages.Redriven(40, None)
    live(cluster, 150, deleted=cluster.random.randrange(40))
    for machine in cluster.machines.values():
        if machine.node is None:
            machine.start()
    cluster.settle(20_000, step_ms=50)
    assert sorted(everything(cluster, OTHER)) == sorted(letters + delayed)
    for partition in (MAIN, DEAD):
        assert cluster.holders(partition) == []
        assert cluster.entry(partition).leaving == []
    assert_same(cluster, OTHER)
