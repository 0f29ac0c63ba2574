"""Many clients that send and receive all the time, natively and over SQS, and write into the ledger what they were told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

import penstock
from penstock.model.errors import PenstockError
from tests.chaos.ledger import Ledger
from tests.process.programs import client

STANDARD, ORDERED, SQS = "chaos-standard", "chaos-ordered", "chaos-sqs"
VISIBILITY_SECONDS = 8
SQS_SHARE = 8
"""One client of so many speaks SQS."""
_PAUSE_SECONDS = 0.02
_RETRY_SECONDS = 0.1
_WAIT_SECONDS = 1


class Workload:
    """Half of the clients send, half receive; each has a connection of its own."""

    def __init__(self, ledger: Ledger, url: str, sqs_url: str, clients: int) -> None:
        self._ledger = ledger
        self._url = url
        self._sqs_url = sqs_url
        self._pairs = max(3, clients // 2)
        self._sending = asyncio.Event()
        self._receiving = asyncio.Event()
        self._senders: list[asyncio.Task[None]] = []
        self._receivers: list[asyncio.Task[None]] = []
        self._queue_url = ""
        self.refused = 0
        """How often a client was told to try again."""

    async def start(self) -> None:
        """Makes the queues and lets everybody begin."""
        async with penstock.connect(self._url) as one:
            common: dict[str, Any] = {
                "replicas": 3,
                "replication": "sync",
                "min_in_sync": 2,
                "visibility_timeout": VISIBILITY_SECONDS,
            }
            await one.create_queue(STANDARD, partitions=3, **common)
            await one.create_queue(ORDERED, ordering="fifo", **common)
        sqs = client(self._sqs_url, attempts=5)
        attributes = {"VisibilityTimeout": str(VISIBILITY_SECONDS)}
        made = await asyncio.to_thread(sqs.create_queue, QueueName=SQS, Attributes=attributes)
        self._queue_url = made["QueueUrl"]
        for number in range(self._pairs):
            match number % SQS_SHARE:
                case 0:
                    sender, receiver = self._send_sqs(f"sqs-{number}"), self._receive_sqs()
                case 1 | 2:
                    sender = self._natively(ORDERED, partial(self._send, f"group-{number}", True))
                    receiver = self._natively(ORDERED, partial(self._receive, True))
                case _:
                    sender = self._natively(STANDARD, partial(self._send, f"client-{number}", False))
                    receiver = self._natively(STANDARD, partial(self._receive, False))
            self._senders.append(asyncio.create_task(sender))
            self._receivers.append(asyncio.create_task(receiver))

    async def stop_sending(self) -> None:
        """Lets every sender finish the message it is at."""
        self._sending.set()
        await asyncio.gather(*self._senders)

    async def stop(self) -> None:
        """Lets every receiver finish."""
        self._receiving.set()
        await asyncio.gather(*self._receivers)

    def check_alive(self) -> None:
        """Raises what ended a client that should never end."""
        for task in (*self._senders, *self._receivers):
            if task.done():
                task.result()

    # -- natively --------------------------------------------------------------------------------------------

    async def _natively(self, queue: str, work: Callable[[penstock.Queue], Awaitable[None]]) -> None:
        """Connects until it is let in: a front end may be down."""
        while not self._receiving.is_set():
            with suppress(PenstockError):
                async with penstock.connect(self._url, timeout=60) as one:
                    await work(one.queue(queue))
                    return
            await asyncio.sleep(_RETRY_SECONDS)

    async def _send(self, name: str, ordered: bool, queue: penstock.Queue) -> None:
        number = 0
        while not self._sending.is_set():
            message = f"{name}/{number}"
            self._ledger.begin(message)
            number += 1
            try:
                await queue.send(message.encode(), group=name if ordered else None)
            except PenstockError as error:
                await self._told(error)
            else:
                self._ledger.acknowledge(message)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _receive(self, ordered: bool, queue: penstock.Queue) -> None:
        while not self._receiving.is_set():
            asked = time.monotonic()
            try:
                messages = list(await queue.receive(10, wait=_WAIT_SECONDS))
                answered = time.monotonic()
                names = [bytes(message.body).decode() for message in messages]
                for name in names:
                    self._ledger.receive(name, asked, answered)
                    if ordered:
                        group, _, number = name.rpartition("/")
                        self._ledger.receive_in_order(name, group, int(number))
                if not messages:
                    continue
                settled = await queue.delete_batch(messages)
            except PenstockError as error:
                await self._told(error)
                continue
            for message, name in zip(messages, names, strict=True):
                if message.sequence not in settled.stale:
                    self._ledger.delete(name, time.monotonic())

    async def _told(self, error: PenstockError) -> None:
        """In a crash clients see errors that say: try again. Any other is a broken promise."""
        if not error.retryable:
            self._ledger.violations.append(f"a client was told {error.code}: {error.message}")
        self.refused += 1
        await asyncio.sleep(_RETRY_SECONDS)

    # -- over SQS --------------------------------------------------------------------------------------------

    async def _send_sqs(self, name: str) -> None:
        sqs = client(self._sqs_url, attempts=1)
        number = 0
        while not self._sending.is_set():
            message = f"{name}/{number}"
            self._ledger.begin(message)
            number += 1
            answer = await self._call(sqs.send_message, QueueUrl=self._queue_url, MessageBody=message)
            if answer is not None:
                self._ledger.acknowledge(message)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _receive_sqs(self) -> None:
        sqs = client(self._sqs_url, attempts=1)
        while not self._receiving.is_set():
            asked = time.monotonic()
            found = await self._call(
                sqs.receive_message,
                QueueUrl=self._queue_url,
                MaxNumberOfMessages=10,
                WaitTimeSeconds=_WAIT_SECONDS,
            )
            answered = time.monotonic()
            for message in (found or {}).get("Messages", []):
                self._ledger.receive(message["Body"], asked, answered)
                handle = message["ReceiptHandle"]
                # SQS says nothing of receipts that are too old: only a deletion well within the lease is one.
                done = await self._call(sqs.delete_message, QueueUrl=self._queue_url, ReceiptHandle=handle)
                if done is not None and time.monotonic() < asked + VISIBILITY_SECONDS:
                    self._ledger.delete(message["Body"], time.monotonic())

    async def _call(self, call: Callable[..., Any], **members: Any) -> Any:
        try:
            return await asyncio.to_thread(call, **members)
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status < 500:
                self._ledger.violations.append(f"an SQS client was told {status}: {error}")
        except BotoCoreError:
            pass  # no answer: SDKs try again
        self.refused += 1
        await asyncio.sleep(_RETRY_SECONDS)
        return None
