"""One client with many expensive requests beside another with few cheap ones, on a running server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from penstock.runtime.embedded import running_server
from penstock.wire.messages import Done, Peek, Peeked, PeekFilter, Ping
from tests.runtime.harness import RawClient, async_test, small_config

PEEKS = 100


@async_test
async def test_a_cheap_request_does_not_wait_for_all_expensive_ones_of_another_client(tmp_path: Path) -> None:
    answered = 0

    async def read_all(client: RawClient) -> None:
        nonlocal answered
        for _ in range(PEEKS):
            assert isinstance(await client.answer(), Peeked)
            answered += 1

    async with running_server(tmp_path, small_config()) as server:
        greedy, modest = await RawClient.connect(server.port), await RawClient.connect(server.port)
        queue_id = await greedy.create_queue("full")
        for _ in range(10):
            await greedy.send(queue_id, [b"x"] * 1_000)
        for _ in range(PEEKS):  # each looks through 10,000 messages and finds none
            greedy.write(Peek(queue_id, filter=PeekFilter(body_contains=b"y")))
        reading = asyncio.create_task(read_all(greedy))
        for _ in range(5):
            assert await modest.ask(Ping()) == Done()
        assert answered < PEEKS / 2
        await reading
