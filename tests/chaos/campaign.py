"""A run: a cluster, clients at work, fault after fault, then rest, and the ledger is closed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import penstock
from penstock.cluster.layout import PARTITIONS, PartitionEntry, decode_partition
from penstock.cluster.local_plan import plan_cluster
from penstock.manager.manager import OFFICE
from penstock.metadata.election import PREFIX
from penstock.metadata.store.etcd import open_etcd_store
from penstock.runtime.local_cluster.cluster import LocalCluster
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState
from penstock.runtime.local_cluster.ports import ports_of
from tests.chaos.faults import Fault, Victim, faults, heal, strike
from tests.chaos.ledger import Ledger
from tests.chaos.workload import STANDARD, VISIBILITY_SECONDS, Workload

SETTLE_SECONDS = 90.0
_LOOK_SECONDS = 0.1

Report = Callable[[str], None]


@dataclass
class Outcome:
    """What came of a run."""

    ledger: Ledger
    faults: list[str] = field(default_factory=list)
    refused: int = 0
    settle_seconds: list[float] = field(default_factory=list)
    """After each fault: until everybody served and was in sync again."""

    @property
    def summary(self) -> str:
        """One line for people."""
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(self.ledger.counts.items()))
        slowest = max(self.settle_seconds, default=0.0)
        return (
            f"{len(self.faults)} faults, {counts}, {self.refused:,} times told to try again, in sync again after "
            f"{slowest:.1f} s at most, {len(self.ledger.violations)} promises broken"
        )


def new_cluster(directory: Path, nodes: int, front_ends: int, report: Report) -> LocalCluster:
    """A cluster of its own on free ports; not started."""
    place = ClusterDirectory(directory)
    place.make()
    plan = plan_cluster(nodes=nodes, front_ends=front_ends, base_port=0, ports=ports_of(0))
    place.save(ClusterState(plan=plan))
    return LocalCluster(place, lambda name, what: report(f"{name}: {what}"))


async def campaign(
    cluster: LocalCluster, *, seed: int, count: int, clients: int, victims: tuple[Victim, ...], report: Report
) -> Outcome:
    """Fault after fault on a cluster that is up; the outcome says which promises were broken."""
    dice = random.Random(seed)

    async def strikes(workload: Workload, outcome: Outcome) -> None:
        for number, fault in enumerate(faults(seed, count, victims), 1):
            workload.check_alive()
            name = await _victim(cluster, fault, dice)
            outcome.faults.append(f"{fault.kind} {name}")
            acknowledged = outcome.ledger.counts["acknowledged"]
            report(f"{number} of {count}: {fault} ({name}); {acknowledged:,} acknowledged")
            await asyncio.to_thread(strike, cluster, fault.kind, name)
            await asyncio.sleep(fault.seconds)
            await asyncio.to_thread(heal, cluster, fault.kind, name)
            outcome.settle_seconds.append(await _settle(cluster, outcome.ledger))
            if dead := cluster.dead():
                outcome.ledger.violations.append(
                    f"{', '.join(dead)} died of itself after {outcome.faults[-1]}"
                )
            if outcome.ledger.violations:
                return

    return await _under_load(cluster, clients, strikes, report)


async def rolling_restart(cluster: LocalCluster, *, clients: int, report: Report) -> Outcome:
    """Every process is stopped in order and started again, one after the other, as for a new version."""

    async def restarts(workload: Workload, outcome: Outcome) -> None:
        for planned in cluster.plan.processes:
            workload.check_alive()
            if planned.role == "balancer":
                continue  # it is the one door; it takes over new configurations without being stopped
            report(f"restarting {planned.name}")
            outcome.faults.append(f"restart {planned.name}")
            await asyncio.to_thread(cluster.stop, planned.name)
            await asyncio.to_thread(cluster.start, planned.name)
            outcome.settle_seconds.append(await _settle(cluster, outcome.ledger))
            if outcome.ledger.violations:
                return

    return await _under_load(cluster, clients, restarts, report)


async def _under_load(
    cluster: LocalCluster, clients: int, work: Callable[[Workload, Outcome], Awaitable[None]], report: Report
) -> Outcome:
    ledger = Ledger(visibility_seconds=VISIBILITY_SECONDS)
    outcome = Outcome(ledger)
    workload = Workload(ledger, cluster.plan.native_url, cluster.plan.sqs_url, clients)
    await workload.start()
    await _settle(cluster, ledger)
    await work(workload, outcome)
    report("resting; everything that was acknowledged must come")
    await workload.stop_sending()
    deadline = time.monotonic() + SETTLE_SECONDS
    while left := await _left(cluster):
        if time.monotonic() > deadline:
            ledger.violations.append(f"{left} messages stay in queues that everybody receives from")
            break
        await asyncio.sleep(_LOOK_SECONDS)
    await workload.stop()
    ledger.close()
    outcome.refused = workload.refused
    return outcome


async def _left(cluster: LocalCluster) -> int:
    """How many messages are in all queues."""
    async with penstock.connect(cluster.plan.native_url) as client:
        found = [queue.statistics async for queue in client.list_queues()]
    return sum(one.ready + one.leased + one.delayed for one in found)


async def _victim(cluster: LocalCluster, fault: Fault, dice: random.Random) -> str:
    """The process that a fault hits."""
    if fault.victim in ("primary", "manager"):
        entries, manager = await _read(cluster)
        leaders = [entry.primary for entry in entries if entry.queue == STANDARD and entry.primary]
        found = manager if fault.victim == "manager" else dice.choice(leaders) if leaders else None
        return found or dice.choice(cluster.plan.of_role("node")).name
    role = fault.victim if fault.victim in ("frontend", "metadata", "etcd") else "node"
    return dice.choice(cluster.plan.of_role(role)).name


async def _settle(cluster: LocalCluster, ledger: Ledger) -> float:
    """Waits until all serve, all are in sync and messages flow; how long that took. Liveness, once nothing is broken."""
    began = time.monotonic()
    acknowledged = ledger.counts["acknowledged"]
    why = "etcd does not answer"
    while time.monotonic() < began + SETTLE_SECONDS:
        try:
            async with asyncio.timeout(10):
                entries, _ = await _read(cluster)
        except Exception as error:
            why = str(error) or type(error).__name__
            await asyncio.sleep(_LOOK_SECONDS)
            continue
        bad = [
            entry
            for entry in entries
            if entry.serving != entry.epoch or set(entry.in_sync) != set(entry.replicas)
        ]
        if not bad and ledger.counts["acknowledged"] > acknowledged:
            return time.monotonic() - began
        why = (
            "; ".join(f"{entry.queue}~{entry.ordinal}: {entry.reason}" for entry in bad)
            or "nothing is acknowledged"
        )
        await asyncio.sleep(_LOOK_SECONDS)
    ledger.violations.append(f"not well again after {SETTLE_SECONDS:g} s without faults: {why}")
    return SETTLE_SECONDS


async def _read(cluster: LocalCluster) -> tuple[list[PartitionEntry], str | None]:
    store = await open_etcd_store(cluster.plan.etcd_url)
    try:
        listing = await store.list(PARTITIONS)
        holder = await store.get(PREFIX + OFFICE)
    finally:
        await store.close()
    return [
        decode_partition(entry.value) for entry in listing.entries
    ], holder.value.decode() if holder else None
