"""A turn makes its calls stage by stage, ends, and lets nobody suffer for another's defect."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.runtime.engine.turn import Turn
from tests.runtime.harness import async_test


@async_test
async def test_calls_are_made_in_order_after_everybody_who_is_ready_now() -> None:
    loop, made = asyncio.get_running_loop(), list[str]()
    turn = Turn(loop)
    turn.last(lambda: made.append("pump"))
    turn.later(lambda: made.append("first"))
    loop.call_soon(made.append, "after the turn")
    turn.later(lambda: made.append("second"))
    assert made == []
    await asyncio.sleep(0)
    assert made == ["first", "second", "pump", "after the turn"]


@async_test
async def test_what_comes_of_a_call_belongs_to_the_same_turn() -> None:
    made = list[str]()
    turn = Turn(asyncio.get_running_loop())

    def pump() -> None:
        made.append("pump")
        turn.later(answer)

    def answer() -> None:
        made.append("answer")
        turn.later(lambda: made.append("write"))

    turn.last(pump)
    turn.run()
    assert made == ["pump", "answer", "write"]


@async_test
async def test_a_turn_ends_though_its_last_call_asks_for_another() -> None:
    made = list[int]()
    turn = Turn(asyncio.get_running_loop())

    def again() -> None:
        made.append(len(made))
        turn.last(again)

    turn.last(again)
    turn.run()
    assert made == [0]
    await asyncio.sleep(0)  # the loop goes on with everybody else between two turns
    assert made == [0, 1]


@async_test
async def test_a_turn_that_was_run_before_it_was_due_is_not_run_twice() -> None:
    made = list[str]()
    turn = Turn(asyncio.get_running_loop())
    turn.later(lambda: made.append("once"))
    turn.run()
    await asyncio.sleep(0)
    assert made == ["once"]
    turn.later(turn.run)  # within itself it is no turn of its own
    await asyncio.sleep(0)
    assert made == ["once"]


@async_test
async def test_a_call_that_fails_is_reported_and_the_others_are_made() -> None:
    loop, made, reported = asyncio.get_running_loop(), list[str](), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, report: reported.append(report))
    turn = Turn(loop)

    def fail() -> None:
        raise ValueError("defect")

    turn.later(fail)
    turn.later(lambda: made.append("other"))
    turn.run()
    assert made == ["other"]
    assert [str(report["exception"]) for report in reported] == ["defect"]
