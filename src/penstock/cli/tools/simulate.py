"""`penstock simulate`: runs the engine over simulated disks, clocks and networks, seed by seed."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from penstock.cli.exits import CommandError, reported
from penstock.cli.output import error_console, print_json, print_line
from penstock.cli.parameters import Json
from penstock.cli.progress import progress
from penstock.cli.tools.seed_pace import SeedPace

if TYPE_CHECKING:
    from penstock.simulation.campaign import SeedReport
    from penstock.simulation.patching import Patches

DEFAULT_SEEDS = 100
FIRST_SEED = 1
CLUSTER_SIZES = (3, 5)
DEFAULT_NODES = 3
TRACE_TAIL = 40
"""Lines of a failed seed's trace that are shown; the whole trace is one command away."""
VIOLATIONS_SHOWN = 12
"""For each seed of a campaign: a broken promise often concerns many messages."""


@reported
def simulate(
    seeds: Annotated[
        int | None, typer.Option("--seeds", help=f"Number of seeds to run (default {DEFAULT_SEEDS}).", min=1)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            help="The first seed (default 1). Without --seeds, run only this seed and print its trace.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", help="Seeds to run at the same time (default: the number of cores).", min=1),
    ] = None,
    bug: Annotated[
        str | None,
        typer.Option(
            "--bug",
            help="Plant a known bug, to check that a checker finds it; `list` shows the names. Needs a clone of the repository.",
        ),
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Simulate a cluster instead of one node.")
    ] = False,
    nodes: Annotated[
        int | None, typer.Option("--nodes", help=f"Number of nodes, 3 or 5 (default {DEFAULT_NODES}).")
    ] = None,
    json: Json = False,
) -> None:
    """Run simulations with random work, crashes and damaged disks, and check every promise."""
    if nodes is not None and not cluster:
        raise CommandError("--nodes is about a cluster: add --cluster")
    if nodes is not None and nodes not in CLUSTER_SIZES:
        raise CommandError(f"a simulated cluster has 3 or 5 nodes, not {nodes}")
    size = (nodes or DEFAULT_NODES) if cluster else None
    if bug == "list":
        for name, sentence in _bugs().sentences(cluster=cluster).items():
            print_line(f"{name}: {sentence}")
        return
    plan = Plan(size, bug, _patches(bug, cluster=cluster))
    _silence()
    if seed is not None and seeds is None:
        failed = _one(seed, plan, json)
    else:
        failed = _many(FIRST_SEED if seed is None else seed, seeds or DEFAULT_SEEDS, plan, jobs, json)
    raise typer.Exit(1 if failed else 0)


def _silence() -> None:
    """Silences the warnings of simulated nodes about injected faults; in every process that runs some."""
    logging.getLogger("penstock").addHandler(logging.NullHandler())


class Plan(NamedTuple):
    """What is run with each seed: the size of the cluster, None for a single node, and the bug that is planted."""

    nodes: int | None
    bug: str | None
    patches: Patches


def _bugs() -> ModuleType:
    """The planted bugs, which are in the tests and not in the installed package."""
    try:
        from tests.simulation.planted import catalogue
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "tests":
            raise
        raise CommandError(
            "the planted bugs are not part of the installed package: clone the repository and use --bug there, "
            "after `make install`"
        ) from error
    return catalogue


def _patches(bug: str | None, *, cluster: bool) -> Patches:
    """What plants the bug, in this process and in those of a campaign."""
    if bug is None:
        from penstock.simulation.patching import no_patches

        return no_patches
    catalogue = _bugs()
    if bug not in catalogue.sentences(cluster=cluster):
        command = "penstock simulate --cluster" if cluster else "penstock simulate"
        raise CommandError(f"there is no planted bug {bug!r}; `{command} --bug list` names them")
    return partial(catalogue.patches_of, bug, cluster=cluster)


