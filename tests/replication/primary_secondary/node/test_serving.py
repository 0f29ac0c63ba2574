"""Who serves when: epochs, leases of async partitions, replicas that are too few, requests that come to the wrong node."""

from __future__ import annotations

from collections import deque

import msgspec
import pytest

from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_failover import assert_same, send


def asked(cluster: Cluster, name: str, request: messages.Request, body: bytes = b"") -> messages.Answer:
    """The answer of one node, whoever leads."""
    machine = cluster.machines[name]
    number = machine.request(request, body)
    for _ in range(5):
        machine.turn()
    return machine.answers.pop(number)


def code_of(answer: messages.Answer) -> ErrorCode:
    assert isinstance(answer, messages.Failed), answer
    return ErrorCode(answer.code)


def test_a_replica_refuses_everything_but_being_described() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    send(cluster, b"one")
    delivery = cluster.ask(messages.Receive(1, 1))
    assert isinstance(delivery, messages.Delivery)
    receipt = messages.Receipt(delivery.token, [(1, 1)])
    for request, body in (
        (messages.Send(1), encode_parts([b"x"])),
        (messages.Receive(1, 1), b""),
        (messages.Peek(1), b""),
        (messages.Delete([receipt]), b""),
        (messages.Subscribe(1, 10), b""),
        (messages.Purge(1), b""),
    ):
        assert code_of(asked(cluster, "b", request, bytes(body))) is ErrorCode.NOT_PRIMARY
    described = asked(cluster, "b", messages.DescribeQueue("q"))
    assert isinstance(described, messages.QueueDescription)
    assert described.replica is not None
    assert (described.replica.role, described.replica.epoch) == ("secondary", 1)
    led = asked(cluster, "a", messages.DescribeQueue("q"))
    assert isinstance(led, messages.QueueDescription)
    assert led.replica is not None
    assert (led.replica.role, led.replica.behind) == ("primary", {"b": 0, "c": 0})
    node = asked(cluster, "b", messages.DescribeNode())
    assert isinstance(node, messages.NodeDescription)
    assert (node.node, node.leads, node.follows) == ("b", 0, 1)


@pytest.mark.parametrize(
    "request_",
    [
        messages.CreateQueue("other", QueueSettings()),
        messages.AlterQueue("q", {"delay_ms": 5}),
        messages.DeleteQueue("q"),
    ],
)
def test_queues_are_changed_in_the_layout_only(request_: messages.Request) -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    assert code_of(asked(cluster, "a", request_)) is ErrorCode.UNSUPPORTED


def test_sends_are_refused_below_the_least_in_sync_and_receives_go_on() -> None:
    cluster = Cluster()
    cluster.create(min_in_sync=2)
    cluster.settle(500)
    send(cluster, b"one")
    cluster.machines["b"].crash()
    cluster.machines["c"].crash()
    cluster.settle(2_500)
    assert cluster.entry().in_sync == ["a"]
    answer = cluster.ask(messages.Send(1), encode_parts([b"two"]))
    assert code_of(answer) is ErrorCode.NOT_ENOUGH_REPLICAS
    delivery = cluster.ask(messages.Receive(1, 10))
    assert isinstance(delivery, messages.Delivery)
    assert delivery.batches
    cluster.machines["b"].start()
    cluster.settle(2_000)
    send(cluster, b"two")


def test_an_async_primary_answers_alone_and_only_under_its_lease() -> None:
    cluster = Cluster()
    cluster.create(replication="async", min_in_sync=1)
    machine = cluster.machines["a"]
    assert machine.node is not None
    machine.node.replication.lease_renewed(cluster.now_ms + 10_000, cluster.now_ms)
    cluster.settle(500)
    cluster.parted = {frozenset("ab"), frozenset("ac")}
    for other in "bc":
        cluster.cut("a", other)
    answer = asked(cluster, "a", messages.Send(1), bytes(encode_parts([b"alone"])))
    assert isinstance(answer, messages.SendResult)
    cluster.now_ms += 10_000
    assert (
        code_of(asked(cluster, "a", messages.Send(1), bytes(encode_parts([b"late"]))))
        is ErrorCode.NOT_PRIMARY
    )
    machine.node.replication.lease_renewed(cluster.now_ms + 1_000, cluster.now_ms)
    answer = asked(cluster, "a", messages.Send(1), bytes(encode_parts([b"again"])))
    assert isinstance(answer, messages.SendResult)


