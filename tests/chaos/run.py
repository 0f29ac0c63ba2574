"""`make chaos`: real processes are killed and paused under load until so many faults have passed."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from pathlib import Path

from tests.chaos.campaign import campaign, new_cluster
from tests.chaos.faults import VICTIMS


def main() -> int:
    """Returns 0 where every promise was kept."""
    parser = argparse.ArgumentParser(prog="make chaos ARGS=…", description=__doc__)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--frontends", type=int, default=2)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--keep", action="store_true", help="keep data and logs, also when all is well")
    options = parser.parse_args()

    def report(line: str) -> None:
        print(line, flush=True)

    directory = Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    report(f"seed {options.seed}; logs are in {directory}")
    cluster = new_cluster(directory, options.nodes, options.frontends, report)
    try:
        cluster.bring_up()
        outcome = asyncio.run(
            campaign(
                cluster,
                seed=options.seed,
                count=options.faults,
                clients=options.clients,
                victims=VICTIMS,
                report=report,
            )
        )
    finally:
        cluster.bring_down()
    report(outcome.summary)
    for violation in outcome.ledger.violations[:50]:
        report(f"BROKEN: {violation}")
    if outcome.ledger.violations:
        report(f"again: make chaos ARGS='--seed {options.seed}'; logs are in {directory}")
        return 1
    if not options.keep:
        import shutil

        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
