"""Every change of a message of a followed queue is a row of the log of lifecycles, once, through crashes too."""

from __future__ import annotations

import pytest

from penstock.columnar.lifecycle import LIFECYCLE_QUEUE
from penstock.model import limits
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import LifecycleReported
from penstock.wire import messages
from tests.backend.harness import START_MS, NodeHarness
from tests.backend.lifecycle_log import rows_in, rows_of, told
from tests.backend.log_reader import read_all


@pytest.fixture
def node() -> NodeHarness:
    return NodeHarness()


def test_the_life_of_messages_from_send_to_delete(node: NodeHarness) -> None:
    queue = node.create("orders", lifecycle=True)
    node.send(queue, [b"abc", b"de"])
    received = node.receive(queue, visibility_timeout_ms=5_000)
    node.delete(received)
    rows = rows_of(node, queue)
    assert told(rows, "number", "change", "first", "count") == [
        (1, "SENT", 1, 2),
        (2, "LEASED", 1, 2),
        (3, "DELETED", 1, 2),
    ]
    assert told(rows, "queue", "queue_id", "partition", "partition_id") == [("orders", queue, 0, queue)] * 3
    assert rows[0]["bytes"] == 5
    assert rows[0]["ordering"] == "best-effort"
    assert rows[1]["consumer"] == "test"
    assert rows[1]["until"] == START_MS + 5_000
    assert rows[1]["lease"] == rows[2]["lease"]
    assert [row["time"] for row in rows] == [START_MS] * 3


def test_a_consumer_says_who_it_is_and_what_went_wrong(node: NodeHarness) -> None:
    queue = node.create("orders", lifecycle=True)
    node.send(queue, [b"abc"])
    received = node.receive(queue, consumer="billing-7")
    node.call(messages.Release([received.receipt()], 50, error="ValueError: no such customer"))
    node.advance(100)
    lease, release, matured = rows_of(node, queue)[1:]
    assert lease["consumer"] == "billing-7"
    assert (release["change"], release["reason"]) == ("RELEASED", "released")
    assert release["error"] == "ValueError: no such customer"
    assert release["until"] == START_MS + 50
    assert matured["change"] == "MATURED"
    too_long = "x" * (limits.RELEASE_ERROR_CHARACTERS + 1)
    failed = node.fail(messages.Release([received.receipt()], error=too_long))
    assert failed.code == ErrorCode.BAD_REQUEST


def test_a_queue_that_did_not_ask_is_not_followed(node: NodeHarness) -> None:
    queue = node.create("orders")
    node.send(queue, [b"abc"])
    node.drain(queue)
    node.advance(1_000)
    assert node.fail(messages.DescribeQueue(LIFECYCLE_QUEUE)).code == ErrorCode.QUEUE_NOT_FOUND


def test_a_dead_letter_is_followed_from_queue_to_queue(node: NodeHarness) -> None:
    dead = node.create("dead", lifecycle=True)
    queue = node.create("orders", lifecycle=True, max_receives=1, dead_letter_queue="dead")
    node.send(queue, [b"a", b"b"])
    node.call(messages.Release([node.receive(queue).receipt()], error="no"))
    rows = rows_of(node, queue)
    assert told(rows, "change", "reason", "other_queue", "receives") == [
        ("SENT", None, None, None),
        ("LEASED", None, None, None),
        ("RELEASED", "released", None, None),
        ("MOVE_STARTED", "max-receives", "dead", 1),
        ("MOVE_FINISHED", "max-receives", "dead", 1),
    ]
    (arrived,) = rows_of(node, dead)
    assert (arrived["change"], arrived["reason"], arrived["receives"]) == ("ARRIVED", "max-receives", 1)
    assert (arrived["other_queue"], arrived["other_partition_id"], arrived["other_first"]) == (
        "orders",
        queue,
        1,
    )
    node.call(messages.Redrive(dead))
    node.turn()
    assert told(rows_of(node, dead), "change", "reason", "other_queue")[1:] == [
        ("MOVE_STARTED", "redrive", "orders"),
        ("MOVE_FINISHED", "redrive", "orders"),
    ]
    assert told(rows_of(node, queue), "change", "reason", "other_queue")[5:] == [
        ("ARRIVED", "redrive", "dead")
    ]


def test_a_deleted_queue_says_what_went_with_it(node: NodeHarness) -> None:
    queue = node.create("orders", lifecycle=True)
    node.send(queue, [b"a"] * 5)
    node.delete(node.receive(queue, 1))
    node.receive(queue, 1)
    node.call(messages.DeleteQueue("orders"))
    assert told(rows_of(node, queue), "change", "first", "count")[-2:] == [
        ("LEASED", 2, 1),
        ("QUEUE_DELETED", 2, 4),
    ]
    again = node.create("orders", lifecycle=True)
    node.send(again, [b"a"])
    assert told(rows_of(node, again), "number", "change") == [(1, "SENT")]