def test_a_failover_of_an_async_partition_says_what_it_lost(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.create(replication="async", min_in_sync=1)
    for machine in cluster.machines.values():
        assert machine.node is not None
        machine.node.replication.lease_renewed(cluster.now_ms + 10**9, cluster.now_ms)
    cluster.settle(500)
    cluster.parted = {frozenset("ab"), frozenset("ac")}
    for other in "bc":
        cluster.cut("a", other)
    assert isinstance(
        asked(cluster, "a", messages.Send(1), bytes(encode_parts([b"lost", b"too"]))), messages.SendResult
    )
    cluster.elect(leader="b")
    cluster.settle(1_500)
    cluster.parted = set()
    cluster.settle(3_000)
    assert_same(cluster)
    assert "lost 2 messages" in caplog.text
    shown = asked(cluster, "b", messages.DescribeQueue("q"))
    assert isinstance(shown, messages.QueueDescription)
    assert shown.statistics.lost_total == 2


def test_an_epoch_that_a_former_life_used_is_not_led_again() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    machine = cluster.machines["a"]
    machine.crash()
    machine.start()
    # As if the manager had given it the same epoch again, for its new life.
    cluster.put(msgspec.structs.replace(cluster.entry(), primary_started_ms=machine.started_ms))
    cluster.hear(machine)
    assert machine.node is not None
    assert not machine.node.replication.state.led


def test_waiting_receivers_are_sent_away_when_the_primary_changes() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    machine = cluster.leader
    waiting = machine.request(messages.Receive(1, 1, wait_ms=20_000))
    subscription = machine.request(messages.Subscribe(1, 10))
    cluster.elect(leader="b")
    cluster.settle(300)
    for number in (waiting, subscription):
        assert code_of(machine.answers[number]) is ErrorCode.NOT_PRIMARY


def test_timers_run_on_the_primary_and_survive_it() -> None:
    cluster = Cluster()
    cluster.create(delay_ms=1_500)
    cluster.settle(500)
    send(cluster, b"later")
    cluster.leader.crash()
    cluster.settle(1_000)
    assert cluster.ask(messages.Receive(1, 1)) == messages.Delivery(b"", 0, [])
    cluster.settle(2_000)
    delivery = cluster.ask(messages.Receive(1, 1))
    assert isinstance(delivery, messages.Delivery)
    assert delivery.batches


def test_settings_that_are_changed_reach_every_replica() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    entry = cluster.entry()
    cluster.put(
        msgspec.structs.replace(entry, settings=msgspec.structs.replace(entry.settings, max_message_bytes=10))
    )
    cluster.settle(500)
    assert_same(cluster)
    answer = cluster.ask(messages.Send(1), encode_parts([b"x" * 11]))
    assert code_of(answer) is ErrorCode.MESSAGE_TOO_LARGE


def test_a_replica_that_always_trails_comes_in_and_a_stalled_primary_blames_nobody() -> None:
    """Sends never stop, and what is sent to `c` takes 100 ms to arrive: it is in sync all the same."""
    cluster = Cluster()
    cluster.create(min_in_sync=2)
    cluster.settle(500)
    cluster.machines["c"].crash()
    cluster.settle(2_500)
    assert cluster.entry().in_sync == ["a", "b"]
    cluster.machines["c"].start()
    late: deque[tuple[int, bytes]] = deque()
    leader = cluster.machines["a"]
    for _ in range(1_500):
        cluster.now_ms += 2
        cluster.connect()
        leader.request(messages.Send(1), bytes(encode_parts([b"more"])))
        for machine in cluster.machines.values():
            cluster.hear(machine)
            machine.turn()
            cluster.propose(machine)
        pipe = cluster.pipes["a", "c"]
        while pipe:
            late.append((cluster.now_ms + 100, pipe.popleft()))
        while late and late[0][0] <= cluster.now_ms:
            pipe.append(late.popleft()[1])
        for pair in list(cluster.pipes):
            cluster.deliver(pair)
        if "c" in cluster.entry().in_sync:
            break
    assert cluster.entry().in_sync == ["a", "b", "c"]
    late.clear()
    cluster.settle(300)
    # The primary stands still, and when it goes on it looks at the clock before it hears what the others said.
    leader.request(messages.Send(1), bytes(encode_parts([b"last"])))
    leader.turn()
    cluster.now_ms += 5_000
    leader.turn()
    leader.turn()
    assert not leader.proposals
    cluster.settle(300)
    assert cluster.entry().in_sync == ["a", "b", "c"]


def test_what_was_under_way_when_replicas_left_is_not_acknowledged_by_too_few() -> None:
    """`min_in_sync` is a promise about every acknowledged send; tried again, what was stored is not stored twice."""
    cluster = Cluster()
    cluster.create(min_in_sync=2)
    cluster.settle(500)
    cluster.machines["c"].crash()
    cluster.settle(2_500)
    cluster.parted = {frozenset("ab")}
    cluster.cut("a", "b")
    leader = cluster.machines["a"]
    number = leader.request(messages.Send(1, 7, 1), bytes(encode_parts([b"once"])))
    cluster.settle(4_000)
    assert cluster.entry().in_sync == ["a"]
    answer = leader.answers.pop(number)
    assert code_of(answer) is ErrorCode.UNREACHABLE
    again = cluster.ask(messages.Send(1, 7, 1), encode_parts([b"once"]))
    assert code_of(again) is ErrorCode.NOT_ENOUGH_REPLICAS
    delivery = cluster.ask(messages.Receive(1, 10, visibility_timeout_ms=0))
    assert isinstance(delivery, messages.Delivery), "receiving goes on"
    cluster.parted = set()
    cluster.settle(2_000)
    result = cluster.ask(messages.Send(1, 7, 1), encode_parts([b"once"]))
    assert isinstance(result, messages.SendResult)
    described = asked(cluster, "a", messages.DescribeQueue("q"))
    assert isinstance(described, messages.QueueDescription)
    assert described.statistics.sent_total == 1


def test_what_was_asked_about_a_partition_is_forgotten_with_it() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    cluster.machines["c"].crash()
    cluster.now_ms += 1_500
    leader = cluster.machines["a"]
    leader.turn()
    leader.turn()
    assert leader.node is not None
    proposer = leader.node.replication.proposer
    assert proposer._asked
    leader.node.replication.partition_gone(1, cluster.now_ms)
    assert not proposer._asked
    assert not leader.node.replication.take_proposals(cluster.now_ms + 1_000)
