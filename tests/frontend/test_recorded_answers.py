"""Answers of one turn: all of them on record before the first one leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.frontend.usage.record_usage import RecordedAnswers
from penstock.runtime.disk.spool_directory import SpoolDirectory
from penstock.sqs.protocols.http import HttpResponse
from penstock.usage.collector import BLOCK_EVENTS, UsageCollector
from penstock.usage.event import Row
from tests.frontend.pipeline import logged

RESPONSE = HttpResponse(200, (), b"")


def row(number: int) -> Row:
    return (0, "", "", "", "SendMessage", "", 1, 0, 0, "ok", 200, 0, str(number))


class Answers:
    """A place for answers, a turn that ends when it is told to, and the record."""

    def __init__(self, directory: Path) -> None:
        self.usage = UsageCollector(SpoolDirectory(directory), "host", token=bytes(16), spool_bytes=1 << 20)
        self._later: list[Callable[[], None]] = []
        self.answers = RecordedAnswers(self.usage, self._later.append)

    def end_turn(self) -> None:
        later = self._later[:]
        self._later.clear()
        for call in later:
            call()

    @property
    def recorded(self) -> int:
        return self.usage.totals().recorded


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    return Answers(tmp_path)


def test_no_answer_leaves_before_all_of_its_turn_are_on_record(answers: Answers) -> None:
    seen: list[tuple[int, int]] = []

    def left(number: int) -> Callable[[HttpResponse], None]:
        return lambda _: seen.append((number, answers.recorded))

    for number in range(3):
        answers.answers.leave(row(number), left(number), RESPONSE)
    assert (seen, answers.recorded) == ([], 0)
    answers.end_turn()
    assert seen == [(0, 3), (1, 3), (2, 3)]
    answers.answers.leave(row(3), left(3), RESPONSE)
    answers.end_turn()
    assert seen[3:] == [(3, 4)]


def test_many_do_not_wait_for_the_end_of_the_turn(answers: Answers) -> None:
    left: list[HttpResponse] = []
    for number in range(BLOCK_EVENTS + 1):
        answers.answers.leave(row(number), left.append, RESPONSE)
    assert (len(left), answers.recorded) == (BLOCK_EVENTS, BLOCK_EVENTS)
    answers.end_turn()
    assert (len(left), answers.recorded) == (BLOCK_EVENTS + 1, BLOCK_EVENTS + 1)
    answers.end_turn()
    assert len(left) == BLOCK_EVENTS + 1


def test_one_who_cannot_take_the_answer_does_not_stop_the_others(answers: Answers) -> None:
    left: list[HttpResponse] = []

    def broken(response: HttpResponse) -> None:
        raise RuntimeError("no use for it")

    answers.answers.leave(row(0), broken, RESPONSE)
    answers.answers.leave(row(1), left.append, RESPONSE)
    with logged() as lines:
        answers.end_turn()
    assert left == [RESPONSE]
    assert "this is a defect of Penstock" in lines[0]


def test_who_does_not_wait_any_more_is_on_record_at_once(answers: Answers) -> None:
    answers.answers.note(row(0))
    assert answers.recorded == 1