def test_delayed_messages_of_a_deleted_queue_move_before_it_goes(node: NodeHarness) -> None:
    node.create("dead")
    queue = node.create("orders", lifecycle=True, dead_letter_queue="dead", max_receives=5)
    node.send(queue, [b"now"])
    node.send(queue, [b"later"], delays_ms=[60_000])
    node.call(messages.DeleteQueue("orders"))
    assert told(rows_of(node, queue), "change", "first", "count", "reason") == [
        ("SENT", 1, 1, None),
        ("SENT", 2, 1, None),
        ("MOVE_STARTED", 2, 1, "queue-deleted"),
        ("MOVE_FINISHED", 2, 1, "queue-deleted"),
        ("QUEUE_DELETED", 1, 1, None),
    ]


def test_following_begins_ends_and_begins_again(node: NodeHarness) -> None:
    queue = node.create("orders")
    node.send(queue, [b"a"] * 3, groups=[b"x", b"x", b"y"])
    node.call(messages.AlterQueue("orders", {"lifecycle": True}))
    node.drain(queue)
    node.send(queue, [b"b"])
    node.call(messages.AlterQueue("orders", {"lifecycle": False}))
    node.send(queue, [b"c"])
    node.advance(1_000)
    node.crash()
    node.call(messages.AlterQueue("orders", {"lifecycle": True}))
    rows = rows_of(node, queue)
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    assert told(rows, "change", "first", "count", "message_group") == [
        ("STOOD", 1, 2, "x"),
        ("STOOD", 3, 1, "y"),
        ("LEASED", 1, 3, None),
        ("DELETED", 1, 3, None),
        ("SENT", 4, 1, None),
        ("UNFOLLOWED", 4, 1, None),
        ("STOOD", 4, 2, None),
    ]


def test_rows_that_name_all_that_is_there_say_where_they_begin_and_end(node: NodeHarness) -> None:
    queue = node.create("orders", lifecycle=True)
    node.send(queue, [b"a"] * 3, groups=[b"x", b"x", b"y"])
    node.call(messages.AlterQueue("orders", {"lifecycle": False}))
    node.drain(queue)
    node.call(messages.AlterQueue("orders", {"lifecycle": True}))
    node.call(messages.DeleteQueue("orders"))
    rows = rows_of(node, queue)
    assert told(rows, "number", "change", "first", "count", "census_first", "census_last")[2:] == [
        (3, "UNFOLLOWED", 1, 2, 3, 4),
        (4, "UNFOLLOWED", 3, 1, 3, 4),
        (5, "STOOD", 4, 0, 5, 5),  # nothing, which is to be known too
        (6, "QUEUE_DELETED", 4, 0, 6, 6),
    ]
    unused = node.create("unused", lifecycle=True)
    node.call(messages.DeleteQueue("unused"))
    assert rows_of(node, unused) == []


@pytest.mark.parametrize("stamps", ["server", "producer"])
def test_rows_say_whose_stamps_order_a_queue(node: NodeHarness, stamps: str) -> None:
    queue = node.create("orders", lifecycle=True, ordering="clock", stamps=stamps)
    by_producer = stamps == "producer"
    request = messages.Send(queue, process=7 if by_producer else 0)
    node.start(request, encode_parts([b"a"], stamps_us=[START_MS * 1_000] if by_producer else None))
    node.advance(1_000)
    assert told(rows_of(node, queue)[:1], "change", "ordering", "stamps") == [("SENT", "clock", stamps)]


def test_rows_that_were_not_reported_are_after_a_crash_and_a_checkpoint(node: NodeHarness) -> None:
    queue = node.create("orders", lifecycle=True)
    filler = node.create("filler")
    node.send(queue, [b"a"])
    for _ in range(12):  # enough for a checkpoint, within the time that rows wait for company
        node.send(filler, [bytes(60_000)])
    node.send(queue, [b"b"])
    assert node.show("orders").statistics.lifecycle_waiting == 2
    node.crash()
    assert node.show("orders").statistics.lifecycle_waiting == 2
    assert told(rows_of(node, queue), "number", "change", "first") == [(1, "SENT", 1), (2, "SENT", 2)]
    assert node.show("orders").statistics.lifecycle_waiting == 0


def test_a_clean_stop_leaves_no_row_behind(node: NodeHarness) -> None:
    queue = node.create("orders", lifecycle=True)
    node.send(queue, [b"a"])
    node.restart()
    assert node.show("orders").statistics.lifecycle_waiting == 0
    assert told(rows_of(node, queue), "number", "change") == [(1, "SENT")]


