"""How a producer gathers batches, and how many it keeps on their way."""

from __future__ import annotations

import pytest

from penstock.client_core.gathering import GatheredBatch, Gathering
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Send, SendResult


class OutgoingBatch(GatheredBatch):
    """A batch of the producer below."""

    __slots__ = ("_producer",)

    def __init__(self, producer: Producer) -> None:
        super().__init__()
        self._producer = producer

    def head(self, queue_id: int, number: int, after: int) -> Send:
        raise AssertionError("nothing is sent here")

    def settled(self) -> None:
        self._producer._finished(self)


class Producer(Gathering[OutgoingBatch]):
    """Launches into the void; the test says what became of it."""

    def __init__(self, *, in_flight: int = 2, in_flight_bytes: int = 100) -> None:
        super().__init__(3, 10, 0.5, in_flight, in_flight_bytes)
        self.time = 0.0
        self.timers: list[float] = []
        self.launched: list[OutgoingBatch] = []
        self.admissions = 0
        self.is_ready = True

    def _new_batch(self) -> OutgoingBatch:
        return OutgoingBatch(self)

    def _now(self) -> float:
        return self.time

    def _set_timer(self, at: float) -> None:
        self.timers.append(at)

    def _may_launch(self, batch: OutgoingBatch) -> bool:
        return self.is_ready

    def _launch(self, batch: OutgoingBatch) -> None:
        self.launched.append(batch)

    def _admit(self) -> None:
        self.admissions += 1


def is_held(producer: Producer) -> bool:
    return producer._held


def contents(producer: Producer) -> list[list[object]]:
    return [list(batch.messages) for batch in producer.launched]


def test_a_batch_leaves_when_it_is_full_in_messages_or_bytes() -> None:
    producer = Producer(in_flight=9)
    assert [producer._put(letter, 1)[1] for letter in "abcd"] == [0, 1, 2, 0]
    assert contents(producer) == [["a", "b", "c"]]
    producer._put("large", 9)
    producer._put("too large beside it", 2)
    assert contents(producer) == [["a", "b", "c"], ["d", "large"]]
    producer._put_all(["x", "y"], 2)
    assert contents(producer)[2] == ["too large beside it", "x", "y"]


def test_a_batch_leaves_after_its_linger_and_one_timer_serves_all() -> None:
    producer = Producer(in_flight=9)
    producer._put("a", 1)
    producer.time = 0.4
    for letter in "bcd":
        producer._put(letter, 1)
    assert producer.timers == [0.5]
    producer.time = 0.5
    producer._lingered()
    assert producer.timers == [0.5, 0.9]
    producer.time = 0.9
    producer._lingered()
    assert contents(producer) == [["a", "b", "c"], ["d"]]
    producer._lingered()
    assert len(producer.timers) == 2


def test_no_more_is_on_its_way_than_allowed_and_senders_wait() -> None:
    producer = Producer()
    producer._put_all(list("abc"), 3)
    producer._put_all(list("def"), 3)
    assert not is_held(producer)
    producer._put_all(list("ghi"), 3)
    assert is_held(producer)
    assert len(producer.launched) == 2
    producer.launched[0].succeed(SendResult([(1, 3)], [], 1), memoryview(b""))
    assert len(producer.launched) == 3
    assert not is_held(producer)


def test_bytes_on_their_way_are_bounded_too_but_one_batch_always_may() -> None:
    producer = Producer(in_flight=9, in_flight_bytes=5)
    producer._put_all(list("abc"), 6)
    producer._put_all(list("def"), 1)
    assert contents(producer) == [["a", "b", "c"]]
    producer.launched[0].succeed(SendResult([(1, 3)], [], 1), memoryview(b""))
    assert len(producer.launched) == 2


def test_what_fails_is_kept_until_somebody_is_told() -> None:
    producer = Producer()
    producer._put_all(list("abc"), 3)
    producer.launched[0].give_up(PenstockError(ErrorCode.QUEUE_FULL, "full"))
    assert is_held(producer)
    (failure,) = producer.take_failures()
    assert failure.messages == list("abc")
    assert not is_held(producer)
    assert producer.take_failures() == []


@pytest.mark.parametrize("closed", [True, False])
def test_what_cannot_be_sent_at_all_fails_whole(closed: bool) -> None:
    producer = Producer()
    producer.is_ready = False
    producer._put_all(list("abc"), 3)
    producer._put_all(list("def"), 3)
    producer._closed = closed
    producer._fail_backlog(PenstockError(ErrorCode.QUEUE_NOT_FOUND, "gone"))
    assert [failure.messages for failure in producer.take_failures()] == [list("abc"), list("def")]
    assert is_held(producer) is closed
