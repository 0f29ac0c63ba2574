"""When usage is handed on, and when again: decided without a clock or a socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.frontend.usage.handing_on import AGAIN_SECONDS, PAUSE_SECONDS, Rest, UsageHandingOn
from penstock.frontend.usage.internal_log import InternalLog
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.runtime.disk.spool_directory import SpoolDirectory
from penstock.steps.step import Ask, Reply
from penstock.usage.collector import BATCH_EVENTS, UsageCollector
from penstock.wire.messages import (
    CreateQueue,
    DescribeQueue,
    Done,
    QueueDescription,
    QueueStatistics,
    Send,
)
from tests.usage.test_usage import event

PAUSE = Rest(PAUSE_SECONDS, until_many=True)
AGAIN = Rest(AGAIN_SECONDS, until_many=False)
NOWHERE = PenstockError(ErrorCode.UNREACHABLE, "nobody answers")
NOT_FOUND = PenstockError(ErrorCode.QUEUE_NOT_FOUND, "there is none")
STATISTICS = msgspec.convert([*[0] * 6, None, *[0] * 11], QueueStatistics)
STORED = Reply(Done(), memoryview(b""))


def described(queue_id: int) -> Reply:
    answer = QueueDescription(queue_id, "usage", QueueSettings(), 0, STATISTICS)
    return Reply(answer, memoryview(b""))


class HandingOn:
    """Whoever carries the steps out."""

    def __init__(self, directory: Path) -> None:
        self.usage = UsageCollector(
            SpoolDirectory(directory), "front", token=bytes(range(16)), spool_bytes=1 << 20
        )
        self.handing_on = UsageHandingOn(self.usage, InternalLog("usage", "rows", lambda: 2), lambda: 0)
        self.steps = self.handing_on.run()

    def next(self, outcome: Reply | PenstockError | None = None) -> Any:
        if isinstance(outcome, PenstockError):
            return self.steps.throw(outcome)
        return self.steps.send(outcome)

    def record(self, count: int) -> None:
        for number in range(count):
            self.usage.record(event(number))

    def find(self) -> Any:
        """The first batch of a log that is there."""
        assert self.next() == PAUSE
        assert self.next().request == DescribeQueue("usage")
        return self.next(described(9))


@pytest.fixture
def handing_on(tmp_path: Path) -> HandingOn:
    return HandingOn(tmp_path)


def number_of(step: Any) -> tuple[int, int, int]:
    assert isinstance(step, Ask)
    assert isinstance(step.request, Send)
    assert step.request.internal
    return step.request.queue_id, step.request.producer, step.request.number


def test_nothing_is_asked_while_there_is_nothing(handing_on: HandingOn) -> None:
    assert [handing_on.next() for _ in range(3)] == [PAUSE] * 3
    handing_on.record(1)
    assert handing_on.next() == Ask(DescribeQueue("usage"))


def test_what_the_log_did_not_take_is_handed_on_again_as_it_was(handing_on: HandingOn) -> None:
    handing_on.record(2)
    first = handing_on.find()
    assert handing_on.next(NOWHERE) == AGAIN
    handing_on.record(3)
    assert handing_on.next() == PAUSE
    again = handing_on.next()
    assert (again, number_of(again)[2]) == (first, 1)
    assert handing_on.next(STORED) == PAUSE
    following = handing_on.next()
    assert number_of(following) == (*number_of(first)[:2], 2)
    assert handing_on.next(STORED) == PAUSE
    assert handing_on.usage.totals().reported == 5


def test_many_are_handed_on_one_after_the_other_without_a_pause(handing_on: HandingOn) -> None:
    handing_on.record(2 * BATCH_EVENTS + 1)
    numbers = [number_of(handing_on.find())[2]]
    for _ in range(2):
        step = handing_on.next(STORED)
        if step == PAUSE:
            step = handing_on.next()
        numbers.append(number_of(step)[2])
    assert numbers == [1, 2, 3]


def test_the_log_is_made_where_there_is_none_and_found_where_another_was_quicker(
    handing_on: HandingOn,
) -> None:
    handing_on.record(1)
    handing_on.next()
    assert handing_on.next().request == DescribeQueue("usage")
    making = handing_on.next(NOT_FOUND).request
    assert isinstance(making, CreateQueue)
    assert (making.name, making.settings.replicas) == ("usage", 2)
    looking = handing_on.next(PenstockError(ErrorCode.QUEUE_EXISTS, "it is there"))
    assert looking.request == DescribeQueue("usage")
    assert number_of(handing_on.next(described(4)))[0] == 4


def test_a_log_that_was_deleted_is_looked_for_again(handing_on: HandingOn) -> None:
    handing_on.record(1)
    handing_on.find()
    assert handing_on.next(NOT_FOUND) == AGAIN
    assert handing_on.next() == PAUSE
    assert handing_on.next().request == DescribeQueue("usage")


def test_whoever_closes_hands_on_what_there_is_and_waits_for_nothing(handing_on: HandingOn) -> None:
    handing_on.record(BATCH_EVENTS + 1)
    handing_on.find()
    handing_on.handing_on.closing = True
    assert number_of(handing_on.next(STORED))[2] == 2
    with pytest.raises(StopIteration):
        handing_on.next(NOWHERE)
    assert handing_on.usage.totals().waiting == 1
