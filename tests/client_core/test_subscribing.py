"""A subscription: what is handed out, when there is more credit, and what is given back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.client_core.lease import Lease
from penstock.client_core.subscribing import ConsumerTerms, PushedMessages, Subscribing
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import AddCredit, DeliveredBatch, Delivery, Subscribe

GONE = PenstockError(ErrorCode.QUEUE_NOT_FOUND, "gone")


class Message:
    def __init__(self, sequence: int) -> None:
        self.sequence = sequence


class Messages:
    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self._messages = [
            Message(number) for first, count in lease.runs() for number in range(first, first + count)
        ]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)


class Subscription(Subscribing[Message]):
    def __init__(self, terms: ConsumerTerms) -> None:
        super().__init__(terms)
        self.time = 0.0
        self.opened: list[Subscribe] = []
        self.posted: list[AddCredit] = []
        self.looked_for: list[PenstockError] = []
        self.begin(7, 2_000)

    def push(self, token: bytes, first: int, count: int) -> None:
        batch = DeliveredBatch(first, count, sent_ms=1, size=0, receive_counts=1, first_received_ms=1)
        self.delivered(Delivery(token, 0, [batch]), memoryview(b""))

    def _now(self) -> float:
        return self.time

    def _open(self) -> None:
        self.opened.append(self.opening())

    def _post(self, credit: AddCredit) -> None:
        self.posted.append(credit)

    def _received(self, delivery: Delivery, body: memoryview) -> PushedMessages[Message]:
        return Messages(Lease(delivery.token, delivery.batches, self.time))

    def _look_again(self, error: PenstockError) -> None:
        self.looked_for.append(error)

    def _wake(self, waiters: int) -> None:
        """Nobody waits."""

    def _wake_all(self) -> None:
        """Nobody waits."""


def _subscription(*, credit: int = 4, heartbeat: bool = False) -> Subscription:
    return Subscription(ConsumerTerms(credit, 2, 2_000, heartbeat))


def test_messages_come_one_by_one_and_credit_is_given_for_them() -> None:
    subscription = _subscription()
    assert subscription.opened == [Subscribe(7, 4, 2, 2_000)]
    subscription.push(b"a", 1, 2)
    subscription.push(b"b", 5, 2)
    taken = []
    while (message := subscription.next_message_at_hand()) is not None:
        taken.append(message.sequence)
    assert taken == [1, 2, 5, 6]
    assert [credit.messages for credit in subscription.posted] == [2, 2]


def test_what_waited_longer_than_its_lease_is_dropped_and_makes_room() -> None:
    subscription = _subscription()
    subscription.push(b"a", 1, 2)
    subscription.time = 3.0
    subscription.push(b"b", 5, 2)
    delivery = subscription.next_at_hand()
    assert delivery is not None
    assert delivery.lease.token == b"b"
    assert [credit.messages for credit in subscription.posted] == [2]


def test_leases_that_are_kept_alive_are_good_for_as_long_as_it_takes() -> None:
    subscription = _subscription(heartbeat=True)
    subscription.push(b"a", 1, 2)
    subscription.time = 100.0
    assert subscription.next_message_at_hand() is not None


def test_a_new_connection_is_asked_for_what_there_is_room_for() -> None:
    subscription = _subscription()
    subscription.push(b"a", 1, 2)
    assert subscription.opening().credit == 2


def test_a_queue_that_was_made_again_is_followed_and_one_that_was_not_ends_it() -> None:
    subscription = _subscription()
    subscription.failed(GONE)
    assert subscription.looked_for == [GONE]
    subscription.found_again(9, GONE)
    assert subscription.opened[-1].queue_id == 9
    subscription.push(b"a", 1, 1)
    subscription.found_again(None, GONE)
    assert subscription.is_open(), "there is still something to hand out"
    assert subscription.next_at_hand() is not None
    with pytest.raises(PenstockError, match="gone"):
        subscription.is_open()


def test_what_nobody_took_is_left_over() -> None:
    subscription = _subscription(credit=10)
    subscription.push(b"a", 1, 3)
    subscription.push(b"b", 8, 2)
    assert subscription.next_message_at_hand() is not None
    leases, messages = subscription.left_over()
    assert [lease.token for lease in leases] == [b"b"]
    assert [(lease.token, sequence) for lease, sequence in messages] == [(b"a", 2), (b"a", 3)]
    assert subscription.opening().credit == 10


@pytest.mark.parametrize("terms", [ConsumerTerms(0, 1, None, False), ConsumerTerms(1, 0, None, False)])
def test_terms_that_cannot_be_are_refused(terms: ConsumerTerms) -> None:
    with pytest.raises(PenstockError):
        terms.check()
