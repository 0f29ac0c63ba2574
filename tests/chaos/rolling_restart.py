"""Every process is stopped in order and started again, one after the other, as for a new version: nobody may notice."""

from __future__ import annotations

import asyncio

from tests.chaos.campaign import settle, under_load
from tests.chaos.outcome import Outcome
from tests.chaos.stage import Report, Stage
from tests.chaos.workload import Workload


async def rolling_restart(stage: Stage, *, clients: int, report: Report) -> Outcome:
    """The tries that client libraries make by themselves must be enough for every send."""

    async def restarts(workload: Workload, outcome: Outcome) -> None:
        for planned in stage.plan.processes:
            if planned.role == "balancer":
                report(f"reloading {planned.name}")
                outcome.faults.append("reload balancer")
                await asyncio.to_thread(stage.reload_balancer)
            else:
                report(f"restarting {planned.name}")
                outcome.faults.append(f"restart {planned.role}")
                forced = await asyncio.to_thread(stage.cluster.stop, planned.name)
                outcome.violations += [f"{name} had to be ended by force" for name in forced]
                await asyncio.to_thread(stage.cluster.start, planned.name)
            await settle(stage, workload, outcome)
            if outcome.violations or workload.told.ledger.violations:
                return

    return await under_load("rolling restart", stage, clients, restarts, report, patient=False)