def _one(seed: int, plan: Plan, json: bool) -> bool:
    """One seed and its whole trace: the same seed always prints the same lines."""
    from penstock.simulation.campaign import run_seed

    report = run_seed(seed, plan.patches, nodes=plan.nodes, keep_trace=True)
    if json:
        print_json({**_facts(report), "trace": report.trace})
    else:
        for line in report.trace:
            print_line(line)
        _print_violations(report)
        print_line(_summary(report))
    return bool(report.violations)


def _many(first: int, count: int, plan: Plan, jobs: int | None, json: bool) -> bool:
    from penstock.simulation.campaign import cores, run_seeds

    started = time.monotonic()
    pace, errors = SeedPace(count, started), error_console()
    jobs = min(jobs or cores(), count)
    failed: list[int] = []
    messages = deliveries = crashes = 0
    faults: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with progress("seeds", count) as show:
        seeds = run_seeds(range(first, first + count), plan.patches, jobs, nodes=plan.nodes, prepare=_silence)
        for done, report in enumerate(seeds, 1):
            messages += report.messages
            deliveries += report.deliveries
            crashes += report.starts - 1
            faults.update(report.faults)
            kinds.update([report.kind] if report.kind else [])
            if report.violations:
                failed.append(report.seed)
            if json:
                print_json(_facts(report))
            elif report.violations:
                _print_failure(report, plan)
            pace.ended(failed=bool(report.violations))
            now = time.monotonic()
            show(done, pace.note(now))
            line = pace.line(now)
            if line is not None and not errors.is_terminal:
                errors.print(line, markup=False)
    seconds = time.monotonic() - started
    if not json:
        print_line(
            f"{count} seeds in {seconds:.1f} s, {jobs} at a time ({60 * count / seconds:,.0f} a minute): {messages} messages, "
            f"{deliveries} deliveries, {crashes} restarts; "
            + "".join(f"{number} with {kind}; " for kind, number in sorted(kinds.items()))
            + (f"{len(failed)} seeds with violations: {failed}" if failed else "every promise held")
        )
        if faults:
            print_line(_told(faults))
    return bool(failed)


def _told(faults: Mapping[str, int]) -> str:
    """The violations of the runs, by kind, the most frequent first."""
    kinds = sorted(faults.items(), key=lambda kind: (-kind[1], kind[0]))
    return f"{sum(faults.values())} faults: " + ", ".join(f"{count} × {kind}" for kind, count in kinds)


def _print_failure(report: SeedReport, plan: Plan) -> None:
    errors = error_console()
    for line in report.trace[-TRACE_TAIL:]:
        errors.print(line, style="dim", markup=False)
    _print_violations(report, VIOLATIONS_SHOWN)
    planted = f" --bug {plan.bug}" if plan.bug else ""
    cluster = f" --cluster --nodes {plan.nodes}" if plan.nodes is not None else ""
    print_line(f"replay it with: penstock simulate{cluster} --seed {report.seed}{planted}")


def _print_violations(report: SeedReport, most: int | None = None) -> None:
    for violation in report.violations[:most]:
        print_line(
            f"seed {report.seed}, {violation.checker}, {violation.at_ms} ms: {violation.sentence}", "red"
        )
    if most is not None and len(report.violations) > most:
        print_line(f"seed {report.seed}: and {len(report.violations) - most} more")


def _summary(report: SeedReport) -> str:
    found = f"{len(report.violations)} violations" if report.violations else "every promise held"
    told = f"{_told(report.faults)}\n" if report.faults else ""
    return (
        f"{told}seed {report.seed}: {report.messages} messages, {report.deliveries} deliveries, "
        f"{report.starts - 1} restarts in {report.simulated_ms / 1000:.1f} simulated seconds; {found}"
    )


def _facts(report: SeedReport) -> dict[str, object]:
    return {
        "seed": report.seed,
        "violations": [violation._asdict() for violation in report.violations],
        "messages": report.messages,
        "deliveries": report.deliveries,
        "restarts": report.starts - 1,
        "simulated_ms": report.simulated_ms,
        "faults": dict(report.faults),
        "kind": report.kind,
    }
