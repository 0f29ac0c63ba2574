"""All members of etcd are gone for a while: queues that are known go on, nothing can be made, and front ends still start."""

from __future__ import annotations

import asyncio
import time

from botocore.exceptions import ClientError

import penstock
from penstock.model.errors import ErrorCode, PenstockError
from tests.chaos.campaign import LOOK_SECONDS, settle, under_load
from tests.chaos.outcome import Outcome
from tests.chaos.stage import Report, Stage
from tests.chaos.workload import Workload
from tests.process.programs import client

ANSWER_SECONDS = 180.0
"""Within which every client is answered again and again, however busy the machine is."""
REFUSED = "chaos-refused"


async def etcd_gone(stage: Stage, *, seconds: float, clients: int, report: Report) -> Outcome:
    """The tries that client libraries make by themselves must be enough for every send to queues that are there."""

    async def gone(workload: Workload, outcome: Outcome) -> None:
        members = [one.name for one in stage.plan.of_role("etcd")]
        report(f"etcd is gone for {seconds:g} s or more")
        outcome.faults.append("kill etcd (all members)")
        began = time.monotonic()
        for name in members:
            await asyncio.to_thread(stage.cluster.kill, name)
        try:
            await _all_answered(workload, outcome, "while etcd is gone")
            outcome.violations += await _creates_are_refused(stage)
            front_end = stage.plan.of_role("frontend")[0].name
            report(f"restarting {front_end} without etcd")
            outcome.faults.append("restart frontend (without etcd)")
            await asyncio.to_thread(stage.cluster.stop, front_end)
            await asyncio.to_thread(stage.cluster.start, front_end)
            await _all_answered(workload, outcome, "after a front end was started without etcd")
            while time.monotonic() < began + seconds and not outcome.violations:
                await _all_answered(workload, outcome, "while etcd is gone")
        finally:
            await asyncio.to_thread(stage.cluster.start, *members)
        await settle(stage, workload, outcome)
        async with penstock.connect(stage.plan.native_url) as one:
            await one.create_queue(REFUSED)
            await one.delete_queue(REFUSED)

    return await under_load("etcd is gone", stage, clients, gone, report, patient=False)


async def _all_answered(workload: Workload, outcome: Outcome, when: str) -> None:
    """Every sender is answered once more, and every queue received from."""
    sent, received = dict(workload.told.sent), dict(workload.told.received)
    deadline = time.monotonic() + ANSWER_SECONDS
    while silent := workload.silent_since(sent, received):
        workload.check_alive()
        if time.monotonic() > deadline:
            outcome.violations.append(f"nothing new of {', '.join(silent)} {when}")
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _creates_are_refused(stage: Stage) -> list[str]:
    """What is wrong with how queues are refused while they cannot be made."""
    wrong = []
    try:
        async with penstock.connect(stage.plan.native_url) as one:
            await one.create_queue(REFUSED)
        wrong.append("a queue was made natively without etcd")
    except PenstockError as error:
        if error.code is not ErrorCode.METADATA_UNAVAILABLE or not error.retryable:
            wrong.append(f"who wanted to make a queue natively was told {error.code}: {error.message}")
        elif "try again" not in error.message:
            wrong.append(f"who wanted to make a queue was not told to try again: {error.message}")
    sqs = client(stage.plan.sqs_url, attempts=1)
    try:
        await asyncio.to_thread(sqs.create_queue, QueueName=REFUSED)
        wrong.append("a queue was made over SQS without etcd")
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if status != 503 or "try again" not in str(error):
            wrong.append(f"who wanted to make a queue over SQS was told {status}: {error}")
    return wrong
