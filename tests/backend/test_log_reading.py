"""Reading a retained log over the node: ranges, waiting, bounds, and what each way of consumption allows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.backend.logs import reading as log_reading
from penstock.model import limits
from penstock.model.batch import encode_parts
from penstock.simulation.disk import SimulatedDisk
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import NodeHarness
from tests.backend.log_reader import opened_slice, read_all, read_log


def filled(consumption: str = "log", batches: int = 30) -> tuple[NodeHarness, int, list[bytes]]:
    node = NodeHarness()
    log = node.create("events", consumption=consumption)
    bodies = [b"%05d" % number for number in range(batches * 10)]
    for start in range(0, len(bodies), 10):
        node.send(log, bodies[start : start + 10])
    return node, log, bodies


def test_a_slice_begins_and_ends_where_it_was_asked_to() -> None:
    node, log, bodies = filled()
    found = read_log(node, log, 14, max_messages=23)
    assert found.bodies == bodies[13:36]
    assert found.runs == [(14, 7), (21, 10), (31, 6)]
    assert (found.next, found.end) == (37, 301)


def test_whole_batches_come_as_they_were_sent() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    sent = encode_parts([b"a", b"b"], groups=[b"g", b""], attributes=[b"\x81\xa1k\x01", b""])
    node.call(messages.Send(log), sent)
    arrived = node.ask(messages.ReadLog(log, 1))
    assert arrived.body == sent


@settings(max_examples=30, deadline=None)
@given(
    some.lists(some.lists(some.binary(max_size=60), min_size=1, max_size=12), min_size=1, max_size=12),
    some.integers(1, 30),
    some.integers(1, 400),
    some.booleans(),
)
def test_reading_on_gives_every_message_once_in_order(
    batches: list[list[bytes]], max_messages: int, max_bytes: int, cold: bool
) -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    for bodies in batches:
        node.send(log, bodies)
    if cold:
        node.crash()
    expected = [body for bodies in batches for body in bodies]
    start, found = 1, list[bytes]()
    while start <= len(expected):
        piece = read_log(node, log, start, max_messages=max_messages, max_bytes=max_bytes)
        assert 1 <= len(piece.bodies) <= max_messages
        assert piece.size <= max_bytes or len(piece.bodies) == 1
        assert piece.next == start + len(piece.bodies)
        start = piece.next
        found += piece.bodies
    assert found == expected
    assert read_log(node, log, start).bodies == []


def test_a_reader_waits_for_the_next_message() -> None:
    node, log, _ = filled()
    waiting = node.start(messages.ReadLog(log, 301, wait_ms=5_000))
    assert node.answers(waiting) == []
    node.send(log, [b"new"])
    (arrived,) = node.answers(waiting)
    assert opened_slice(arrived).bodies == [b"new"]


def test_a_reader_that_waited_long_enough_is_told_that_there_is_nothing() -> None:
    node, log, _ = filled()
    waiting = node.start(messages.ReadLog(log, 301, wait_ms=5_000))
    node.advance(4_999)
    assert node.answers(waiting) == []
    node.advance(1)
    (arrived,) = node.answers(waiting)
    assert arrived.answer == messages.LogSlice([], 301, 301)


def test_a_wait_can_be_cancelled_and_ends_with_the_connection() -> None:
    node, log, _ = filled()
    waiting = node.start(messages.ReadLog(log, 301, wait_ms=5_000))
    node.call(messages.Unsubscribe(waiting))
    assert [arrived.answer for arrived in node.answers(waiting)] == [messages.LogSlice([], 301, 301)]
    other = node.connect()
    node.start(messages.ReadLog(log, 301, wait_ms=5_000), connection=other)
    node.node.disconnected(other, node.now_ms)
    node.send(log, [b"new"])
    assert node.arrived[other] == []


def test_a_wait_is_cancelled_while_the_disk_is_read_for_it() -> None:
    node, log, bodies = filled()
    node.crash()
    log = node.show("events").queue_id
    head = memoryview(messages.encode_message(messages.ReadLog(log, 1, wait_ms=60_000)))
    node.node.handle(1, Frame(9_001, head, memoryview(b"")), node.now_ms)
    jobs = node.node.take_jobs()  # the helper thread is slow
    assert len(jobs) == 1
    node.call(messages.Unsubscribe(9_001))
    assert [arrived.answer for arrived in node.answers(9_001)] == [messages.LogSlice([], 1, 301)]
    for job in jobs:
        job.run()
        node.node.job_done(job, node.now_ms)
    node.turn()
    assert node.answers(9_001) == []
    assert read_log(node, log, 1).bodies == bodies


def test_deleting_the_queue_answers_who_waits() -> None:
    node, log, _ = filled()
    waiting = node.start(messages.ReadLog(log, 301, wait_ms=5_000))
    node.call(messages.DeleteQueue("events"))
    (arrived,) = node.answers(waiting)
    assert isinstance(arrived.answer, messages.Failed)
    assert arrived.answer.code == "queue-not-found"


def test_a_reader_never_sees_what_is_not_on_disk() -> None:
    node, log, bodies = filled()
    batch = encode_parts([b"unsafe"])
    head = memoryview(messages.encode_message(messages.Send(log)))
    read = memoryview(messages.encode_message(messages.ReadLog(log, 299)))
    node.node.handle(1, Frame(9_001, head, memoryview(batch)), node.now_ms)
    node.node.handle(1, Frame(9_002, read, memoryview(b"")), node.now_ms)
    flush = node.node.take_flush()
    assert flush is not None
    assert node.node.take_output() == [], "neither the send nor the read is answered before the flush"
    node.crash()
    assert read_all(node, log) == bodies


def test_a_connection_that_is_behind_waits() -> None:
    node, log, bodies = filled()
    node.node.behind(1)
    waiting = node.start(messages.ReadLog(log, 1, max_messages=5))
    at_the_end = node.start(messages.ReadLog(log, 301, wait_ms=1_000))
    node.advance(10_000)
    assert node.answers(waiting) == []
    node.node.caught_up(1)
    node.turn()
    (arrived,) = node.answers(waiting)
    assert opened_slice(arrived).bodies == bodies[:5], "not told that there is nothing, however long it took"
    assert [arrived.answer for arrived in node.answers(at_the_end)] == [messages.LogSlice([], 301, 301)]


def test_a_reader_whose_connection_catches_up_as_its_time_ends_is_given_what_there_is() -> None:
    node, log, bodies = filled()
    node.node.behind(1)
    head = memoryview(messages.encode_message(messages.ReadLog(log, 1, max_messages=5)))
    node.node.handle(1, Frame(77, head, memoryview(b"")), node.now_ms)
    node.node.caught_up(1)
    node.node.tick(node.now_ms)  # its time is up, and it was not looked at since the connection caught up
    node.turn()
    (arrived,) = node.answers(77)
    assert opened_slice(arrived).bodies == bodies[:5]


def test_a_reader_that_is_far_ahead_of_its_connection_fills_no_memory() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    for _ in range(100):
        node.send(log, [bytes(100_000)])
    node.crash()
    node.node.behind(1)
    asked = [node.start(messages.ReadLog(log, 1, wait_ms=1_000)) for _ in range(20)]
    assert not any(node.answers(request) for request in asked)
    node.node.caught_up(1)
    node.turn()
    assert all(len(node.answers(request)) == 1 for request in asked)


def test_what_is_gone_is_said_to_be_gone() -> None:
    node, log, _ = filled()
    node.call(messages.Purge(log))
    failed = node.fail(messages.ReadLog(log, 5))
    assert failed.code == "offset-gone"
    assert "begins at 301" in failed.message
    assert node.fail(messages.ReadLog(log, 302)).code == "bad-request"
    assert read_log(node, log, 301).bodies == []


def test_bounds_of_a_read() -> None:
    node, log, _ = filled()
    for request in (
        messages.ReadLog(log, 1, max_messages=0),
        messages.ReadLog(log, 1, max_messages=100_001),
        messages.ReadLog(log, 1, wait_ms=3_600_001),
        messages.ReadLog(log, 1, wait_ms=-1),
    ):
        assert node.fail(request).code == "bad-request"


def test_offsets_are_found_by_time() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    times = []
    for number in range(5):
        node.now_ms += 1_000
        times.append(node.now_ms)
        node.send(log, [b"%d" % number] * 10)
    assert node.call(messages.FindOffset(log)) == messages.LogBounds(1, 51, 51)
    for number, time_ms in enumerate(times):
        assert node.call(messages.FindOffset(log, time_ms)) == messages.LogBounds(1, 51, 1 + 10 * number)
        assert node.call(messages.FindOffset(log, time_ms + 1)) == messages.LogBounds(1, 51, 11 + 10 * number)
    assert node.call(messages.FindOffset(log, 0)) == messages.LogBounds(1, 51, 1)


def test_a_log_is_not_received_from_and_a_queue_is_not_read() -> None:
    node, log, _ = filled()
    queue = node.create("orders")
    for request in (
        messages.Receive(log),
        messages.Subscribe(log, 10),
        messages.Peek(log),
        messages.Redrive(log),
        messages.ReadLog(queue, 1),
        messages.FindOffset(queue),
        messages.JoinGroup(queue, "g", "a"),
        messages.CommitOffset(queue, "g", 1),
        messages.ListGroups(queue),
    ):
        assert node.fail(request).code == "unsupported", request
    delayed = encode_parts([b"x"], delays_ms=[1_000])
    assert node.fail(messages.Send(log), delayed).code == "unsupported"


def test_in_both_deleting_leaves_the_log() -> None:
    node, log, bodies = filled("both")
    assert node.drain(log) == bodies
    assert read_all(node, log) == bodies
    statistics = node.show("events").statistics
    assert (statistics.ready, statistics.log_messages, statistics.log_begin) == (0, 300, 1)
    assert statistics.log_bytes == 1_500
    node.crash()
    assert node.receive(log).bodies == []
    assert read_all(node, log) == bodies


def test_a_purge_empties_queue_and_log() -> None:
    for consumption in ("log", "both"):
        node, log, _ = filled(consumption)
        assert node.call(messages.Purge(log)) == messages.Count(300)
        assert node.show("events").statistics.log_messages == 0
        node.send(log, [b"new"])
        assert read_all(node, log) == [b"new"]
        assert node.show("events").statistics.purged_total == 300


def test_dead_letters_that_move_in_are_logged() -> None:
    for consumption in ("log", "both"):
        node = NodeHarness()
        dead = node.create("dead", consumption=consumption)
        orders = node.create("orders", dead_letter_queue="dead", max_receives=1)
        node.send(orders, [b"poison", b"fine"])
        received = node.receive(orders, 1, visibility_timeout_ms=1_000)
        assert received.bodies == [b"poison"]
        node.advance(1_000)
        assert read_all(node, dead) == [b"poison"]
        node.crash()
        assert read_all(node, dead) == [b"poison"]


def test_a_log_remembers_what_was_sent() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    node.send(log, [b"once"], deduplication_ids=[b"k"])
    node.crash()
    assert node.send(log, [b"once"], deduplication_ids=[b"k"]).duplicates == [0]
    first = node.send(log, [b"retried"], producer=7, number=1)
    assert node.send(log, [b"retried"], producer=7, number=1).runs == first.runs
    assert read_all(node, log) == [b"once", b"retried"]


def test_cold_reads_leave_the_cache_alone() -> None:
    node = NodeHarness(SimulatedDisk(random.Random(1), cold_reads=1.0))
    log = node.create("events", consumption="log")
    orders = node.create("orders")
    bodies = [b"%05d" % number + bytes(500) for number in range(1_000)]
    for start in range(0, len(bodies), 10):
        node.send(log, bodies[start : start + 10])
    node.crash()
    node.send(orders, [b"hot"])
    before = node.node._store.statistics()
    assert read_all(node, log) == bodies
    after = node.node._store.statistics()
    assert after.cached_bytes == before.cached_bytes
    assert after.cache_misses_total == before.cache_misses_total


def test_waiting_readers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    node, log, _ = filled()
    monkeypatch.setattr(limits, "LOG_READERS_WAITING_PER_QUEUE", 3)
    waiting = [node.start(messages.ReadLog(log, 301, wait_ms=5_000)) for _ in range(3)]
    assert node.fail(messages.ReadLog(log, 301, wait_ms=5_000)).code == "too-many-waiting"
    node.call(messages.Unsubscribe(waiting[0]))
    node.start(messages.ReadLog(log, 301, wait_ms=5_000))
    assert node.fail(messages.ReadLog(log, 301, wait_ms=5_000)).code == "too-many-waiting"


def test_who_waits_to_read_a_log_uses_it() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log", idle_expiry_ms=1_000)
    node.start(messages.ReadLog(log, 1, wait_ms=10_000))
    node.advance(9_500)
    assert node.show("events").queue_id == log
    node.advance(1_400)
    assert node.show("events").queue_id == log, "it was in use until the wait ended"
    node.advance(200)
    assert node.fail(messages.DescribeQueue("events")).code == "queue-not-found"


def test_a_message_that_comes_back_is_logged_again_and_stays_where_it_died() -> None:
    node = NodeHarness()
    dead = node.create("dead", consumption="both")
    orders = node.create("orders", consumption="both", dead_letter_queue="dead", max_receives=1)
    node.send(orders, [b"poison"])
    node.receive(orders, 1, visibility_timeout_ms=1_000)
    node.advance(1_000)
    assert node.call(messages.Redrive(dead)) == messages.Redriven(1, None)
    node.turn()
    assert read_all(node, orders) == [b"poison", b"poison"], "it was sent, and came back under another number"
    assert read_all(node, dead) == [b"poison"]
    assert node.receive(dead).bodies == []
    assert node.receive(orders).bodies == [b"poison"]


def test_readers_see_the_stamps_of_messages() -> None:
    node = NodeHarness()
    stamped = node.create("stamped", ordering="clock", consumption="log")
    request = node.start(messages.Send(stamped), encode_parts([b"a", b"b"]))
    node.advance(2)
    (sent,) = (arrived.answer for arrived in node.answers(request))
    assert isinstance(sent, messages.SendResult)
    assert sent.stamp_us > 0
    answer = node.call(messages.ReadLog(stamped, 2))
    assert isinstance(answer, messages.LogSlice)
    assert [batch.stamp_us for batch in answer.batches] == [sent.stamp_us]
    log = node.create("events", consumption="log")
    node.call(
        messages.Send(log, process=7, counter=40), encode_parts([b"a", b"b", b"c"], stamps_us=[5, 6, 9])
    )
    answer = node.call(messages.ReadLog(log, 3))
    assert isinstance(answer, messages.LogSlice)
    assert [(b.stamp_us, b.process, b.counter) for b in answer.batches] == [(9, 7, 42)]


def test_nothing_is_read_for_a_reader_that_is_gone_before_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reading, "_JOBS_AT_ONCE", 1)
    node, log, _ = filled()
    node.crash()
    log = node.show("events").queue_id
    for number in (9_001, 9_002):
        head = memoryview(messages.encode_message(messages.ReadLog(log, 1, wait_ms=60_000)))
        node.node.handle(1, Frame(number, head, memoryview(b"")), node.now_ms)
    jobs = node.node.take_jobs()
    assert len(jobs) == 1, "one after the other"
    node.call(messages.Unsubscribe(9_002))
    for job in jobs:
        job.run()
        node.node.job_done(job, node.now_ms)
    assert node.node.take_jobs() == []
