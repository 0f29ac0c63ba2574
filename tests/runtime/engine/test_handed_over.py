"""Between a front end and the node of its process nothing is encoded to be decoded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.model.batch import encode_one
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire import messages
from penstock.wire.messages import DescribeQueue, ReadClock, Send, SendResult
from tests.runtime.engine.linked_node import ask, create_queue, linked_node
from tests.runtime.harness import async_test


@async_test
async def test_heads_are_neither_encoded_nor_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with linked_node(tmp_path) as node:
        queue_id = await create_queue(node.link, "orders")
        for module, name in _users_of("encode_message", "decode_request", "decode_answer"):
            monkeypatch.setattr(module, name, _refused)
        reply = await ask(node.link, Send(queue_id), encode_one(b"a message"))
        assert isinstance(reply.answer, SendResult)
        with pytest.raises(PenstockError) as caught:
            await ask(node.link, DescribeQueue("missing"))
        assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND


@async_test
async def test_the_clock_is_told_too(tmp_path: Path) -> None:
    async with linked_node(tmp_path) as node:
        assert isinstance((await ask(node.link, ReadClock())).answer, messages.ClockReading)


def _users_of(*names: str) -> list[tuple[Any, str]]:
    modules = [module for key, module in sys.modules.items() if key.startswith("penstock.")]
    return [(module, name) for module in modules for name in names if hasattr(module, name)]


def _refused(*arguments: object) -> None:
    raise AssertionError("something was encoded or decoded")
