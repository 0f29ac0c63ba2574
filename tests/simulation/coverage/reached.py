"""Which places of the measured packages a campaign of seeds reached, gathered over worker processes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.simulation.coverage.places import Name, Place, probed
from tests.simulation.coverage.probing import ProbingFinder, install

PACKAGES = ("storage", "backend", "replication", "queue", "cluster", "routing", "steps")
PRODUCT = Path(__file__).parents[3] / "src" / "penstock"
SEEDS_PER_TASK = 5

Hits = dict[str, set[int]]
"""By file, as a path below the product: the numbers of the places that were reached."""


class Task(NamedTuple):
    """Some seeds; `nodes` as in `penstock simulate --nodes`, None: a single node."""

    seeds: tuple[int, ...]
    nodes: int | None


class TaskReport(NamedTuple):
    """What a task reached, and the seeds that broke a promise or did not come to their end."""

    task: Task
    hits: Hits
    failed: list[int]


class Reached(msgspec.Struct):
    """What was reached so far, by the sources that stand in the tree now."""

    sources: dict[str, str]
    single_seeds: int = 0
    cluster_seeds: int = 0
    hits: dict[str, set[int]] = {}

    def add(self, report: TaskReport) -> int:
        """Takes in what a task reached; returns how much of it is new."""
        new = 0
        for name, hits in report.hits.items():
            known = self.hits.setdefault(name, set())
            new += len(hits - known)
            known |= hits
        if report.task.nodes is None:
            self.single_seeds += len(report.task.seeds)
        else:
            self.cluster_seeds += len(report.task.seeds)
        return new


class Measured(NamedTuple):
    """How many places there are, how many of them were reached, and those that were not."""

    names: set[Name]
    reached: int
    unreached: list[Place]
    """Without those that lie inside of another."""


def measure(hits: Hits, files: Mapping[str, Path]) -> Measured:
    """Compares what was reached with what there is."""
    names: set[Name] = set()
    unreached: list[Place] = []
    for file, path in files.items():
        reached, places = hits.get(file, set()), probed(path.read_text(), file).places
        names.update(place.name for place in places)
        unreached += [
            place
            for number, place in enumerate(places)
            if number not in reached and (place.inside is None or place.inside in reached)
        ]
    return Measured(names, sum(map(len, hits.values())), unreached)


def measured_files(product: Path = PRODUCT, packages: Sequence[str] = PACKAGES) -> dict[str, Path]:
    """Every file of the measured packages, by its path below the product."""
    paths = (path for package in packages for path in sorted((product / package).rglob("*.py")))
    return {path.relative_to(product).as_posix(): path for path in paths}


def nothing_reached() -> Reached:
    """The beginning of a campaign on the sources as they are."""
    return Reached({name: sha256(path.read_bytes()).hexdigest() for name, path in measured_files().items()})


def load(path: Path) -> Reached:
    """What an earlier campaign reached, where its sources are still those of the tree; otherwise nothing."""
    fresh = nothing_reached()
    if not path.exists():
        return fresh
    kept = msgspec.json.decode(path.read_bytes(), type=Reached)
    return kept if kept.sources == fresh.sources else fresh


def save(reached: Reached, path: Path) -> None:
    """Keeps it for a campaign that goes on from here."""
    scratch = path.with_suffix(".part")
    scratch.write_bytes(msgspec.json.encode(reached))
    scratch.replace(path)


def tasks(seeds: Iterable[int], nodes: int | None) -> list[Task]:
    """Seeds cut into tasks."""
    rest = list(seeds)
    return [
        Task(tuple(rest[start : start + SEEDS_PER_TASK]), nodes)
        for start in range(0, len(rest), SEEDS_PER_TASK)
    ]


def run(todo: Sequence[Task], jobs: int | None = None) -> Iterator[TaskReport]:
    """Runs tasks in processes that measure, and reports them as they end."""
    if not todo:
        return
    jobs = min(jobs or len(os.sched_getaffinity(0)), len(todo))
    with get_context("spawn").Pool(jobs, _begin) as pool:
        yield from pool.imap_unordered(_run, todo)


_finder: ProbingFinder | None = None
"""The one of a worker process."""


def _begin() -> None:
    global _finder
    _finder = install(measured_files())
    logging.getLogger("penstock").addHandler(logging.NullHandler())


def _run(task: Task) -> TaskReport:
    from penstock.simulation.campaign import run_seed

    assert _finder is not None
    failed: list[int] = []
    for seed in task.seeds:
        try:
            if run_seed(seed, nodes=task.nodes).violations:
                failed.append(seed)
        except Exception:  # a run that breaks off is a failed seed; the others go on
            failed.append(seed)
    return TaskReport(task, _finder.take(), failed)
