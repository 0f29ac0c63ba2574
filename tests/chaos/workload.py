"""Many clients that send and receive all the time, natively and over SQS, on standard and on ordered queues."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import penstock
from tests.chaos.ledger import Ledger
from tests.chaos.native_clients import NativeClients
from tests.chaos.sqs_clients import SqsClients
from tests.chaos.told import VISIBILITY_SECONDS, Told
from tests.process.programs import client

STANDARD, ORDERED, SQS, SQS_ORDERED = "chaos-standard", "chaos-ordered", "chaos-sqs", "chaos-sqs.fifo"
QUEUES = (STANDARD, ORDERED, SQS, SQS_ORDERED)
PARTITIONS = {STANDARD: 3, ORDERED: 2, SQS: 2, SQS_ORDERED: 2}
_TURN = (SQS, SQS_ORDERED, ORDERED, STANDARD, STANDARD, ORDERED, STANDARD, STANDARD)
"""The queues of one pair of clients after the other."""


class Workload:
    """Half of the clients send, half receive."""

    def __init__(self, url: str, sqs_url: str, clients: int, *, patient: bool) -> None:
        self.told = Told(Ledger(VISIBILITY_SECONDS), patient)
        self._url = url
        self._sqs_url = sqs_url
        self._queues = [_TURN[number % len(_TURN)] for number in range(max(len(_TURN), clients // 2))]
        self._threads = ThreadPoolExecutor(2 * len(self._queues), "sqs client")
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._receivers: list[asyncio.Task[None]] = []

    @property
    def clients(self) -> int:
        """How many there are."""
        return 2 * len(self._queues)

    @property
    def sqs_clients(self) -> int:
        """How many of them are boto3."""
        return 2 * sum(queue in (SQS, SQS_ORDERED) for queue in self._queues)

    async def start(self) -> None:
        """Makes the queues unless they are there, and lets everybody begin."""
        common: dict[str, Any] = {
            "replicas": 3,
            "replication": "sync",
            "min_in_sync": 2,
            "visibility_timeout": VISIBILITY_SECONDS,
        }
        async with penstock.connect(self._url) as one:
            there = {queue.name async for queue in one.list_queues()}
            for queue in {STANDARD, ORDERED} - there:
                ordering: dict[str, Any] = {"ordering": "fifo"} if queue == ORDERED else {}
                await one.create_queue(queue, partitions=PARTITIONS[queue], **ordering, **common)
        kinds: dict[str, NativeClients | SqsClients] = {
            STANDARD: NativeClients(self.told, self._url, STANDARD, ordered=False),
            ORDERED: NativeClients(self.told, self._url, ORDERED, ordered=True),
        }
        for queue in (SQS, SQS_ORDERED):
            queue_url = await asyncio.to_thread(self._make_sqs_queue, queue)
            kinds[queue] = SqsClients(self.told, self._sqs_url, queue, queue_url, self._threads)
        run = secrets.token_hex(2)  # what an earlier run sent to the same queue counts as sent already
        for number, queue in enumerate(self._queues):
            name = f"{queue}-{run}-{number}"
            self._senders[name] = asyncio.create_task(kinds[queue].sender(name))
            self._receivers.append(asyncio.create_task(kinds[queue].receiver()))

    async def stop_sending(self, seconds: float) -> list[str]:
        """Lets every sender finish the message it is at. Returns those that could not; they are ended."""
        self.told.senders_end.set()
        late = await _end(self._senders.values(), seconds)
        return [name for name, task in self._senders.items() if task in late]

    async def stop(self, seconds: float) -> bool:
        """Lets every receiver finish. Returns whether some could not; they are ended."""
        self.told.receivers_end.set()
        late = await _end(self._receivers, seconds)
        self._threads.shutdown(wait=not late, cancel_futures=True)
        return bool(late)

    def check_alive(self) -> None:
        """Raises what ended a client that should never end."""
        for task in (*self._senders.values(), *self._receivers):
            if task.done():
                task.result()

    def silent_since(self, sent: dict[str, int], received: dict[str, int]) -> list[str]:
        """Senders that were not answered since then, and queues of which nobody received anything."""
        senders = [name for name in self._senders if self.told.sent[name] <= sent.get(name, 0)]
        queues = [queue for queue in QUEUES if self.told.received[queue] <= received.get(queue, 0)]
        return senders + queues

    def _make_sqs_queue(self, queue: str) -> str:
        attributes = {
            "VisibilityTimeout": str(VISIBILITY_SECONDS),
            "Penstock.Partitions": str(PARTITIONS[queue]),
            "Penstock.Replicas": "3",
            "Penstock.MinimumInSync": "2",
        }
        if queue.endswith(".fifo"):
            attributes["FifoQueue"] = "true"
        sqs = client(self._sqs_url, attempts=5)
        return str(sqs.create_queue(QueueName=queue, Attributes=attributes)["QueueUrl"])


async def _end(tasks: Iterable[asyncio.Task[None]], seconds: float) -> set[asyncio.Task[None]]:
    """Waits for tasks, raises what ended one of them, and cancels those that do not end in time."""
    done, late = await asyncio.wait(list(tasks), timeout=seconds)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for task in done:
        task.result()
    return late
