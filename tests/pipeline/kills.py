"""Kills drivers, executors and their Python while a job follows a log, at moments that nobody chose, and counts afterwards.

`make pipeline-kills` does it; `test_kills.py` kills one driver. Rows come in all the while, some of them twice.
What has to come out in the end is every row of the log, once.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import msgspec

import penstock
from tests.pipeline.broker import serving
from tests.pipeline.killed_driver import Driver, executors_of, kill_one, pythons_of
from tests.pipeline.killed_rows import Sums, Writer, check_no_row_twice, check_sums, log_sums
from tests.pipeline.standalone import SparkCluster

JOBS = ("usage", "audit")
"""One whose batches are sums that are rolled up, and one that keeps every row as it is."""
KINDS = ("driver", "executor", "python")
QUEUE = "rows"

Say = Callable[[str], None]


@dataclass
class Balance:
    """What was killed, and what came out."""

    job: str
    kills: list[dict[str, Any]] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)

    @property
    def counts(self) -> Counter[str]:
        """Kills by kind."""
        return Counter(kill["kind"] for kill in self.kills)


class Killing:
    """One job, one log, one warehouse, and a plan of what is killed in turn."""

    def __init__(
        self,
        job: str,
        plan: list[str],
        seed: int,
        directory: Path,
        cluster: SparkCluster | None = None,
        say: Say = lambda text: None,
    ) -> None:
        """`plan`: kinds, in their order. Executors are killed on the `cluster`."""
        self._balance = Balance(job)
        self._plan = plan
        self._seed = seed
        self._dice = random.Random(seed)
        self._directory = directory
        self._warehouse = directory / "warehouse"
        self._cluster = cluster
        self._say = say
        self._url = ""

    def run(self) -> Balance:
        """Kills according to plan while rows are sent, lets the job finish, and compares."""
        with (
            serving(self._directory / "broker") as self._url,
            penstock.connect_blocking(self._url, timeout=120) as client,
        ):
            queue = client.create_queue(QUEUE, consumption="log")
            writer = Writer(queue, self._seed)
            try:
                self._kill_all()
            finally:
                writer.stop()
            self._balance.sums = log_sums(queue)
            assert self._balance.sums == writer.sums, "the log has what was acknowledged"
            assert self._driver(follow=False).finish() == 0, "rows are missing"
        check_sums(self._balance.job, self._warehouse, self._balance.sums)
        return self._balance

    def _kill_all(self) -> None:
        driver = None
        try:
            for place, kind in enumerate(self._plan):
                begun = time.monotonic()
                if driver is None:
                    driver = self._driver()
                rows = driver.batches(self._dice.randrange(1, 4))
                with suppress(TimeoutExpired):  # the moment is anywhere in the second that follows
                    driver.process.wait(self._dice.random() * 1.5)
                what = self._kill(kind, driver)
                where = "local" if driver.cluster is None else "cluster"
                if kind == "driver":
                    driver = None
                seen = check_no_row_twice(self._balance.job, self._warehouse)
                self._note(
                    place, {"kind": kind, "what": what, "where": where, "rows_seen": seen}, begun, rows
                )
            if driver is not None:  # it went on after the last one
                driver.batches(2)
        finally:
            if driver is not None:
                driver.kill()

    def _driver(self, *, follow: bool = True) -> Driver:
        """On the cluster where executors are to be killed before the next driver; else on either."""
        left = self._plan[len(self._balance.kills) :]
        in_need = bool(left) and left[0] != "driver"
        cluster = self._cluster if in_need or (follow and self._dice.random() < 0.5) else None
        return Driver(self._balance.job, self._url, QUEUE, self._warehouse, follow=follow, cluster=cluster)

    def _kill(self, kind: str, driver: Driver) -> str:
        if kind == "driver":
            who = self._dice.choice(["both", "python", "java"])
            driver.kill(who)
            return {"both": "Python and Java", "python": "Python", "java": "Java"}[who]
        assert driver.cluster is not None
        find = executors_of if kind == "executor" else pythons_of
        # One that was killed just before may not be there again yet: batches go on, so the next is soon.
        while not kill_one(find(driver.cluster.workers), self._dice.randrange(1000)):
            driver.batches(1)
        return "Java" if kind == "executor" else "Python of an executor"

    def _note(self, place: int, kill: dict[str, Any], begun: float, rows: int) -> None:
        kill["seconds"] = round(time.monotonic() - begun, 1)
        self._balance.kills.append(kill)
        self._say(
            f"{self._balance.job}: kill {place + 1} of {len(self._plan)}: {kill['kind']} ({kill['what']}, {kill['where']}), "
            f"{rows:,} rows by this driver, {kill['rows_seen']:,} in the table, {kill['seconds']:.1f} s"
        )


def planned(kinds: dict[str, int], seed: int) -> list[str]:
    """So many of each, in an order that nobody chose."""
    plan = [kind for kind, count in kinds.items() for _ in range(count)]
    random.Random(seed).shuffle(plan)
    return plan


def share(count: int, place: int, places: int) -> int:
    """How many of all fall to one of several."""
    return count // places + (place < count % places)


def print_line(text: str) -> None:
    """At once: the next may take a minute."""
    print(text, flush=True)


def main() -> None:
    """The long run."""
    parser = argparse.ArgumentParser(description=__doc__)
    for kind, count in zip(KINDS, (12, 12, 4), strict=True):
        parser.add_argument(f"--{kind}s", type=int, default=count, help=f"kills of this kind; {count}")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS), help="which share the kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the balance is written as well")
    options = vars(parser.parse_args())
    seed, balances = options["seed"], []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="penstock-kills-") as name, ExitStack() as stack:
        cluster = stack.enter_context(SparkCluster(Path(name) / "spark"))
        for place, job in enumerate(options["jobs"]):
            kinds = {kind: share(options[f"{kind}s"], place, len(options["jobs"])) for kind in KINDS}
            plan = planned(kinds, seed + place)
            killing = Killing(job, plan, seed + place, Path(name) / job, cluster, print_line)
            balance = killing.run()
            balances.append(balance)
            print_line(f"{job}: {dict(balance.counts)}; every row once: {balance.sums}")
    _say_balance(balances, seed, time.monotonic() - begun, options["json"])


def _say_balance(balances: list[Balance], seed: int, seconds: float, file: Path | None) -> None:
    counts = sum((balance.counts for balance in balances), Counter[str]())
    rows = sum(balance.sums.rows for balance in balances)
    words = ", ".join(f"{counts[kind]} of {kind}s" for kind in KINDS)
    print_line(
        f"{counts.total()} kills ({words}), seed {seed}, {seconds:,.0f} s: {rows:,} rows, none lost and none twice; "
        "counts and checksums are those of the log"
    )
    if file is not None:
        found = {
            "seed": seed,
            "seconds": round(seconds, 1),
            "kills": dict(counts),
            "rows": rows,
            "jobs": [asdict(balance) for balance in balances],
        }
        file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))


if __name__ == "__main__":
    main()
