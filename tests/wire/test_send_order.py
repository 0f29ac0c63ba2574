"""Which sends of a connection may be taken."""

from __future__ import annotations

import pytest

from penstock.model.errors import ERRORS, ErrorCode, PenstockError
from penstock.wire.messages import Send
from penstock.wire.send_order import SendOrder


def send(number: int, after: int = 0, queue: int = 1, producer: int = 7) -> Send:
    return Send(queue, producer, number, after=after)


def refuses(order: SendOrder, request: Send, connection: int = 1) -> bool:
    try:
        order.check(connection, request)
    except PenstockError as error:
        return error.code is ErrorCode.OUT_OF_ORDER
    return False


def test_a_send_follows_the_last_that_was_taken() -> None:
    order = SendOrder()
    assert not refuses(order, send(1))
    order.taken(1, send(1))
    assert not refuses(order, send(2, after=1))
    assert refuses(order, send(3, after=2))  # 2 was not taken
    order.taken(1, send(2, after=1))
    assert not refuses(order, send(3, after=2))
    assert refuses(order, send(3, after=1))


def test_what_follows_nothing_is_always_taken() -> None:
    order = SendOrder()
    order.taken(1, send(5))
    assert not refuses(order, send(3))
    assert not refuses(order, Send(1))


@pytest.mark.parametrize(
    ("connection", "request_"),
    [(2, send(2, after=1)), (1, send(2, after=1, queue=2)), (1, send(2, after=1, producer=8))],
)
def test_connections_queues_and_producers_have_each_their_own(connection: int, request_: Send) -> None:
    order = SendOrder()
    order.taken(1, send(1))
    assert refuses(order, request_, connection)


def test_a_later_refusal_holds_up_what_follows_until_it_is_sent_again() -> None:
    order = SendOrder()
    for number in (1, 2, 3):
        order.taken(1, send(number, after=number - 1))
    order.refused(1, send(2, after=1))
    assert refuses(order, send(4, after=3))
    assert not order.still_follows(1, send(3, after=2))
    assert not refuses(order, send(2, after=1))
    order.taken(1, send(2, after=1))
    order.refused(1, send(3, after=2))  # the word about the first time comes late
    assert not refuses(order, send(3, after=2))


def test_a_later_refusal_of_the_first_leaves_nothing_to_follow() -> None:
    order = SendOrder()
    order.taken(1, send(1))
    order.taken(1, send(2, after=1))
    order.refused(1, send(1))
    assert refuses(order, send(2, after=1))
    assert refuses(order, send(3, after=2))
    assert len(order) == 0
    order.refused(1, send(1))


def test_what_is_remembered_is_bounded_and_forgetting_only_refuses() -> None:
    order = SendOrder(most=2)
    for producer in (1, 2, 3):
        order.taken(1, send(1, producer=producer))
    assert len(order) == 2
    assert refuses(order, send(2, after=1, producer=1))
    assert not refuses(order, send(2, after=1, producer=3))
    order.taken(1, Send(1))
    assert len(order) == 2  # nobody follows what has no number


def test_after_which_refusals_a_batch_is_sent_again() -> None:
    again = {code for code in ErrorCode if PenstockError(code, "").sent_again}
    retryable = {code for code, row in ERRORS.items() if row.retryable}
    assert again - retryable == {ErrorCode.QUEUE_NOT_FOUND, ErrorCode.QUEUE_DAMAGED}
    assert retryable <= again
