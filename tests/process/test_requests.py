"""Requests and priority groups against `penstock serve` as a process of its own: killed, and reached through SQS."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Any

import boto3
import pytest

import penstock
from tests.process.server import ServerProcess

TEST_SECONDS = 300
SQS_GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "sqs.md"


def run(test: Any) -> None:
    async def within_time() -> None:
        async with asyncio.timeout(TEST_SECONDS):
            await test

    asyncio.run(within_time())


def test_a_request_that_was_stored_gets_its_reply_although_the_server_was_killed(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = ServerProcess(tmp_path / "data")
        await server.start()
        try:
            async with penstock.connect(server.url) as asker, penstock.connect(server.url) as worker:
                queue = await asker.create_queue("work")
                asking = [asyncio.create_task(queue.request(str(n), timeout=60)) for n in range(20)]
                received: list[penstock.Message] = []
                while len(received) < 20:
                    received += await worker.queue("work").receive(20, wait=20)
                for message in received[:10]:
                    await message.reply(message.body)
                await server.kill()
                await server.start()
                for message in received[10:]:
                    await message.reply(message.body)
                replies = await asyncio.gather(*asking)
                assert [reply.text() for reply in replies] == [str(n) for n in range(20)]
        finally:
            await server.stop()

    run(scenario())


def test_a_priority_group_goes_on_by_its_weights_after_a_kill(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = ServerProcess(tmp_path / "data")
        await server.start()
        try:
            async with penstock.connect(server.url) as client:
                weights = {"high": 8, "low": 1}
                for name in weights:
                    await (await client.create_queue(name)).send_batch([name] * 400)
                taken: Counter[str] = Counter()
                async with penstock.PriorityGroup(client, weights).consume(batch_messages=9) as consumer:
                    async for message in consumer:
                        await message.delete()
                        taken[message.queue_name] += 1
                        if taken.total() == 90:
                            await server.kill()
                            await server.start()
                        if taken.total() == 180:
                            break
                assert abs(taken["high"] - 160) <= 9
                assert abs(taken["low"] - 20) <= 9
        finally:
            await server.stop()

    run(scenario())


@pytest.mark.parametrize(("outcome", "body"), [("succeeded", "42"), ("failed", "no idea")])
def test_an_sqs_client_replies_as_the_guide_says(tmp_path: Path, outcome: str, body: str) -> None:
    (snippet,) = re.findall(
        r"^```python\n(def reply\(.*?)^```", SQS_GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )

    def answer(sqs_url: str) -> dict[str, str]:
        sqs = boto3.client(
            "sqs",
            endpoint_url=sqs_url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        namespace: dict[str, Any] = {"sqs": sqs}
        exec(snippet, namespace)
        url = sqs.get_queue_url(QueueName="work")["QueueUrl"]
        received = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20, MessageAttributeNames=["penstock.*"])
        (message,) = received["Messages"]
        namespace["reply"](message, body, outcome)
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        sqs.close()
        return {"asked": message["Body"]}

    async def scenario() -> None:
        server = ServerProcess(tmp_path / "data")
        ready = await server.start()
        try:
            async with penstock.connect(server.url) as client:
                queue = await client.create_queue("work")
                asking = asyncio.create_task(queue.request("what is it?", timeout=60))
                assert await asyncio.to_thread(answer, str(ready["sqs_url"])) == {"asked": "what is it?"}
                reply = await asking
                assert (reply.text(), reply.outcome, reply.attributes) == (body, outcome, {})
        finally:
            await server.stop()

    run(scenario())
