"""`make simulation-coverage`: runs seeds of a single node and of clusters, and lists the places that none of them reached.

It fails where a place was not reached and `unreached.toml` does not say why, where that list names one that was reached
or is not there any more, and where a seed breaks a promise.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

from tests.simulation.coverage.justified import Verdict, judge, read_justified, renewed
from tests.simulation.coverage.reached import (
    Measured,
    Reached,
    Task,
    load,
    measure,
    measured_files,
    nothing_reached,
    run,
    save,
    tasks,
)

LIST = Path(__file__).with_name("unreached.toml")
REPORT_S = 30.0
LARGE_EVERY = 5
"""One cluster in so many has five nodes instead of three."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when every place was reached or is justified, and every justification is needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="seeds of a single node (100)")
    parser.add_argument("--cluster-seeds", type=int, default=100, help="seeds of clusters (100)")
    parser.add_argument("--first", type=int, default=1, help="the first seed of both (1)")
    parser.add_argument("--jobs", type=int, help="processes (as many as there are cores)")
    parser.add_argument(
        "--keep", type=Path, help="keeps in this file what was reached; the next run goes on from it"
    )
    parser.add_argument("--list", type=Path, default=LIST, help="the list of justified places")
    parser.add_argument(
        "--renew", action="store_true", help="rewrite the list: without stale entries, new ones as open"
    )
    chosen = parser.parse_args(arguments)
    justified = read_justified(chosen.list)
    reached = load(chosen.keep) if chosen.keep is not None else nothing_reached()
    failed = _campaign(
        reached, _todo(chosen.first, chosen.seeds, chosen.cluster_seeds), chosen.jobs, chosen.keep
    )
    measured = measure(reached.hits, measured_files())
    verdict = judge(measured, justified)
    if chosen.renew:
        chosen.list.write_text(renewed(verdict, justified))
        verdict = judge(measured, read_justified(chosen.list))
    _print_report(verdict)
    for command in failed:
        print(f"a promise was broken; replay it with: {command}")
    print(_summary(reached, measured, verdict))
    return 0 if verdict.is_clean and not failed else 1


def _todo(first: int, seeds: int, cluster_seeds: int) -> list[Task]:
    """All kinds in turns, so that a campaign that is stopped has had some of each."""
    single = tasks(range(first, first + seeds), None)
    clusters = range(first, first + cluster_seeds)
    large = tasks((seed for seed in clusters if seed % LARGE_EVERY == 0), 5)
    small = tasks((seed for seed in clusters if seed % LARGE_EVERY), 3)
    return [task for task in chain(*zip_longest(single, small, large)) if task is not None]


def _campaign(reached: Reached, todo: list[Task], jobs: int | None, keep: Path | None) -> list[str]:
    """Runs it all; returns the commands that replay the seeds that broke a promise."""
    failed: list[str] = []
    started = told = time.monotonic()
    new = 0
    for done, report in enumerate(run(todo, jobs), 1):
        new += reached.add(report)
        options = f"--cluster --nodes {report.task.nodes} " if report.task.nodes is not None else ""
        commands = [f"penstock simulate {options}--seed {seed}" for seed in report.failed]
        for command in commands:
            print(f"a promise was broken; replay it with: {command}", file=sys.stderr, flush=True)
        failed += commands
        now = time.monotonic()
        if now - told >= REPORT_S or done == len(todo):
            print(
                f"{done} of {len(todo)} tasks in {now - started:.0f} s; {new} places were new since the last word",
                file=sys.stderr,
                flush=True,
            )
            told, new = now, 0
            if keep is not None:
                save(reached, keep)
    return failed


def _print_report(verdict: Verdict) -> None:
    for title, entries in (
        ("justified", verdict.justified),
        ("rare", verdict.rare),
        ("open", verdict.opened),
    ):
        if entries:
            print(f"\n{title}:")
        for (file, function, text), reason in entries.items():
            print(f"  {file} {function}: {text}: {reason}")
    if verdict.unjustified:
        print("\nnot reached, and the list does not say why:")
    for place in verdict.unjustified:
        print(f"  {place.file}:{place.line} {place.function}: {place.text}: {place.shows}")
    if verdict.stale:
        print("\nin the list in vain (reached, or not there any more):")
    for file, function, text in verdict.stale:
        print(f"  {file} {function}: {text}")
    print()


def _summary(reached: Reached, measured: Measured, verdict: Verdict) -> str:
    return (
        f"{reached.single_seeds} seeds of a single node and {reached.cluster_seeds} of clusters reached {measured.reached:,} of "
        f"{len(measured.names):,} places. Unreached: {len(verdict.justified)} justified, {len(verdict.rare)} rare, "
        f"{len(verdict.opened)} open, {len(verdict.unjustified)} without a word; {len(verdict.stale)} in the list in vain."
    )


if __name__ == "__main__":
    sys.exit(main())
