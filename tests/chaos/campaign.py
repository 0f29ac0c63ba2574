"""A run: clients at work on a cluster that is up, fault after fault, then rest, and the ledger is closed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import penstock
from penstock.cluster.layout.entries import PARTITIONS, PartitionEntry, decode_partition
from penstock.cluster.local.local_plan import Role
from penstock.metadata.election import PREFIX
from penstock.metadata.store.etcd import open_etcd_store
from penstock.runtime.cluster.manager import MANAGER_ELECTION
from penstock.runtime.local_cluster.cluster import StartFailedError
from tests.chaos.faults import Fault, faults
from tests.chaos.outcome import Outcome
from tests.chaos.stage import Report, Stage
from tests.chaos.workload import Workload

SETTLE_SECONDS = 180.0
LOOK_SECONDS = 0.1
ETCD_SECONDS = 60
"""However busy the machine is."""

Work = Callable[[Workload, Outcome], Awaitable[None]]


async def campaign(stage: Stage, *, seed: int, count: int, clients: int, report: Report) -> Outcome:
    """Fault after fault; the outcome says which promises were broken."""
    dice = random.Random(seed)

    async def strikes(workload: Workload, outcome: Outcome) -> None:
        for number, fault in enumerate(faults(seed, count, stage.kinds), 1):
            names = await victims(stage, fault, dice)
            outcome.faults.append(fault.name)
            acknowledged = workload.told.ledger.counts["acknowledged"]
            report(f"{number} of {count}: {fault} ({', '.join(names)}); {acknowledged:,} acknowledged")
            await asyncio.to_thread(stage.strike, fault, names)
            await asyncio.sleep(fault.seconds)
            try:
                await asyncio.to_thread(stage.heal, fault, names)
            except StartFailedError as error:
                outcome.violations.append(f"after {fault}: {error}")
                return
            await settle(stage, workload, outcome)
            if dead := stage.cluster.dead():
                outcome.violations.append(f"{', '.join(dead)} died of itself after {fault}")
            if outcome.violations or workload.told.ledger.violations:
                return

    return await under_load("faults", stage, clients, strikes, report, patient=True)


async def under_load(
    scenario: str, stage: Stage, clients: int, work: Work, report: Report, *, patient: bool
) -> Outcome:
    """Does something while clients are at work, then waits until everything that was acknowledged has come."""
    began = time.monotonic()
    workload = Workload(stage.plan.native_url, stage.plan.sqs_url, clients, patient=patient)
    told = workload.told
    outcome = Outcome(scenario, clients=workload.clients, sqs_clients=workload.sqs_clients)
    await workload.start()
    await settle(stage, workload, outcome, noted=False)
    told.silences.clear()
    await work(workload, outcome)
    report(f"{scenario}: resting; everything that was acknowledged must come")
    if stuck := await workload.stop_sending(SETTLE_SECONDS):
        outcome.violations.append(f"no answer for {SETTLE_SECONDS:g} s to {', '.join(stuck)}")
    left: int | None = None
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            left = await _left(stage)
            while left:
                await asyncio.sleep(LOOK_SECONDS)
                left = await _left(stage)
    except TimeoutError:
        count = "nobody knows how many" if left is None else str(left)
        outcome.violations.append(f"{count} messages stay in queues that everybody receives from")
    if await workload.stop(SETTLE_SECONDS):
        outcome.violations.append(f"receivers are not answered for {SETTLE_SECONDS:g} s")
    told.ledger.close()
    outcome.violations += told.ledger.violations
    outcome.messages = dict(told.ledger.counts)
    outcome.refused = dict(told.refused)
    outcome.longest_silence_seconds = max(told.silences.values(), default=0.0)
    outcome.seconds = time.monotonic() - began
    return outcome


async def settle(stage: Stage, workload: Workload, outcome: Outcome, *, noted: bool = True) -> None:
    """Liveness once nothing is broken: all serve, all are in sync, every sender is answered, every queue is received."""
    began = time.monotonic()
    sent, received = dict(workload.told.sent), dict(workload.told.received)
    why = "etcd does not answer"
    while time.monotonic() < began + SETTLE_SECONDS:
        workload.check_alive()
        try:
            entries, _ = await read_layout(stage)
        except Exception as error:
            why = str(error) or type(error).__name__
        else:
            bad = [
                one for one in entries if one.serving != one.epoch or set(one.in_sync) != set(one.replicas)
            ]
            silent = workload.silent_since(sent, received)
            if not bad and not silent:
                if noted:
                    outcome.settle_seconds.append(time.monotonic() - began)
                return
            why = "; ".join(f"{one.queue}~{one.ordinal}: {one.reason}" for one in bad)
            why = why or f"nothing new of {', '.join(silent)}"
        await asyncio.sleep(LOOK_SECONDS)
    outcome.violations.append(f"not well again after {SETTLE_SECONDS:g} s without faults: {why}")


async def victims(stage: Stage, fault: Fault, dice: random.Random) -> list[str]:
    """The processes that a fault hits."""
    found: str | None = None
    match fault.victim:
        case "all nodes":
            return [one.name for one in stage.plan.of_role("node")]
        case "primary":
            entries, _ = await read_layout(stage)
            leaders = [entry.primary for entry in entries if entry.primary]
            found = dice.choice(leaders) if leaders else None
        case "manager":
            _, found = await read_layout(stage)
        case "etcd leader":
            found = await asyncio.to_thread(stage.etcd_leader)
        case "frontend" | "metadata":
            return [dice.choice(stage.plan.of_role(fault.victim)).name]
        case "node" | "etcd":
            pass
    role: Role = "etcd" if fault.victim in ("etcd", "etcd leader") else "node"
    return [found or dice.choice(stage.plan.of_role(role)).name]


async def read_layout(stage: Stage) -> tuple[list[PartitionEntry], str | None]:
    """All partitions, and the node that manages the cluster."""
    store = await open_etcd_store(f"{stage.plan.etcd_url}?timeout={ETCD_SECONDS}")
    try:
        listing = await store.list(PARTITIONS)
        holder = await store.get(PREFIX + MANAGER_ELECTION)
    finally:
        await store.close()
    entries = [decode_partition(entry.value) for entry in listing.entries]
    return entries, holder.value.decode() if holder else None


async def _left(stage: Stage) -> int:
    """How many messages are in all queues."""
    async with penstock.connect(stage.plan.native_url) as client:
        found = [queue.statistics async for queue in client.list_queues()]
    return sum(one.ready + one.leased + one.delayed for one in found)
