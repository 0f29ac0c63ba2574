"""aiobotocore: many long polls at once, some of them given up, and no message lost to any of them."""

import asyncio
import json
import os
import time
import uuid

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

POLLS = 60
GIVEN_UP = 20


async def all_get_one(client, url):
    """As many messages as polls: every poll gets exactly one."""
    polls = [
        asyncio.create_task(client.receive_message(QueueUrl=url, WaitTimeSeconds=20)) for _ in range(POLLS)
    ]
    await asyncio.sleep(0)
    began = time.monotonic()
    await asyncio.gather(
        *(client.send_message(QueueUrl=url, MessageBody=f"m{number}") for number in range(POLLS))
    )
    answers = await asyncio.gather(*polls)
    bodies = [message["Body"] for answer in answers for message in answer.get("Messages", [])]
    await asyncio.gather(
        *(
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            for answer in answers
            for message in answer.get("Messages", [])
        )
    )
    return {"bodies": len(bodies), "distinct": len(set(bodies)), "seconds": time.monotonic() - began}


async def given_up(client, url):
    """Polls whose client hung up do not swallow what is sent afterwards."""
    polls = [
        asyncio.create_task(client.receive_message(QueueUrl=url, WaitTimeSeconds=20)) for _ in range(GIVEN_UP)
    ]
    # A request on its own connection that is answered after the polls were written.
    await asyncio.wait(polls, timeout=1)
    for poll in polls:
        poll.cancel()
    await asyncio.gather(*polls, return_exceptions=True)
    # A closed connection is noticed by the server a moment later: only then is the send a fair question.
    await client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    for number in range(GIVEN_UP):
        await client.send_message(QueueUrl=url, MessageBody=f"later {number}")
    received = set()
    until = time.monotonic() + 20
    while len(received) < GIVEN_UP and time.monotonic() < until:
        answer = await client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        received |= {message["Body"] for message in answer.get("Messages", [])}
    return {"received": len(received)}


async def batches(client, url):
    """The paginator and the batch actions, which aiobotocore wraps in its own way."""
    entries = [{"Id": str(number), "MessageBody": f"b{number}"} for number in range(10)]
    sent = await client.send_message_batch(QueueUrl=url, Entries=entries)
    name = url.rsplit("/", 1)[1]
    found = []
    async for page in client.get_paginator("list_queues").paginate(QueueNamePrefix=name):
        found += page["QueueUrls"]
    try:
        await client.get_queue_url(QueueName=f"{name}-missing")
    except client.exceptions.QueueDoesNotExist as error:
        code = error.response["Error"]["Code"]
    return {"sent": len(sent["Successful"]), "listed": found == [url], "error": code}


async def main():
    config = AioConfig(max_pool_connections=POLLS * 3, retries={"total_max_attempts": 1}, read_timeout=60)
    endpoint = os.environ["PENSTOCK_SQS_ENDPOINT"]
    async with get_session().create_client("sqs", endpoint_url=endpoint, config=config) as client:
        results = {"polls": POLLS, "given_up_polls": GIVEN_UP}
        for part in (all_get_one, given_up, batches):
            url = (await client.create_queue(QueueName=f"aio-{uuid.uuid4().hex[:12]}"))["QueueUrl"]
            results[part.__name__] = await part(client, url)
            await client.delete_queue(QueueUrl=url)
    print(json.dumps(results))


asyncio.run(main())
