"""Consumers of a queue that was made through another front end: it is not found only where the store has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.cluster.layout.entries import PartitionEntry, QueueEntry, queue_key
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.routing import unheard
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.router import routed
from penstock.steps.runner import not_carried_out
from penstock.steps.step import Ask, Look, Outcome, Reply, Single, Stored, Until
from penstock.wire import messages
from tests.routing.test_memory import context_of, partition
from tests.routing.test_settling import newer, stored

QUEUE_ID = 10
QUEUE = QueueEntry(
    name="q10", queue_id=QUEUE_ID, settings=QueueSettings(), created_ms=0, partitions=[QUEUE_ID + 1]
)
PARTITION = partition(QUEUE_ID, 0)
BATCH = messages.DeliveredBatch(1, 1, 0, 10, 1, 0)
GIVEN = messages.Delivery(b"t" * 32, 5, [BATCH])

REQUESTS: list[tuple[messages.Request, messages.Answer]] = [
    (messages.Receive(QUEUE_ID, 5), GIVEN),
    (messages.ReceiveAny([messages.WeightedQueue(QUEUE_ID, 1)], 5), GIVEN),
    (messages.ReadLog(QUEUE_ID, 1), messages.LogSlice([], 1, 1)),
    (messages.FindOffset(QUEUE_ID), messages.LogBounds(1, 1, 1)),
    (messages.CommitOffset(QUEUE_ID, "readers", 1), messages.Done()),
    (messages.ListGroups(QUEUE_ID), messages.GroupList([], False)),
]
Asked = pytest.mark.parametrize(("request_", "answer"), REQUESTS, ids=lambda one: type(one).__name__)


class FrontEnd:
    """A front end that has heard of nothing yet, nodes that answer, and a store that answers when the test says so."""

    def __init__(self, *entries: QueueEntry | PartitionEntry | tuple[str, bytes]) -> None:
        self.map = ClusterMap()
        self.context = context_of(self.map)
        self.store = stored(*entries)
        self.away = False
        self.answer: messages.Answer = GIVEN
        self.asked: list[int] = []
        self.looks: list[tuple[Look, Callable[[Any], None]]] = []
        self.looked = 0
        self.waiting: list[tuple[Until, Callable[[bool], None]]] = []
        self.map.listen(self._changed)

    def _changed(self, key: str) -> None:
        for one in [one for one in self.waiting if one[0].holds()]:
            self.waiting.remove(one)
            one[1](True)

    # -- what steps are carried out with ---------------------------------------------------------------------

    def start(self, step: Single, done: Callable[[Any], None]) -> int:
        match step:
            case Ask():
                self.asked.append(step.partition)
                done(Reply(self.answer))
            case Look():
                self.looked += 1
                self.looks.append((step, done))
            case Until():
                self.waiting.append((step, done))
            case _:
                raise not_carried_out(step)
        return 0

    def cancel(self, call: int) -> None:
        raise NotImplementedError

    # -- the test --------------------------------------------------------------------------------------------

    def begin(self, request: messages.Request) -> list[Outcome]:
        """Where the outcome of a request will be."""
        ended: list[Outcome] = []
        routed(self.context, request, b"", self, ended.append).start()
        return ended

    def serve_store(self) -> None:
        """The store answers all that is asked of it."""
        while self.looks:
            step, done = self.looks.pop(0)
            if self.away:
                done(PenstockError(ErrorCode.METADATA_UNAVAILABLE, "it is away"))
                continue
            value = self.store.get(step.key)
            self.map.apply(step.key, value)
            done(Stored(value, 1 if value is not None else 0))

    def ask(self, request: messages.Request) -> Outcome:
        ended = self.begin(request)
        self.serve_store()
        (outcome,) = ended
        return outcome


@Asked
def test_a_queue_that_was_made_through_another_front_end_is_found(
    request_: messages.Request, answer: messages.Answer
) -> None:
    front_end = FrontEnd(QUEUE, PARTITION)
    front_end.answer = answer
    assert isinstance(front_end.ask(request_), Reply)
    assert front_end.asked
    looked = front_end.looked
    assert isinstance(front_end.ask(request_), Reply)
    assert front_end.looked == looked, "by then it is known"


def test_where_a_log_can_be_read_is_looked_up_too() -> None:
    assert FrontEnd(QUEUE, PARTITION).ask(messages.LocateLog(QUEUE_ID)) == Reply(messages.LogAddress())


@Asked
def test_a_store_that_cannot_be_asked_does_not_make_a_queue_gone(
    request_: messages.Request, answer: messages.Answer
) -> None:
    front_end = FrontEnd(QUEUE, PARTITION)
    front_end.away = True
    for _ in range(2):
        outcome = front_end.ask(request_)
        assert isinstance(outcome, PenstockError)
        assert outcome.retryable


@Asked
def test_what_the_store_does_not_have_is_not_found_and_looked_for_once(
    request_: messages.Request, answer: messages.Answer
) -> None:
    front_end = FrontEnd()
    for _ in range(5):
        outcome = front_end.ask(request_)
        assert isinstance(outcome, PenstockError)
        assert outcome.code is ErrorCode.QUEUE_NOT_FOUND
    assert front_end.looked == 1


@pytest.mark.parametrize("is_there", [True, False])
def test_many_receives_at_once_are_one_look(is_there: bool) -> None:
    front_end = FrontEnd(QUEUE, PARTITION) if is_there else FrontEnd()
    ended = [front_end.begin(messages.Receive(QUEUE_ID, 5)) for _ in range(50)]
    assert (front_end.looked, len(front_end.waiting)) == (1, 49)
    front_end.serve_store()
    assert front_end.looked == (2 if is_there else 1), "its partition, and then its queue"
    for (outcome,) in ended:
        if is_there:
            assert isinstance(outcome, Reply)
        else:
            assert isinstance(outcome, PenstockError)
            assert outcome.code is ErrorCode.QUEUE_NOT_FOUND


def test_those_who_wait_for_a_look_that_fails_may_ask_again() -> None:
    front_end = FrontEnd(QUEUE, PARTITION)
    front_end.away = True
    ended = [front_end.begin(messages.Receive(QUEUE_ID, 5)) for _ in range(5)]
    front_end.serve_store()
    assert front_end.looked == 1
    for (outcome,) in ended:
        assert isinstance(outcome, PenstockError)
        assert outcome.retryable
    front_end.away = False
    assert isinstance(front_end.ask(messages.Receive(QUEUE_ID, 5)), Reply)


def test_a_queue_that_only_newer_front_ends_serve_is_not_called_gone() -> None:
    front_end = FrontEnd((queue_key("q10"), newer(QUEUE)), PARTITION)
    outcome = front_end.ask(messages.Receive(QUEUE_ID, 5))
    assert isinstance(outcome, PenstockError)
    assert outcome.code is ErrorCode.UNSUPPORTED_VERSION


def test_only_so_many_requests_look_for_queues_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unheard, "LOOKS_AT_ONCE", 3)
    front_end = FrontEnd(QUEUE, PARTITION)
    made_up = [front_end.begin(messages.Receive(1_000 + number)) for number in (1, 2, 2)]
    receipts = [messages.Receipt((2_000).to_bytes(8, "little") + bytes(24), [(1, 1)])]
    for request in (messages.Receive(QUEUE_ID), messages.Delete(receipts)):
        (refused,) = front_end.begin(request)
        assert isinstance(refused, PenstockError)
        assert (refused.code, refused.retryable) == (ErrorCode.METADATA_UNAVAILABLE, True)
    assert front_end.looked == 2
    front_end.serve_store()
    for (outcome,) in made_up:
        assert isinstance(outcome, PenstockError)
        assert outcome.code is ErrorCode.QUEUE_NOT_FOUND
    assert isinstance(front_end.ask(messages.Receive(QUEUE_ID)), Reply)
    assert front_end.context.looks == 0
