"""The checker of I12: what it takes for a mistake, and what it excuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.columnar.reading import Row
from penstock.simulation.cluster.metered_front_end import Life
from penstock.simulation.cluster.usage_rows import Call, check
from penstock.sqs.protocols.http import HttpResponse

FRONT_END = "front/1"


def call(number: int, *, is_answered: bool = True, is_cancelled: bool = False) -> Call:
    process = cast("Any", SimpleNamespace(lives=True))
    made = Call(process, FRONT_END, f"127.0.0.{number}", "SendMessage", "queue")
    if is_answered:
        made.answers.append(HttpResponse(200, (("x-amzn-RequestId", f"id-{number}"),), b"12345"))
    made.is_cancelled = is_cancelled
    return made


def row(of: int, **changes: Any) -> Row:
    return {
        "front_end": FRONT_END,
        "number": of,
        "address": f"127.0.0.{of}",
        "action": "SendMessage",
        "queue": "queue",
        "bytes_out": 5,
        "outcome": "ok",
        "status": 200,
        "request_id": f"id-{of}",
        **changes,
    }


def found(rows: list[Row], calls: list[Call], recorded: int, dropped: int = 0) -> list[str]:
    return [one.sentence for one in check(rows, calls, [Life(FRONT_END, recorded, dropped)], 0)]


def test_each_call_with_its_row_is_as_it_should_be() -> None:
    assert found([row(2), row(1)], [call(1), call(2)], 2) == []


def test_a_call_that_was_not_answered_may_have_a_row_or_none() -> None:
    killed = call(2, is_answered=False)
    assert found([row(1)], [call(1), killed], 1) == []
    assert found([row(1), row(2)], [call(1), killed], 2) == []
    assert any("more than once" in one for one in found([row(1), row(2), row(2)], [call(1), killed], 2))


def test_an_answered_call_without_a_row_is_a_mistake_unless_it_found_no_room() -> None:
    calls = [call(1), call(2)]
    assert any("are not in the log" in one for one in found([row(1)], calls, 1))
    assert any("are not in the log" in one for one in found([row(1)], calls, 2))
    assert found([row(1)], calls, 2, dropped=1) == []
    assert any("recorded 2, and 2 found no room" in one for one in found([row(1)], calls, 2, dropped=2))


def test_a_row_of_nobody_is_a_mistake() -> None:
    (sentence,) = found([row(1), row(2)], [call(1)], 2)
    assert "nobody made the calls" in sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"request_id": "id-9"},
        {"status": 500},
        {"outcome": "InternalFailure"},
        {"bytes_out": 4},
        {"action": "DeleteMessage"},
        {"queue": "other"},
    ],
)
def test_a_row_says_what_the_caller_knows(changes: dict[str, Any]) -> None:
    assert len(found([row(1, **changes)], [call(1)], 1)) == 1


def test_who_went_away_has_a_row_that_says_so() -> None:
    gone = call(1, is_answered=False, is_cancelled=True)
    assert found([row(1, outcome="cancelled", status=499)], [gone], 1) == []
    assert len(found([row(1)], [gone], 1)) == 1
    assert len(found([], [gone], 0)) == 1


def test_numbers_of_a_process_begin_with_one_and_never_come_again() -> None:
    calls = [call(1), call(2)]
    assert any("more than once" in one for one in found([row(1), row(2, number=1)], calls, 2))
    assert any("are numbered" in one for one in found([row(1), row(2, number=3)], calls, 2))