def test_a_report_whose_record_is_lost_is_repeated_under_the_same_numbers(
    node: NodeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = node.create("orders", lifecycle=True)
    node.send(queue, [b"a"])
    name = "penstock.backend.lifecycle.reports.LifecycleReported"

    def no_room(*_: object) -> object:
        raise PenstockError(ErrorCode.OVERLOADED, "between report and record")

    monkeypatch.setattr(name, no_room)
    node.advance(150)
    monkeypatch.setattr(name, LifecycleReported)
    node.crash()
    node.send(queue, [b"b"])
    node.advance(500)
    numbers = [row["number"] for row in rows_in(read_all(node, node.show(LIFECYCLE_QUEUE).queue_id))]
    assert sorted(set(numbers)) == [1, 2]
    assert len(numbers) > 2, "the same row came twice, so this test has seen what it is about"
    assert told(rows_of(node, queue), "number", "first") == [(1, 1), (2, 2)]


def test_where_too_many_rows_wait_the_oldest_are_dropped_and_counted(
    node: NodeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIFECYCLE_ROWS_WAITING", 3)
    queue = node.create("orders", lifecycle=True)
    for _ in range(5):
        node.send(queue, [b"a"])
    statistics = node.show("orders").statistics
    assert (statistics.lifecycle_waiting, statistics.lifecycle_dropped_total) == (3, 2)
    node.crash()
    assert told(rows_of(node, queue), "number", "first") == [(3, 3), (4, 4), (5, 5)]
    assert node.show("orders").statistics.lifecycle_dropped_total == 2


def test_many_rows_are_reported_in_pieces_that_fit(node: NodeHarness) -> None:
    queue = node.create("orders", lifecycle=True)
    groups = [b"g%d" % number for number in range(3_000)]
    for start in range(0, 3_000, 500):
        node.send(queue, [b"a"] * 500, groups=groups[start : start + 500])
    rows = rows_of(node, queue)
    assert [row["message_group"] for row in rows] == [group.decode() for group in groups]


def test_the_log_is_not_changed_by_accident(node: NodeHarness) -> None:
    queue = node.create("orders", lifecycle=True)
    node.send(queue, [b"a"])
    node.advance(200)
    log = node.show(LIFECYCLE_QUEUE)
    assert log.settings.consumption == "log"
    assert not log.settings.lifecycle
    refused: list[tuple[messages.Request, bytes]] = [
        (messages.DeleteQueue(LIFECYCLE_QUEUE), b""),
        (messages.Purge(log.queue_id), b""),
        (messages.AlterQueue(LIFECYCLE_QUEUE, {"lifecycle": True}), b""),
        (messages.AlterQueue(LIFECYCLE_QUEUE, {"max_message_bytes": 1}), b""),
        (messages.AlterQueue("orders", {"dead_letter_queue": LIFECYCLE_QUEUE}), b""),
        (messages.Redrive(queue, LIFECYCLE_QUEUE), b""),
        (messages.Send(log.queue_id), b"never looked at"),
    ]
    for request, body in refused:
        answer = node.ask(request, body).answer
        assert isinstance(answer, messages.Failed), request
        assert answer.code == ErrorCode.UNSUPPORTED
        assert "written by Penstock itself" in answer.message
    node.call(messages.AlterQueue(LIFECYCLE_QUEUE, {"retention_ms": 60_000, "retain_bytes": None}))
    node.advance(61_000)
    assert node.show(LIFECYCLE_QUEUE).statistics.log_messages == 0


def test_purged_expired_and_dropped_messages_are_told_by_the_runs_that_went(node: NodeHarness) -> None:
    queue = node.create("orders", lifecycle=True, max_messages=6, overflow="drop-oldest")
    node.send(queue, [b"a"] * 6)
    node.delete(node.receive(queue, 1))
    node.send(queue, [b"b"] * 2, ttls_ms=[1_000, 100_000])
    node.advance(1_100)
    node.call(messages.Purge(queue))
    ends = [row for row in rows_of(node, queue) if row["change"] in ("DROPPED", "EXPIRED", "PURGED")]
    assert told(ends, "change", "first", "count", "reason") == [
        ("DROPPED", 2, 1, None),
        ("EXPIRED", 7, 1, "ttl"),
        ("PURGED", 3, 4, None),
        ("PURGED", 8, 1, None),
    ]


def test_a_followed_log_tells_what_was_sent_and_what_it_let_go(node: NodeHarness) -> None:
    queue = node.create("events", consumption="log", lifecycle=True, retention_ms=5_000)
    node.send(queue, [b"a"] * 2)
    node.advance(6_000)
    node.send(queue, [b"b"])
    node.call(messages.Purge(queue))
    assert told(rows_of(node, queue), "change", "first", "count", "reason") == [
        ("SENT", 1, 2, None),
        ("EXPIRED", 1, 2, "age"),
        ("SENT", 3, 1, None),
        ("PURGED", 3, 1, None),
    ]
