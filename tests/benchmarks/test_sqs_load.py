"""The SQS load against a server that knows the truth: it does what it says, signs it, and notices every lie."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from benchmarks.sqs import tasks
from benchmarks.sqs.answers import WrongAnswer, body_of
from benchmarks.sqs.load import perform
from benchmarks.sqs.singles import create_queue
from benchmarks.sqs.tasks import Endpoint, SqsTask
from benchmarks.tasks import Outcome
from tests.benchmarks.sqs_stub import SqsStub, running_stub

Scenario = Callable[[SqsStub, Endpoint], Awaitable[None]]


def with_stub(scenario: Scenario) -> None:
    async def run() -> None:
        async with running_stub() as (stub, endpoint), asyncio.timeout(60):
            await scenario(stub, endpoint)

    asyncio.run(run())


async def at_once() -> None:
    """Nobody has to be waited for."""


async def beside(task: SqsTask) -> Outcome:
    """Tasks of one request at a time block, so they run beside the loop that the server is on."""
    return await asyncio.to_thread(lambda: asyncio.run(perform(task, at_once)))


def sending(endpoint: Endpoint, messages: int, batch_messages: int) -> tasks.Send:
    return tasks.Send(
        endpoint=endpoint, connections=4, messages=messages, size_bytes=200, batch_messages=batch_messages
    )


@pytest.mark.parametrize(("batch_messages", "action"), [(1, "SendMessage"), (10, "SendMessageBatch")])
def test_every_message_is_sent_and_received_once(batch_messages: int, action: str) -> None:
    async def scenario(stub: SqsStub, endpoint: Endpoint) -> None:
        sent = await perform(sending(endpoint, 200, batch_messages), at_once)
        assert sent.messages == 200
        assert len(stub.waiting) == 200
        assert stub.actions == [action] * (200 // batch_messages)
        assert {len(text) for text in stub.waiting} == {200}
        assert len(set(stub.waiting)) > 20
        received = await perform(
            tasks.ReceiveAndDelete(endpoint=endpoint, connections=4, messages=200, size_bytes=200), at_once
        )
        assert received.messages == 200
        assert not stub.waiting
        assert not stub.leased

    with_stub(scenario)


def test_single_sends_and_long_polls_are_timed_one_by_one() -> None:
    async def scenario(stub: SqsStub, endpoint: Endpoint) -> None:
        await asyncio.to_thread(create_queue, endpoint, "load", VisibilityTimeout="600")
        sent = await beside(tasks.SendSingly(endpoint=endpoint, messages=5, size_bytes=20))
        assert sent.latency is not None
        assert sent.latency.samples == 5
        assert len(stub.waiting) == 5
        stub.waiting.clear()
        polled = await beside(tasks.LongPoll(endpoint=endpoint, messages=3, size_bytes=20))
        assert polled.latency is not None
        assert polled.latency.samples == 3
        assert not stub.waiting
        assert not stub.leased

    with_stub(scenario)


def test_what_waits_is_counted() -> None:
    async def scenario(stub: SqsStub, endpoint: Endpoint) -> None:
        stood: list[int] = []

        async def turn() -> None:
            stood.append(len(stub.actions))

        held = await perform(tasks.HoldConnections(endpoint=endpoint, connections=120), turn)
        assert held.messages == 120
        assert stub.actions == ["GetQueueAttributes"] * 240
        polled = await perform(tasks.HoldPolls(endpoint=endpoint, polls=30, size_bytes=20), turn)
        assert polled.messages == 30
        assert polled.timed_seconds > 0
        assert stood == [120, 240 + 30 + 1]
        assert len(stub.leased) == 30

    with_stub(scenario)


@pytest.mark.parametrize("batch_messages", [1, 10])
def test_a_wrong_checksum_fails_the_run(batch_messages: int) -> None:
    async def scenario(stub: SqsStub, endpoint: Endpoint) -> None:
        stub.md5 = lambda text: "0" * 32  # type: ignore[method-assign]  # a wrong digest, planted
        with pytest.raises(WrongAnswer, match="was answered"):
            await perform(sending(endpoint, 40, batch_messages), at_once)

    with_stub(scenario)


def test_a_message_nobody_sent_fails_the_run() -> None:
    async def scenario(stub: SqsStub, endpoint: Endpoint) -> None:
        stub.waiting.append("a message of somebody else")
        task = tasks.ReceiveAndDelete(endpoint=endpoint, connections=1, messages=1, size_bytes=200)
        with pytest.raises(WrongAnswer, match="somebody else"):
            await perform(task, at_once)

    with_stub(scenario)


def test_a_refusal_fails_the_run() -> None:
    async def scenario(stub: SqsStub, endpoint: Endpoint) -> None:
        stub.status = "503 Service Unavailable"
        with pytest.raises(WrongAnswer, match="503"):
            await perform(sending(endpoint, 10, 1), at_once)

    with_stub(scenario)


def test_answers_are_whole_and_single() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\nContent-Length: 2\r\n\r\n{}"
    assert all(body_of(answer[:size]) is None for size in range(len(answer)))
    assert body_of(answer) == b"{}"
    with pytest.raises(WrongAnswer, match="more was answered"):
        body_of(answer + b"H")
    with pytest.raises(WrongAnswer, match="without Content-Length"):
        body_of(b"HTTP/1.1 200 OK\r\n\r\n")
