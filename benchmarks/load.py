"""The load process: reads tasks, one JSON line each, carries them out with the client library or over SQS, answers.

Runs as `python -m benchmarks.load`, apart from the server and from the process that asks. Bodies are read
off the wire and checked against their frame's checksum, but not cut into single messages.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import deque

import msgspec
import uvloop

import penstock
from benchmarks import tasks
from benchmarks.group_load import receive_group
from benchmarks.meter import Meter
from benchmarks.sqs.load import perform as perform_through_sqs
from benchmarks.tasks import Outcome, Task
from penstock.model.errors import ErrorCode

_STAMP_BYTES = 8
_DELETES_UNDER_WAY = 64
_TIMEOUT_SECONDS = 10.0
_tasks: msgspec.json.Decoder[Task] = msgspec.json.Decoder(Task)


async def publish(task: tasks.Publish) -> Outcome:
    """Several workers, each with one batch on its way, share the connection."""
    async with penstock.connect(task.url, timeout=_TIMEOUT_SECONDS) as client:
        queue = client.queue(task.queue)
        await queue.describe()
        batches = _batches(task)
        left = -(-task.messages // task.batch_messages)
        number = 0

        async def work() -> None:
            nonlocal left, number
            while left > 0:
                left -= 1
                number += 1
                await queue.send_batch(batches[number % len(batches)])

        meter = Meter()
        await asyncio.gather(*(work() for _ in range(task.in_flight)))
        return meter.outcome(number * task.batch_messages)


def _batches(task: tasks.Publish) -> list[list[penstock.OutgoingMessage | bytes]]:
    body = os.urandom(task.size_bytes)
    if not task.groups:
        return [[body] * task.batch_messages]
    names = [f"group-{number}" for number in range(task.groups)]
    return [
        [penstock.OutgoingMessage(body, group=name) for name in names[first : first + task.batch_messages]]
        for first in range(0, task.groups, task.batch_messages)
    ]


def _group(number: int, groups: int) -> str | None:
    return f"group-{number % groups}" if groups else None


async def receive(task: tasks.Receive) -> Outcome:
    """Deletes are not waited for one by one; all are answered before the clock stops."""
    async with penstock.connect(task.url, timeout=_TIMEOUT_SECONDS) as client:
        queue = client.queue(task.queue)
        await queue.describe()
        meter = Meter()
        received = 0
        deletes: deque[asyncio.Future[penstock.Settlement]] = deque()
        consumer = queue.consume_batches(credit=task.credit, batch_messages=task.batch_messages)
        async with consumer:
            async for delivery in consumer:
                received += len(delivery)
                deletes.append(delivery.delete())
                if len(deletes) > _DELETES_UNDER_WAY:
                    await deletes.popleft()
                if received >= task.messages:
                    break
            for delete in deletes:
                await delete
            return meter.outcome(received)


async def send_singly(task: tasks.SendSingly) -> Outcome:
    """The time from asking to the acknowledgement, message by message."""
    body = os.urandom(task.size_bytes)
    samples: list[int] = []
    async with penstock.connect(task.url, timeout=_TIMEOUT_SECONDS) as client:
        queue = client.queue(task.queue)
        await queue.describe()
        meter = Meter()
        for number in range(task.messages):
            group = _group(number, task.groups)
            started = time.perf_counter_ns()
            await queue.send(body, group=group)
            samples.append(time.perf_counter_ns() - started)
        return meter.outcome(task.messages, samples)


async def send_paced(task: tasks.SendPaced) -> Outcome:
    """A message is sent when its time has come, even if those before are not acknowledged yet."""
    rest = os.urandom(task.size_bytes - _STAMP_BYTES)
    loop = asyncio.get_running_loop()
    under_way: set[asyncio.Task[penstock.SentMessage]] = set()
    async with penstock.connect(task.url, timeout=_TIMEOUT_SECONDS) as client:
        queue = client.queue(task.queue)
        await queue.describe()
        meter = Meter()
        beginning = loop.time()
        for number in range(task.messages):
            wait = beginning + number / task.rate - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            stamp = time.monotonic_ns().to_bytes(_STAMP_BYTES, "little")
            sending = loop.create_task(queue.send(stamp + rest, group=_group(number, task.groups)))
            under_way.add(sending)
            sending.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)
        return meter.outcome(task.messages)


async def watch(task: tasks.Watch) -> Outcome:
    """The age of each message when the consumer holds it in its hands."""
    samples: list[int] = []
    async with penstock.connect(task.url, timeout=_TIMEOUT_SECONDS) as client:
        queue = client.queue(task.queue)
        consumer = queue.consume_batches(credit=1_000, batch_messages=100)
        async with consumer:
            _answer(tasks.Ready())
            meter = Meter()
            while len(samples) < task.messages:
                try:
                    async with asyncio.timeout(task.quiet_seconds):
                        delivery = await anext(consumer)
                except TimeoutError:
                    break
                bodies = delivery.bodies()
                now = time.monotonic_ns()
                samples += [now - int.from_bytes(body[:_STAMP_BYTES], "little") for body in bodies]
                delete = delivery.delete()
                if len(samples) >= task.messages:
                    await delete
            return meter.outcome(len(samples), samples)


async def receive_rounds(task: tasks.ReceiveRounds) -> Outcome:
    """Each round receives with several requests at once, and ends when the last delete is answered."""
    body = os.urandom(task.size_bytes)
    requests = -(-task.messages // task.batch_messages)
    timed = 0.0
    received = 0
    async with penstock.connect(task.url, timeout=_TIMEOUT_SECONDS) as client:
        queue = client.queue(task.queue)
        await queue.describe()

        async def take() -> int:
            messages = await queue.receive(task.batch_messages, wait=10)
            await queue.delete_batch(messages)
            return len(messages)

        meter = Meter()
        for _ in range(task.rounds):
            await asyncio.gather(*(queue.send_batch([body] * task.batch_messages) for _ in range(requests)))
            started = time.perf_counter()
            received += sum(await asyncio.gather(*(take() for _ in range(requests))))
            timed += time.perf_counter() - started
        return meter.outcome(received, timed_seconds=timed)


async def read_log(task: tasks.ReadLog) -> Outcome:
    """One reader, which asks for slices ahead."""
    async with penstock.connect(task.url, timeout=_TIMEOUT_SECONDS) as client:
        queue = client.queue(task.queue)
        await queue.describe()
        read = 0
        meter = Meter()
        async with queue.log().batches(limit=task.messages, direct=task.direct) as slices:
            async for one in slices:
                read += len(one.bodies()) if task.bodies else len(one)
        if task.direct and not queue.log().direct_bytes:
            raise penstock.PenstockError(
                ErrorCode.UNREACHABLE, "no node could be read from without a front end"
            )
        return meter.outcome(read)


async def perform(task: Task) -> Outcome:
    """Carries a task out."""
    match task:
        case tasks.Publish():
            return await publish(task)
        case tasks.Receive():
            return await receive(task)
        case tasks.SendSingly():
            return await send_singly(task)
        case tasks.SendPaced():
            return await send_paced(task)
        case tasks.Watch():
            return await watch(task)
        case tasks.ReceiveGroup():
            return await receive_group(task, _TIMEOUT_SECONDS)
        case tasks.ReceiveRounds():
            return await receive_rounds(task)
        case tasks.ReadLog():
            return await read_log(task)
        case _:
            return await perform_through_sqs(task, _turn)


async def _turn() -> None:
    """Says that everything stands, and waits for the line that says to go on."""
    _answer(tasks.Ready())
    await asyncio.to_thread(sys.stdin.buffer.readline)


def _answer(answer: tasks.Answer) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Serves until standard input ends."""
    for line in sys.stdin.buffer:
        try:
            _answer(uvloop.run(perform(_tasks.decode(line))))
        except Exception as error:
            _answer(tasks.TaskFailed(f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main()
