"""Receives over several queues: by weight, waiting in several lines, and what becomes of them when a queue goes."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from penstock.model import limits
from penstock.model.batch import Batch
from penstock.model.runs import Runs
from penstock.storage.errors import DamagedEntryError
from penstock.storage.job import Job
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import Arrived, NodeHarness


class Taken(NamedTuple):
    """What one queue gave."""

    queue_id: int
    bodies: list[bytes]
    receipt: messages.Receipt


def taken(arrived: Arrived) -> list[Taken]:
    """Takes a group delivery apart."""
    answer = arrived.answer
    assert isinstance(answer, messages.GroupDelivery), answer
    found: list[Taken] = []
    offset = 0
    for delivery in answer.deliveries:
        bodies: list[bytes] = []
        runs: Runs = []
        for head in delivery.batches:
            bodies += Batch(arrived.body[offset : offset + head.size]).bodies()
            offset += head.size
            runs.append((head.first, head.count))
        found.append(Taken(delivery.queue_id, bodies, messages.Receipt(delivery.token, runs)))
    assert offset == len(arrived.body)
    return found


def any_of(weights: dict[int, int], max_messages: int = 10, **options: int | None) -> messages.ReceiveAny:
    queues = [messages.WeightedQueue(queue_id, weight) for queue_id, weight in weights.items()]
    return messages.ReceiveAny(queues, max_messages, **options)  # type: ignore[arg-type]  # as the caller names them


def counts(found: list[Taken]) -> dict[int, int]:
    return {one.queue_id: len(one.bodies) for one in found}


def test_one_receive_gives_a_lease_of_each_queue_that_can_be_deleted_by_itself() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low", visibility_timeout_ms=5_000)
    node.send(high, [b"h1", b"h2"])
    node.send(low, [b"l1"])
    first, second = taken(node.ask(any_of({low: 1, high: 8})))
    assert (first.queue_id, first.bodies) == (high, [b"h1", b"h2"]), "the greatest weight comes first"
    assert (second.queue_id, second.bodies) == (low, [b"l1"])
    settled = node.call(messages.Delete([first.receipt, second.receipt]))
    assert settled == messages.Settled([messages.ReceiptOutcome(2, 0, []), messages.ReceiptOutcome(1, 0, [])])


def test_service_follows_the_weights_over_requests_and_connections() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    for _ in range(10):
        node.send(high, [b"h"] * 100)
        node.send(low, [b"l"] * 100)
    other = node.connect()
    totals = {high: 0, low: 0}
    waited = 0
    for number in range(90):
        weights = {high: 8, low: 1} if number % 2 else {low: 1, high: 8}
        found = counts(taken(node.ask(any_of(weights, 1), connection=1 if number % 3 else other)))
        for queue_id, count in found.items():
            totals[queue_id] += count
        waited = 0 if low in found else waited + 1
        assert waited < 10, "the lowest is served in every round"
    assert totals == {high: 80, low: 10}
    assert counts(taken(node.ask(any_of({high: 8, low: 1}, 90)))) == {high: 80, low: 10}


def test_an_empty_queue_leaves_its_share_to_the_others() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    node.send(low, [b"l"] * 50)
    assert counts(taken(node.ask(any_of({high: 100, low: 1}, 30)))) == {low: 30}
    node.send(high, [b"h"] * 5)
    assert counts(taken(node.ask(any_of({high: 100, low: 1}, 30)))) == {high: 5, low: 20}


def test_a_queue_with_strict_order_that_cannot_give_leaves_its_share_too() -> None:
    node = NodeHarness()
    strict, plain = node.create("strict", ordering="fifo"), node.create("plain")
    node.send(strict, [b"s1", b"s2", b"s3"])
    node.send(plain, [b"p"] * 5)
    assert counts(taken(node.ask(any_of({strict: 5, plain: 1}, 1)))) == {strict: 1}
    assert counts(taken(node.ask(any_of({strict: 5, plain: 1}, 3)))) == {plain: 3}


def test_bytes_are_counted_over_all_queues_and_nobody_starves_by_them() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    node.send(high, [bytes(1_000)] * 20)
    node.send(low, [bytes(1_000)] * 20)
    rounds = [counts(taken(node.ask(any_of({high: 8, low: 1}, 9, max_bytes=3_000)))) for _ in range(6)]
    assert all(sum(found.values()) == 3 for found in rounds)
    assert sum(found.get(low, 0) for found in rounds) >= 2
    node.send(low, [bytes(50_000)])
    found = taken(node.ask(any_of({low: 1}, 1, max_bytes=10)))
    assert len(found) == 1, "one message is always delivered, whatever its size"


def test_a_receive_waits_for_all_its_queues_and_is_answered_once() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    waiting = node.start(any_of({high: 8, low: 1}, wait_ms=20_000))
    assert (
        node.show("high").statistics.waiting_receivers == node.show("low").statistics.waiting_receivers == 1
    )
    node.send(low, [b"one"])
    (answer,) = node.answers(waiting)
    assert counts(taken(answer)) == {low: 1}
    assert (
        node.show("high").statistics.waiting_receivers == node.show("low").statistics.waiting_receivers == 0
    )
    node.send(high, [b"two"])
    node.advance(30_000)
    assert node.answers(waiting) == []
    assert node.receive(high).bodies == [b"two"]


def test_a_receive_that_waits_in_vain_is_answered_empty() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    assert taken(node.ask(any_of({high: 8, low: 1}))) == []
    waiting = node.start(any_of({high: 8, low: 1}, wait_ms=2_000))
    node.advance(1_999)
    assert node.answers(waiting) == []
    node.advance(1)
    (answer,) = node.answers(waiting)
    assert taken(answer) == []


def test_a_waiting_receive_ends_by_unsubscribe_and_with_its_connection() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    waiting = node.start(any_of({high: 8, low: 1}, wait_ms=20_000))
    assert node.call(messages.Unsubscribe(waiting)) == messages.Done()
    (answer,) = node.answers(waiting)
    assert taken(answer) == []
    other = node.connect()
    node.start(any_of({high: 8, low: 1}, wait_ms=20_000), connection=other)
    node.node.disconnected(other, node.now_ms)
    assert node.show("low").statistics.waiting_receivers == 0
    node.send(low, [b"one"])
    assert node.receive(low).bodies == [b"one"]


def test_who_waited_longer_is_served_first_whatever_it_waits_for() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    alone = node.start(messages.Receive(low, 1, wait_ms=20_000))
    group = node.start(any_of({high: 8, low: 1}, wait_ms=20_000))
    after = node.start(messages.Receive(low, 1, wait_ms=20_000))
    node.send(low, [b"one"])
    assert (len(node.answers(alone)), node.answers(group), node.answers(after)) == (1, [], [])
    node.send(low, [b"two"])
    (answer,) = node.answers(group)
    assert (counts(taken(answer)), node.answers(after)) == ({low: 1}, [])
    node.send(low, [b"three"])
    assert len(node.answers(after)) == 1


def test_a_receive_waits_until_its_connection_has_taken_the_answers_before() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    node.send(high, [b"one"])
    node.node.behind(1)
    waiting = node.start(any_of({high: 8, low: 1}))
    empty = node.start(any_of({high: 8, low: 1}))
    node.send(low, [b"two"])
    assert node.answers(waiting) == []
    node.node.caught_up(1)
    node.turn()
    (answer,) = node.answers(waiting)
    assert counts(taken(answer)) == {high: 1, low: 1}
    (answer,) = node.answers(empty)
    assert taken(answer) == []


def test_leases_of_a_receiver_who_is_gone_are_given_back() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    node.send(high, [b"one"])
    node.send(low, [b"two"])
    other = node.connect()
    head = memoryview(messages.encode_message(any_of({high: 8, low: 1})))
    node.node.handle(other, Frame(9, head, memoryview(b"")), node.now_ms)
    node.node.disconnected(other, node.now_ms)
    node.turn()
    assert (node.receive(high).bodies, node.receive(low).bodies) == ([b"one"], [b"two"])


def test_deleting_a_queue_of_the_set_fails_who_waits_and_frees_its_other_places() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    waiting = node.start(any_of({high: 8, low: 1}, wait_ms=20_000))
    node.call(messages.DeleteQueue("high"))
    (answer,) = node.answers(waiting)
    assert isinstance(answer.answer, messages.Failed)
    assert answer.answer.code == "queue-not-found"
    assert "'high'" in answer.answer.message
    node.send(low, [b"one"])
    assert node.receive(low).bodies == [b"one"]
    assert node.fail(any_of({high: 8, low: 1})).code == "queue-not-found"


@pytest.mark.parametrize(
    ("weights", "what"),
    [({}, "1 to 64 queues"), ({1: 0}, "weight"), ({1: limits.QUEUE_WEIGHT_MAX + 1}, "weight")],
)
def test_what_cannot_be_is_refused(weights: dict[int, int], what: str) -> None:
    node = NodeHarness()
    assert node.create("orders") == 1
    failed = node.fail(any_of(weights))
    assert (failed.code, what in failed.message) == ("bad-request", True)


def test_a_queue_named_twice_and_a_log_are_refused() -> None:
    node = NodeHarness()
    orders, log = node.create("orders"), node.create("events", consumption="log")
    twice = messages.ReceiveAny([messages.WeightedQueue(orders, 1), messages.WeightedQueue(orders, 2)])
    assert "twice" in node.fail(twice).message
    failed = node.fail(any_of({orders: 1, log: 1}))
    assert (failed.code, "'events'" in failed.message) == ("unsupported", True)


def two_cold_queues() -> tuple[NodeHarness, int, int]:
    """Queues whose messages are on disk only: more than the cache holds, and every read has to wait."""
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    for number in range(60):
        node.send(high, [number.to_bytes(2, "big") * 2_000])
        node.send(low, [number.to_bytes(2, "big") * 2_000])
    node.restart()
    node.disk.cold_reads = 1.0
    return node, high, low


def started(node: NodeHarness, request: messages.Request, request_id: int) -> list[Job]:
    """Hands a request over; returns the reads that must be done before it is answered."""
    head = memoryview(messages.encode_message(request))
    node.node.handle(1, Frame(request_id, head, memoryview(b"")), node.now_ms)
    flush = node.node.take_flush()
    if flush is not None:
        flush.run()
        node.node.flushed(flush, node.now_ms)
    return node.node.take_jobs()


def finish(node: NodeHarness, jobs: list[Job]) -> None:
    for job in jobs:
        job.run()
        node.node.job_done(job, node.now_ms)
    node.turn()


def test_messages_that_are_not_in_memory_are_read_first() -> None:
    node, high, low = two_cold_queues()
    jobs = started(node, any_of({high: 2, low: 1}, 9), 900)
    assert len(jobs) == 1, "one read for all of them"
    assert node.answers(900) == []
    finish(node, jobs)
    (answer,) = node.answers(900)
    assert {one.queue_id: [body[:2] for body in one.bodies] for one in taken(answer)} == {
        high: [number.to_bytes(2, "big") for number in range(6)],
        low: [number.to_bytes(2, "big") for number in range(3)],
    }


def test_messages_that_ended_while_they_were_read_are_left_out() -> None:
    node, high, low = two_cold_queues()
    jobs = started(node, any_of({high: 2, low: 1}, 9), 900)
    assert jobs
    node.start(messages.Purge(high))
    finish(node, jobs)
    (answer,) = node.answers(900)
    assert counts(taken(answer)) == {low: 3}


def test_a_receiver_whose_messages_all_ended_waits_on() -> None:
    node, high, low = two_cold_queues()
    jobs = started(node, any_of({high: 2, low: 1}, 9, wait_ms=20_000), 900)
    node.start(messages.Purge(high))
    node.start(messages.Purge(low))
    finish(node, jobs)
    assert node.answers(900) == []
    node.send(low, [b"fresh"])
    (answer,) = node.answers(900)
    assert [one.bodies for one in taken(answer)] == [[b"fresh"]]


def test_a_queue_deleted_while_its_messages_were_read_fails_the_receive_and_frees_the_others() -> None:
    node, high, low = two_cold_queues()
    jobs = started(node, any_of({high: 2, low: 1}, 9), 900)
    node.start(messages.DeleteQueue("high"))
    finish(node, jobs)
    (answer,) = node.answers(900)
    assert isinstance(answer.answer, messages.Failed)
    assert answer.answer.code == "queue-not-found"
    assert (node.show("low").statistics.ready, node.show("low").statistics.leased) == (60, 0)


def test_damage_found_on_the_way_fails_the_receive_names_the_queue_and_frees_the_others() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    wanted = b"to be damaged " * 100
    node.send(high, [wanted])
    node.send(low, [b"fine"])
    node.restart()
    damaged = 0
    for name in node.disk.files():
        if wanted in node.disk.contents(name):
            node.disk.flip_bit(name, node.disk.contents(name).index(wanted) + 50)
            damaged += 1
    assert damaged
    waiting = node.start(any_of({high: 8, low: 1}, wait_ms=20_000))
    (answer,) = node.answers(waiting)
    assert isinstance(answer.answer, messages.Failed)
    assert (answer.answer.code, "'high'" in answer.answer.message) == ("queue-damaged", True)
    assert (node.show("low").statistics.ready, node.show("low").statistics.leased) == (1, 0)
    again = node.fail(any_of({high: 8, low: 1}))
    assert (again.code, "'high'" in again.message) == ("queue-damaged", True)
    assert node.receive(low).bodies == [b"fine"]


def test_damage_found_by_somebody_else_ends_the_wait() -> None:
    node = NodeHarness()
    high, low = node.create("high"), node.create("low")
    waiting = node.start(any_of({high: 8, low: 1}, wait_ms=20_000))
    node.node._parts.fence(high, DamagedEntryError("journal-1", 0, "a test says so"))
    node.turn()
    (answer,) = node.answers(waiting)
    assert isinstance(answer.answer, messages.Failed)
    assert (answer.answer.code, "'high'" in answer.answer.message) == ("queue-damaged", True)
    assert node.show("low").statistics.waiting_receivers == 0


def test_waiting_in_many_lines_is_bounded_and_leaves_nothing_behind() -> None:
    node = NodeHarness()
    queues = [node.create(f"queue-{number}") for number in range(8)]
    weights = {queue_id: 1 + number for number, queue_id in enumerate(queues)}
    for _ in range(300):
        waiting = node.start(any_of(weights, wait_ms=20_000))
        node.call(messages.Unsubscribe(waiting))
    room = node.node._parts.waiting
    assert sum(map(len, room._lines.values())) < 8 * 200
    assert not any(room.is_awaited(queue_id) for queue_id in queues)
    assert len(node.node._parts.shares) == 0, "nothing was served, so nobody has had a turn"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "WAITING_RECEIVERS_PER_QUEUE", 2)
        node.start(messages.Receive(queues[3], wait_ms=20_000))
        node.start(any_of(weights, wait_ms=20_000))
        assert node.fail(any_of(weights, wait_ms=20_000)).code == "too-many-waiting"
