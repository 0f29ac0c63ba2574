"""`make chaos`: real processes are killed, paused, cut off and lose their power under load, and nothing may be lost."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos import disks, isolation
from tests.chaos.campaign import campaign
from tests.chaos.etcd_gone import etcd_gone
from tests.chaos.outcome import Outcome
from tests.chaos.rolling_restart import rolling_restart
from tests.chaos.stage import Report, Stage, new_stage

SCENARIOS = ("faults", "rolling-restart", "etcd-gone")


def main() -> int:
    """Returns 0 where every promise was kept."""
    options = _options()
    logging.getLogger("penstock.client").setLevel(logging.ERROR)  # that connections are lost is no news here
    reason = isolation.why_not() if not isolation.is_inside() else None
    if not isolation.is_inside() and reason is None and not options.bare:
        isolation.enter("tests.chaos.run", [*sys.argv[1:], "--seed", str(options.seed)])
    skipped = []
    if options.bare:
        skipped.append("nothing is cut off and no power is lost: --bare was asked for")
    elif reason is not None:
        skipped.append(f"nothing is cut off and no power is lost in this run: {reason}")
    else:
        isolation.furnish()
        skipped += [why for why in (disks.why_not(),) if why is not None]

    directory = Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    _report(f"seed {options.seed}; logs are in {directory}")
    for sentence in skipped:
        _report(f"SKIPPED: {sentence}")
    began = time.monotonic()
    stage = new_stage(
        directory,
        _report,
        nodes=options.nodes,
        front_ends=options.frontends,
        metadata=options.metadata,
        networked=isolation.is_inside(),
        disks=isolation.is_inside() and not skipped,
    )
    try:
        stage.cluster.bring_up()
        outcomes = asyncio.run(_scenarios(stage, options, _report))
    finally:
        stage.cluster.bring_down()
        for disk in stage.disks.values():
            disk.unmount()
    return _told(options, outcomes, skipped, directory, time.monotonic() - began)


async def _scenarios(stage: Stage, options: argparse.Namespace, report: Report) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for scenario in options.only or SCENARIOS:
        if scenario == "faults":
            outcome = await campaign(
                stage, seed=options.seed, count=options.faults, clients=options.clients, report=report
            )
        elif scenario == "rolling-restart":
            outcome = await rolling_restart(stage, clients=options.clients, report=report)
        else:
            outcome = await etcd_gone(
                stage, seconds=options.etcd_gone, clients=options.clients, report=report
            )
        outcomes.append(outcome)
        for line in ("", *outcome.lines(), ""):
            report(line)
        if outcome.violations:
            break
    return outcomes


def _told(
    options: argparse.Namespace, outcomes: list[Outcome], skipped: list[str], directory: Path, seconds: float
) -> int:
    broken = [violation for outcome in outcomes for violation in outcome.violations]
    for sentence in skipped:
        _report(f"SKIPPED: {sentence}")
    for violation in broken[:50]:
        _report(f"BROKEN: {violation}")
    facts = {
        "seed": options.seed,
        "nodes": options.nodes,
        "frontends": options.frontends,
        "metadata_servers": options.metadata,
        "etcd_members": 3,
        "seconds": round(seconds, 1),
        "skipped": skipped,
        "scenarios": [outcome.as_json() for outcome in outcomes],
        "well": not broken,
    }
    if options.json is not None:
        options.json.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    if broken:
        _report(f"again: make chaos ARGS='--seed {options.seed}'; logs are in {directory}")
        return 1
    _report(f"every promise was kept, in {seconds:.0f} s")
    if not options.keep:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos ARGS=…", description=__doc__)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--clients", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--frontends", type=int, default=2)
    parser.add_argument("--metadata", type=int, default=2, help="metadata servers")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument(
        "--etcd-gone", type=float, default=60, metavar="SECONDS", help="how long etcd is gone"
    )
    parser.add_argument("--only", choices=SCENARIOS, action="append", help="this scenario; may be repeated")
    parser.add_argument(
        "--bare", action="store_true", help="all on loopback: nothing is cut, no power is lost"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was counted into a file")
    parser.add_argument("--keep", action="store_true", help="keep data and logs, also when all is well")
    return parser.parse_args()


def _report(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
