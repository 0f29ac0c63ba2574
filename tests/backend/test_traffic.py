"""Messages in and out of a node, through crashes and restarts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.model import limits
from penstock.model.batch import encode_parts
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import OPTIONS, NodeHarness, Received, opened


def test_send_receive_delete() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    sent = node.send(orders, [b"one", b"two", b"three"])
    assert sent.runs == [(1, 3)]
    received = node.receive(orders, 2)
    assert received.bodies == [b"one", b"two"]
    assert received.counts() == [1, 1]
    assert node.delete(received).done == 2
    assert node.drain(orders) == [b"three"]
    statistics = node.show("orders").statistics
    assert (statistics.sent_total, statistics.deleted_total, statistics.bytes) == (3, 3, 0)


@pytest.mark.parametrize("stop", ["crash", "restart"])
def test_what_was_acknowledged_survives(stop: str) -> None:
    node = NodeHarness()
    orders = node.create("orders", visibility_timeout_ms=10_000)
    node.send(orders, [b"deleted", b"leased", b"ready"])
    node.delete(node.receive(orders, 1))
    held = node.receive(orders, 1)
    getattr(node, stop)()
    assert node.receive(orders).bodies == [b"ready"]
    node.advance(10_100)
    back = node.receive(orders)
    assert back.bodies == [b"leased", b"ready"]
    assert back.counts() == [2, 2]
    stale = node.delete(held)
    assert (stale.done, stale.gone, stale.stale) == (0, 0, [(2, 1)])


def test_a_receipt_given_before_a_crash_is_good_after_it() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.send(orders, [b"one"])
    held = node.receive(orders)
    node.crash()
    assert node.delete(held).done == 1
    node.advance(60_000)
    assert node.receive(orders).bodies == []


def test_forged_receipts_are_refused() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.send(orders, [b"one"])
    held = node.receive(orders)
    forged = bytes([held.token[0] ^ 1]) + held.token[1:]
    for token in (forged, held.token[:-1], b""):
        assert node.fail(messages.Delete([messages.Receipt(token, held.runs)])).code == "bad-receipt"
    assert node.fail(messages.Delete([messages.Receipt(held.token, [(0, 10**18)])])).code == "bad-request"


def test_a_retried_batch_is_stored_once_even_after_a_crash() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    first = node.send(orders, [b"one"], producer=7, number=1)
    assert node.send(orders, [b"one"], producer=7, number=1) == first
    node.crash()
    assert node.send(orders, [b"one"], producer=7, number=1) == first
    assert node.drain(orders) == [b"one"]


def test_deduplication_ids_name_one_message() -> None:
    node = NodeHarness()
    orders = node.create("orders", deduplication_window_ms=60_000)
    node.send(orders, [b"a"], deduplication_ids=[b"x"])
    again = node.send(orders, [b"a", b"b", b"b"], deduplication_ids=[b"x", b"y", b"y"])
    assert again.runs == [(1, 2), (2, 1)]
    assert again.duplicates == [0, 2]
    node.crash()
    assert node.send(orders, [b"a"], deduplication_ids=[b"x"]).duplicates == [0]
    node.advance(60_000)
    assert node.send(orders, [b"a"], deduplication_ids=[b"x"]).duplicates == []
    assert node.drain(orders) == [b"a", b"b", b"a"]


def test_a_long_poll_is_woken_by_a_send_a_release_an_expiry_and_a_delay() -> None:
    node = NodeHarness()
    orders = node.create("orders", visibility_timeout_ms=1_000)

    def wait() -> int:
        return node.start(messages.Receive(orders, 1, wait_ms=20_000))

    def woken(request_id: int) -> Received:
        answers = node.answers(request_id)
        assert len(answers) == 1
        return opened(answers[0])

    waiting = wait()
    assert node.answers(waiting) == []
    node.send(orders, [b"sent"])
    held = woken(waiting)
    waiting = wait()
    node.call(messages.Release([held.receipt()]))
    assert woken(waiting).bodies == [b"sent"]
    waiting = wait()
    node.advance(999)
    assert node.answers(waiting) == []
    node.advance(20)
    node.delete(woken(waiting))
    node.send(orders, [b"delayed"], delays_ms=[500])
    waiting = wait()
    node.advance(499)
    assert node.answers(waiting) == []
    node.advance(20)
    assert woken(waiting).bodies == [b"delayed"]


def test_waiters_are_served_in_order_and_time_out_empty() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    first = node.start(messages.Receive(orders, 1, wait_ms=5_000))
    second = node.start(messages.Receive(orders, 1, wait_ms=5_000))
    node.send(orders, [b"only"])
    assert opened(node.answers(first)[0]).bodies == [b"only"]
    assert node.answers(second) == []
    node.advance(5_000)
    assert opened(node.answers(second)[0]).bodies == []


def test_a_gone_receiver_loses_nothing() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    other = node.connect()
    node.start(messages.Receive(orders, 1, wait_ms=60_000), connection=other)
    node.node.disconnected(other, node.now_ms)
    node.send(orders, [b"one"])
    assert node.receive(orders).bodies == [b"one"]


def test_an_answer_nobody_can_take_gives_the_messages_back() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.send(orders, [b"one"])
    other = node.connect()
    node.node.handle(other, _receive(orders, 99), node.now_ms)  # and is gone before the flush
    node.node.disconnected(other, node.now_ms)
    node.turn()
    assert node.receive(orders).bodies == [b"one"]


def test_subscriptions_deliver_within_their_credit() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    subscription = node.start(messages.Subscribe(orders, credit=3, batch_messages=2))
    node.send(orders, [b"%d" % n for n in range(10)])
    got = [opened(arrived).bodies for arrived in node.answers(subscription)]
    assert got == [[b"0", b"1"], [b"2"]]
    node.start(messages.AddCredit(subscription, 2))
    assert [opened(arrived).bodies for arrived in node.answers(subscription)] == [[b"3", b"4"]]
    node.call(messages.Unsubscribe(subscription))
    node.start(messages.AddCredit(subscription, 5))
    assert node.answers(subscription) == []


def test_extend_and_release() -> None:
    node = NodeHarness()
    orders = node.create("orders", visibility_timeout_ms=1_000)
    node.send(orders, [b"a", b"b"])
    held = node.receive(orders)
    node.call(messages.Extend([held.receipt([(1, 1)])], 10_000))
    node.advance(1_100)
    assert node.receive(orders).bodies == [b"b"]
    node.call(messages.Release([held.receipt([(1, 1)])], delay_ms=5_000))
    node.advance(4_900)
    assert b"a" not in node.receive(orders).bodies
    node.advance(200)
    assert b"a" in node.receive(orders).bodies


def test_peek_reads_by_position_and_filter_without_leasing() -> None:
    import msgspec

    node = NodeHarness()
    orders = node.create("orders")
    node.send(
        orders,
        [b"red one", b"blue two", b"red three"],
        attributes=[msgspec.msgpack.encode({"n": n}) for n in range(3)],
        groups=[b"g", b"h", b"g"],
    )

    def peek(**options: object) -> tuple[list[int], int | None]:
        answer = node.call(messages.Peek(orders, **options))  # type: ignore[arg-type]  # as the caller names them
        assert isinstance(answer, messages.Peeked)
        found = [s for batch in answer.batches for s in range(batch.first, batch.first + batch.count)]
        return found, answer.next

    assert peek() == ([1, 2, 3], None)
    assert peek(max_messages=2) == ([1, 2], 3)
    assert peek(start=3) == ([3], None)
    assert peek(filter=messages.PeekFilter(body_contains=b"red")) == ([1, 3], None)
    assert peek(filter=messages.PeekFilter(group=b"h")) == ([2], None)
    assert peek(filter=messages.PeekFilter(attributes={"n": "2"})) == ([3], None)
    node.receive(orders, 1)
    assert peek(filter=messages.PeekFilter(states=["leased"])) == ([1], None)
    assert node.show("orders").statistics.ready == 2


def test_purge_takes_everything_but_what_is_on_its_way() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.send(orders, [b"a", b"b"])
    node.send(orders, [b"c"], delays_ms=[1_000])
    held = node.receive(orders, 1)
    answer = node.call(messages.Purge(orders))
    assert answer == messages.Count(3)
    assert node.delete(held).gone == 1
    node.crash()
    node.advance(100_000)
    assert node.receive(orders).bodies == []


def test_limits_of_a_request_are_refused_not_obeyed() -> None:
    node = NodeHarness()
    orders = node.create("orders", max_message_bytes=10)
    assert node.fail(messages.Send(orders), encode_parts([b"x" * 11])).code == "message-too-large"
    assert node.fail(messages.Send(orders), b"garbage").code == "bad-request"
    assert node.fail(messages.Receive(orders, 0)).code == "bad-request"
    assert node.fail(messages.Receive(orders, 1, wait_ms=-1)).code == "bad-request"
    assert node.fail(messages.Receive(12345, 1)).code == "queue-not-found"


def test_time_to_live_and_retention() -> None:
    node = NodeHarness()
    orders = node.create("orders", retention_ms=60_000)
    node.send(orders, [b"short", b"long"], ttls_ms=[1_000, 2**64 - 1])
    node.advance(990)
    node.crash()
    node.advance(40)
    assert node.receive(orders).bodies == [b"long"]
    node.advance(60_000)
    assert node.receive(orders).bodies == []
    assert node.show("orders").statistics.expired_total == 2


def test_what_expired_while_nobody_ran_is_not_delivered() -> None:
    node = NodeHarness()
    orders = node.create("orders", default_ttl_ms=1_000)
    node.send(orders, [b"old"])
    node.now_ms += 2_000  # the clock jumped: the request is there before any tick
    assert isinstance(answer := node.call(messages.Receive(orders)), messages.Delivery)
    assert answer.batches == []
    node.send(orders, [b"old too"])
    node.now_ms += 2_000
    node.crash()
    assert isinstance(answer := node.call(messages.Receive(orders)), messages.Delivery)
    assert answer.batches == []


def test_who_does_not_read_gets_no_more() -> None:
    node = NodeHarness(options=replace(OPTIONS, journal_file_bytes=4 * 2**20, entry_bytes_max=2 * 2**20))
    orders = node.create("orders", max_message_bytes=2**20)
    other = node.connect()
    subscription = node.start(messages.Subscribe(orders, credit=100, batch_messages=1), connection=other)
    node.node.behind(other)
    node.send(orders, [b"one"])
    assert node.answers(subscription, other) == []
    assert node.receive(orders, 1).bodies == [b"one"]  # and does not hold up who does
    node.send(orders, [b"two"])
    node.node.caught_up(other)
    node.turn()
    assert [opened(arrived).bodies for arrived in node.answers(subscription, other)] == [[b"two"]]


def test_answers_of_one_turn_are_bounded() -> None:
    node = NodeHarness(options=replace(OPTIONS, journal_file_bytes=4 * 2**20, entry_bytes_max=2 * 2**20))
    orders = node.create("orders", max_message_bytes=2**20)
    for _ in range(20):
        node.send(orders, [bytes(2**20)])
    for request_id in range(100, 120):  # in one turn, before anything could leave
        node.node.handle(1, _receive(orders, request_id), node.now_ms)
    on_their_way = node.node._parts.outbox.body_bytes(1)
    assert limits.UNREAD_BYTES <= on_their_way < limits.UNREAD_BYTES + 2 * 2**20
    node.turn()  # the rest, turn after turn
    answers = [node.answers(request_id)[0] for request_id in range(100, 120)]
    assert [len(opened(answer).bodies) for answer in answers] == [1] * 20


def _receive(queue_id: int, request_id: int) -> Frame:
    head = memoryview(messages.encode_message(messages.Receive(queue_id, 1)))
    return Frame(request_id, head, memoryview(b""))


def test_a_subscription_that_would_never_end_is_refused() -> None:
    node = NodeHarness()
    orders, eager = node.create("orders"), node.create("eager", visibility_timeout_ms=0)
    assert node.fail(messages.Subscribe(orders, 10, visibility_timeout_ms=0)).code == "bad-request"
    assert node.fail(messages.Subscribe(eager, 10)).code == "bad-request"
    node.start(messages.Subscribe(eager, 10, visibility_timeout_ms=1_000))


def test_a_request_of_a_connection_that_is_gone_is_not_carried_out() -> None:
    """What was read from it before it broke may come after its end."""
    node = NodeHarness()
    orders = node.create("orders")
    other = node.connect()
    node.node.disconnected(other, node.now_ms)
    body = encode_parts([b"late"])
    head = memoryview(messages.encode_message(messages.Send(orders)))
    node.node.handle(other, Frame(7, head, memoryview(body)), node.now_ms)
    node.turn()
    assert node.arrived[other] == []
    assert node.receive(orders).bodies == []


def test_a_queue_that_is_deleted_in_the_turn_in_which_it_gets_messages_serves_nobody() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    waiting = node.start(messages.Receive(orders, 1, wait_ms=5_000))
    requests: list[tuple[messages.Request, bytes]] = [
        (messages.Send(orders), encode_parts([b"a"])),
        (messages.DeleteQueue("orders"), b""),
    ]
    for number, (request, body) in enumerate(requests):
        head = memoryview(messages.encode_message(request))
        node.node.handle(1, Frame(9_000 + number, head, memoryview(body)), node.now_ms)
    node.turn()
    (arrived,) = node.answers(waiting)
    assert isinstance(arrived.answer, messages.Failed)
    assert arrived.answer.code == "queue-not-found"
