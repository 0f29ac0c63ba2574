"""Two producers, each a process with wrong clocks, before a server that is killed once: in order at the consumer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import penstock
from penstock import QueueOptions
from tests.process.server import ServerProcess

ROOT = Path(__file__).parents[2]
HOUR_US = 3_600_000_000
TURNS = 80
KILLED_AFTER = TURNS // 2
TEST_SECONDS = 300


class Made(NamedTuple):
    """A message, and when it was made by the clock that all processes share."""

    body: str
    made_ns: int
    took_ns: int
    uncertainty_us: int


class ShiftedProducer:
    """The process; see `shifted_producer`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._input, self._output = process, process.stdin, process.stdout

    async def say(self) -> dict[str, Any]:
        line = await self._output.readline()
        assert line, "the producer ended"
        said: dict[str, Any] = json.loads(line)
        return said

    async def make(self) -> Made:
        """Has it send a message; returns when that is acknowledged."""
        self._input.write(b"\n")
        return Made(**await self.say())

    async def end(self) -> None:
        self._input.close()
        assert await self._process.wait() == 0


@contextlib.asynccontextmanager
async def producers(url: str, queue: str) -> AsyncIterator[list[ShiftedProducer]]:
    """Two of them: one lives an hour ahead and too fast, the other an hour ago and too slowly."""
    both = []
    for name, shift, drift in (("ahead", "3600", "150"), ("behind", "-3600", "-150")):
        arguments = ("-m", "tests.process.shifted_producer", url, queue, name, shift, drift)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        both.append(ShiftedProducer(process))
    offsets = [(await producer.say())["offset_us"] for producer in both]
    assert offsets[1] - offsets[0] > 2 * HOUR_US - 60_000_000  # their clocks are as wrong as they should be
    yield both
    for producer in both:
        await producer.end()


async def in_turns(directory: Path, **options: Any) -> tuple[list[Made], list[str], int]:
    """What was made, in the order of making; what was received, in that order; and how much was late."""
    settings: QueueOptions = options  # type: ignore[assignment]  # settings by name
    server = ServerProcess(directory)
    await server.start()
    dice = random.Random(7)
    made: list[Made] = []
    received: list[str] = []
    try:
        async with penstock.connect(server.url) as client:
            queue = await client.create_queue("events", **settings)
            async with producers(server.url, "events") as both:
                for turn in range(TURNS):
                    made.append(await dice.choice(both).make())
                    if turn == KILLED_AFTER:
                        await server.kill()
                        await server.start()
            while len(received) < TURNS:
                messages = await queue.receive(20, wait=20)
                assert messages, f"{len(received)} of {TURNS} messages came"
                received += [message.text() for message in messages]
                await messages.delete()
            late = (await queue.describe()).statistics.late_total
    finally:
        await server.stop()
    return made, received, late


def run(directory: Path, **options: Any) -> tuple[list[Made], list[str], int]:
    async def within_time() -> tuple[list[Made], list[str], int]:
        async with asyncio.timeout(TEST_SECONDS):
            return await in_turns(directory, **options)

    return asyncio.run(within_time())


def test_server_stamps_keep_the_order_of_acknowledged_sends(tmp_path: Path) -> None:
    made, received, _ = run(tmp_path, ordering="clock")
    assert received == [one.body for one in made]  # each was acknowledged before the next began


def test_producer_stamps_keep_the_order_of_making_as_far_as_anybody_can_tell(tmp_path: Path) -> None:
    made, received, late = run(tmp_path, ordering="clock", stamps="producer", window=3, when_uncertain="hold")
    assert late == 0
    assert sorted(received) == sorted(one.body for one in made)
    place = {body: index for index, body in enumerate(received)}
    compared = 0
    for index, earlier in enumerate(made):
        for later in made[index + 1 :]:
            # The stamp is made within `took`; both clocks may be off by what they say.
            unclear_ns = earlier.took_ns + 1_000 * (earlier.uncertainty_us + later.uncertainty_us + 1_000)
            if later.made_ns - earlier.made_ns > unclear_ns:
                assert place[earlier.body] < place[later.body]
                compared += earlier.body.split("-")[0] != later.body.split("-")[0]
    assert compared > TURNS  # between the two producers, not only within each


def test_causal_order_keeps_each_session_in_its_own_order(tmp_path: Path) -> None:
    made, received, late = run(tmp_path, ordering="causal", window=0.2)
    assert late == 0
    for producer in ("ahead", "behind"):
        own = [one.body for one in made if one.body.startswith(producer)]
        assert [body for body in received if body.startswith(producer)] == own
