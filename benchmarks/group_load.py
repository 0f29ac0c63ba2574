"""Receiving from several queues by weight, as a load process does it."""

from __future__ import annotations

import asyncio
from collections import Counter

import penstock
from benchmarks import tasks
from benchmarks.meter import Meter
from benchmarks.tasks import Outcome


async def receive_group(task: tasks.ReceiveGroup, timeout_seconds: float) -> Outcome:
    """Several workers, each with one request on its way; the order of the answers is that of the service."""
    served: Counter[str] = Counter()
    lowest = min(task.weights, key=task.weights.__getitem__)
    since_lowest = longest_gap = 0
    async with penstock.connect(task.url, timeout=timeout_seconds) as client:
        group = penstock.PriorityGroup(client, task.weights)
        await asyncio.gather(*(queue.describe() for queue in group.queues.values()))

        async def work() -> None:
            nonlocal since_lowest, longest_gap
            while served.total() < task.messages:
                messages = await group.receive(task.batch_messages, wait=10)
                for delivery in messages.deliveries:
                    served[delivery.queue_name] += len(delivery)
                    since_lowest = 0 if delivery.queue_name == lowest else since_lowest + len(delivery)
                    longest_gap = max(longest_gap, since_lowest)
                await messages.delete()

        meter = Meter()
        await asyncio.gather(*(work() for _ in range(task.in_flight)))
        return meter.outcome(served.total(), served=dict(served), longest_gap=longest_gap)
