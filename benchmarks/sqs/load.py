"""Tasks of the SQS server, carried out in a load process."""

from __future__ import annotations

from typing import assert_never

from benchmarks.meter import Meter
from benchmarks.sqs import tasks
from benchmarks.sqs.singles import long_poll, send_singly
from benchmarks.sqs.streams import Receiving, Sending, SendingBatches
from benchmarks.sqs.tasks import SqsTask
from benchmarks.sqs.waits import Turn, hold_connections, hold_polls
from benchmarks.tasks import Outcome


async def perform(task: SqsTask, turn: Turn) -> Outcome:
    """Carries a task out; `turn` is how it waits in between."""
    match task:
        case tasks.Send():
            stream = Sending(task) if task.batch_messages == 1 else SendingBatches(task)
            await stream.open(task.endpoint, task.connections)
            meter = Meter()
            await stream.run()
            return meter.outcome(task.messages - task.messages % task.batch_messages)
        case tasks.ReceiveAndDelete():
            receiving = Receiving(task)
            await receiving.open(task.endpoint, task.connections)
            meter = Meter()
            await receiving.run()
            return meter.outcome(receiving.received)
        case tasks.SendSingly():
            meter = Meter()
            samples = send_singly(task)
            return meter.outcome(len(samples), samples)
        case tasks.LongPoll():
            meter = Meter()
            samples = long_poll(task)
            return meter.outcome(len(samples), samples)
        case tasks.HoldConnections():
            meter = Meter()
            return meter.outcome(await hold_connections(task, turn))
        case tasks.HoldPolls():
            meter = Meter()
            polls, seconds = await hold_polls(task, turn)
            return meter.outcome(polls, timed_seconds=seconds)
        case _:
            assert_never(task)
