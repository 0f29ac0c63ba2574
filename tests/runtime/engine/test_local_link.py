"""The local link over a real node."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import DescribeQueue, Done, Ping, Receive
from tests.runtime.engine.linked_node import ask, asked, create_queue, exercise, linked_node
from tests.runtime.harness import async_test


@async_test
async def test_the_link_asks_and_is_answered(tmp_path: Path) -> None:
    async with linked_node(tmp_path) as node:
        await exercise(node.link)
        with pytest.raises(PenstockError) as caught:
            await ask(node.link, DescribeQueue("missing"))
        assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND


@async_test
async def test_what_is_asked_from_within_an_answer_is_answered(tmp_path: Path) -> None:
    async with linked_node(tmp_path) as node:
        answers = []
        _, last = asked(node.link, Ping())

        def again(outcome: object) -> None:
            answers.append(outcome)
            if len(answers) < 10:
                node.link.ask(Ping(), b"", again)

        node.link.ask(Ping(), b"", again)
        while len(answers) < 10:
            assert (await ask(node.link, Ping())).answer == Done()
        await last


@async_test
async def test_closing_fails_what_is_outstanding_and_what_is_asked_after(tmp_path: Path) -> None:
    async with linked_node(tmp_path) as node:
        queue_id = await create_queue(node.link, "orders")
        ticket, waiting = asked(node.link, Receive(queue_id, 1, wait_ms=60_000))
        node.link.close()
        node.link.cancel(ticket)
        _, late = asked(node.link, Ping())
        for future in (waiting, late):
            with pytest.raises(PenstockError) as caught:
                await future
            assert caught.value.code is ErrorCode.UNREACHABLE


@async_test
async def test_a_node_that_has_failed_is_unreachable(tmp_path: Path) -> None:
    async with linked_node(tmp_path) as node:
        node.driver._fail(RuntimeError("planted"))
        with pytest.raises(PenstockError) as caught:
            await ask(node.link, Ping())
        assert caught.value.code is ErrorCode.UNREACHABLE
