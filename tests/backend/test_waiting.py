"""Receives that wait: cancelled, parked behind a connection that is slow to read, and bounded by what is out."""

from __future__ import annotations

from penstock.backend.receive.waiting import Waiter, WaitingRoom
from penstock.model import limits
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import START_MS, NodeHarness, opened


def test_a_waiting_receive_can_be_cancelled_and_is_answered_once() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    waiting = node.start(messages.Receive(orders, 1, wait_ms=20_000))
    assert node.answers(waiting) == []
    assert node.call(messages.Unsubscribe(waiting)) == messages.Done()
    (answer,) = node.answers(waiting)
    assert opened(answer).bodies == []
    node.send(orders, [b"one"])
    node.advance(30_000)
    assert node.answers(waiting) == []
    assert node.receive(orders).bodies == [b"one"]


def test_cancelling_a_receive_that_was_answered_changes_nothing() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    waiting = node.start(messages.Receive(orders, 1, wait_ms=20_000))
    node.send(orders, [b"one"])
    assert node.call(messages.Unsubscribe(waiting)) == messages.Done()
    (answer,) = node.answers(waiting)
    assert opened(answer).bodies == [b"one"]
    assert node.show("orders").statistics.leased == 1


def test_a_receive_is_cancelled_only_by_its_own_connection() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    waiting = node.start(messages.Receive(orders, 1, wait_ms=20_000))
    other = node.connect()
    node.call(messages.Unsubscribe(waiting), connection=other)
    node.send(orders, [b"one"])
    (answer,) = node.answers(waiting)
    assert opened(answer).bodies == [b"one"]


def test_a_receive_waits_until_its_connection_has_taken_the_answers_before() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.send(orders, [b"one"])
    node.node.behind(1)
    waiting = node.start(messages.Receive(orders, 1))
    assert node.answers(waiting) == []
    node.node.caught_up(1)
    node.turn()
    (answer,) = node.answers(waiting)
    assert opened(answer).bodies == [b"one"]


def test_a_parked_receive_that_would_not_wait_is_answered_empty_when_nothing_is_ready() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.node.behind(1)
    waiting = node.start(messages.Receive(orders, 1))
    node.node.caught_up(1)
    node.turn()
    (answer,) = node.answers(waiting)
    assert opened(answer).bodies == []


def test_a_parked_receive_that_would_not_wait_waits_a_second_at_most() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.send(orders, [b"one"])
    node.node.behind(1)
    waiting = node.start(messages.Receive(orders, 1))
    long = node.start(messages.Receive(orders, 1, wait_ms=5_000))
    node.advance(limits.RECEIVE_PARKED_MS)
    assert node.now_ms == START_MS + limits.RECEIVE_PARKED_MS
    (answer,) = node.answers(waiting)
    assert opened(answer).bodies == []
    node.node.caught_up(1)
    node.turn()
    (answer,) = node.answers(long)
    assert opened(answer).bodies == [b"one"]


def test_parked_receives_are_bounded_and_those_that_left_are_forgotten() -> None:
    room = WaitingRoom()
    for number in range(3_000):
        room.enter(Waiter(2, number, 7, 1, 1, 1, None, deadline_ms=number))
        waiter = room.next_in_line(7)
        assert waiter is not None
        room.park(waiter)
        assert room.timed_out(number) == [waiter]
    assert len(room._parked[2]) < 100


def test_a_receive_may_say_how_many_messages_may_be_out() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.send(orders, [b"one", b"two", b"three"])
    first = node.receive(orders, 10, max_leased=2)
    assert first.bodies == [b"one", b"two"]
    failed = node.fail(messages.Receive(orders, 10, max_leased=2))
    assert failed.code == "limit-reached"
    assert "2 messages" in failed.message
    node.delete(first, [(1, 1)])
    assert node.receive(orders, 10, max_leased=2).bodies == [b"three"]


def test_the_limit_on_what_is_out_holds_for_those_who_waited() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    one, two = (node.start(messages.Receive(orders, 5, wait_ms=9_000, max_leased=1)) for _ in range(2))
    node.send(orders, [b"one", b"two"])
    (answer,) = node.answers(one)
    assert opened(answer).bodies == [b"one"]
    (refused,) = node.answers(two)
    assert isinstance(refused.answer, messages.Failed)
    assert refused.answer.code == "limit-reached"


def test_a_receive_asked_again_gets_the_same_messages_on_any_connection_and_after_a_crash() -> None:
    node = NodeHarness()
    orders = node.create("orders", ordering="fifo", visibility_timeout_ms=5_000)
    node.send(orders, [b"one", b"two", b"three"])
    first = node.receive(orders, 2, attempt=b"try")
    node.advance(3_000)
    other = node.connect()
    request = messages.Receive(orders, 2, attempt=b"try")
    second = opened(node.ask(request, connection=other))
    assert (second.token, second.bodies) == (first.token, [b"one", b"two"])
    assert second.until_ms == first.until_ms + 3_000
    assert second.counts() == [1, 1]
    assert second.heads[0].first_received_ms == first.heads[0].first_received_ms
    node.crash()
    third = node.receive(orders, 2, attempt=b"try")
    assert (third.token, third.bodies) == (first.token, [b"one", b"two"])
    assert node.delete(third, [(1, 1)]).done == 1
    assert node.fail(request).code == "attempt-changed"


def test_an_attempt_that_found_nothing_or_was_too_long_is_not_remembered() -> None:
    node = NodeHarness()
    orders = node.create("orders", ordering="fifo")
    assert node.receive(orders, attempt=b"try").bodies == []
    node.send(orders, [b"one"])
    assert node.receive(orders, attempt=b"try").bodies == [b"one"]
    assert node.fail(messages.Receive(orders, attempt=bytes(129))).code == "bad-request"


def test_the_lease_of_an_attempt_stays_when_its_connection_is_gone() -> None:
    node = NodeHarness()
    orders = node.create("orders", ordering="fifo")
    node.send(orders, [b"one"])
    other = node.connect()
    head = memoryview(messages.encode_message(messages.Receive(orders, 1, attempt=b"try")))
    node.node.handle(other, Frame(9, head, memoryview(b"")), node.now_ms)
    node.node.disconnected(other, node.now_ms)
    node.turn()
    assert node.show("orders").statistics.leased == 1
    assert node.receive(orders, 1, attempt=b"try").bodies == [b"one"]


def test_a_subscription_of_a_fifo_queue_gets_messages_as_sent_and_a_receive_group_by_group() -> None:
    node = NodeHarness()
    for name in ("pushed", "pulled"):
        queue = node.create(name, ordering="fifo")
        node.send(queue, [b"a1", b"b1", b"a2", b"b2"], groups=[b"a", b"b", b"a", b"b"])
        if name == "pulled":
            assert node.receive(queue).bodies == [b"a1", b"a2", b"b1", b"b2"]
            continue
        (pushed,) = map(opened, node.answers(node.start(messages.Subscribe(queue, credit=100))))
        assert pushed.bodies == [b"a1", b"b1", b"a2", b"b2"], "in each group the order is its own"
        assert pushed.runs == [(1, 4)], "neighbours of different groups are one run"
