"""Clients of a run that speak SQS: boto3, each in a thread of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tests.chaos.told import VISIBILITY_SECONDS, WAIT_SECONDS, Told
from tests.process.programs import client

PAUSE_SECONDS = 0.5
BATCH = 10
ATTEMPTS = 10
"""Of boto3 where its own tries must be enough; the time between them grows to 20 seconds."""


@dataclass
class SqsClients:
    """Senders and receivers of one queue."""

    told: Told
    url: str
    queue: str
    queue_url: str
    threads: Executor

    @property
    def ordered(self) -> bool:
        """Whether it is a FIFO queue."""
        return self.queue.endswith(".fifo")

    async def sender(self, name: str) -> None:
        """Sends one message after the other; on a FIFO queue again and again until it is there, once."""
        sqs = self._client()
        number = 0
        while not self.told.senders_end.is_set():
            message = f"{name}/{number}"
            self.told.ledger.begin(message)
            number += 1
            once = {"MessageGroupId": name, "MessageDeduplicationId": message} if self.ordered else {}
            said = None
            while said is None:
                said = await self._call(
                    "send", sqs.send_message, QueueUrl=self.queue_url, MessageBody=message, **once
                )
                if not self.ordered:
                    break
            if said is not None:
                self.told.acknowledged(self.queue, name, message)
                await asyncio.sleep(PAUSE_SECONDS)

    async def receiver(self) -> None:
        """Receives and deletes whatever there is."""
        sqs = self._client()
        while not self.told.receivers_end.is_set():
            asked = time.monotonic()
            found = await self._call(
                "receive",
                sqs.receive_message,
                QueueUrl=self.queue_url,
                MaxNumberOfMessages=BATCH,
                WaitTimeSeconds=WAIT_SECONDS,
            )
            messages = (found or {}).get("Messages", [])
            names = [message["Body"] for message in messages]
            self.told.given(self.queue, names, asked, ordered=self.ordered)
            if not messages:
                continue
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(messages)
            ]
            done = await self._call(
                "delete", sqs.delete_message_batch, QueueUrl=self.queue_url, Entries=entries
            )
            # SQS says nothing of receipts that are too old: only a deletion well within the lease is one.
            if done is not None and time.monotonic() < asked + VISIBILITY_SECONDS:
                for one in done.get("Successful", []):
                    self.told.ledger.delete(names[int(one["Id"])], time.monotonic())

    def _client(self) -> Any:
        return client(self.url, attempts=1 if self.told.patient else ATTEMPTS)

    async def _call(self, what: str, call: Callable[..., Any], **members: Any) -> Any:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.threads, lambda: call(**members))
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            await self.told.failed(what, f"{status}: {error}", retryable=status >= 500)
        except BotoCoreError as error:
            await self.told.failed(what, str(error), retryable=True)  # no answer: SDKs try again
        return None
