"""A campaign: many seeds, distributed over the cores. Each seed is a separate run; nothing is shared between them."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import get_context
from traceback import format_exception
from typing import NamedTuple

from penstock.simulation.cluster.world import simulate_cluster
from penstock.simulation.patching import Patches, no_patches, patched
from penstock.simulation.violation import Violation
from penstock.simulation.world import simulate


class SeedReport(NamedTuple):
    """The result of a seed; the trace only if it will be read."""

    seed: int
    violations: list[Violation]
    trace: list[str]
    messages: int
    deliveries: int
    starts: int
    simulated_ms: int
    faults: Mapping[str, int]
    kind: str = ""
    """The unusual property of the run; empty in most."""


def run_seed(
    seed: int, patches: Patches = no_patches, *, nodes: int | None = None, keep_trace: bool = False
) -> SeedReport:
    """Runs one seed, of a cluster where `nodes` says how large; with patches of the product, such as a planted bug."""
    try:
        with patched(patches()):
            outcome = simulate(seed) if nodes is None else simulate_cluster(seed, nodes)
    except Exception as error:
        # One seed that breaks the simulation must not end a campaign of thousands.
        return _broken(seed, error)
    violations = list(outcome.violations)
    if not outcome.messages:
        # A server that never comes up breaks no promise about messages, and proves nothing either.
        violations.append(Violation("liveness", outcome.simulated_ms, "no message was ever stored"))
    trace = outcome.trace if keep_trace or violations else []
    return SeedReport(
        seed,
        violations,
        trace,
        outcome.messages,
        outcome.deliveries,
        outcome.starts,
        outcome.simulated_ms,
        dict(outcome.faults),
        outcome.kind,
    )


def _broken(seed: int, error: Exception) -> SeedReport:
    """A run that ended with an exception of the simulation: its traceback replaces the trace."""
    sentence = f"the run ended with {type(error).__name__}: {error}"
    trace = "".join(format_exception(error)).splitlines()
    return SeedReport(seed, [Violation("simulation", 0, sentence)], trace, 0, 0, 1, 0, {})


def _run(task: tuple[int, Patches, int | None]) -> SeedReport:
    seed, patches, nodes = task
    gc.disable()  # a run takes a tenth less time without; what it leaves behind goes at its end
    try:
        return run_seed(seed, patches, nodes=nodes)
    finally:
        gc.enable()
        gc.collect()


def _begin(prepare: Callable[[], None] | None) -> None:
    """A process for runs begins: its modules stay, and are not gone through after every run."""
    if prepare is not None:
        prepare()
    gc.freeze()


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_seeds(
    seeds: Sequence[int],
    patches: Patches = no_patches,
    jobs: int | None = None,
    *,
    nodes: int | None = None,
    prepare: Callable[[], None] | None = None,
) -> Iterator[SeedReport]:
    """Runs seeds, as many at a time as there are cores, and reports them in order. `prepare` is called in each process first.

    Processes get `patches` by its name: a function of a module, or a `partial` of one.
    """
    jobs = min(jobs or cores(), len(seeds))
    if jobs <= 1:
        yield from (run_seed(seed, patches, nodes=nodes) for seed in seeds)
        return
    # Fresh processes: a forked one would inherit threads that do not run in it.
    with get_context("spawn").Pool(jobs, _begin, (prepare,)) as pool:
        yield from pool.imap(_run, [(seed, patches, nodes) for seed in seeds])
