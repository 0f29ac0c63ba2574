"""Figures: what a run measures, as numbers with their spread. Nothing here measures."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured number: the median of its rounds, with the worst and best beside it."""

    name: str
    """Stable and dotted, for machines: `publish.100.rate`."""
    title: str
    unit: str
    value: float
    low: float
    high: float
    rounds: int
    note: str = ""


def figure(name: str, title: str, unit: str, values: Sequence[float], note: str = "") -> Figure:
    """The figure of several rounds."""
    if not values:
        raise ValueError(f"no round of {name!r} was measured")
    return Figure(
        name=name,
        title=title,
        unit=unit,
        value=median(values),
        low=min(values),
        high=max(values),
        rounds=len(values),
        note=note,
    )


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of single operations, in microseconds."""

    samples: int
    p50_us: float
    p99_us: float
    p999_us: float
    worst_us: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of values in rising order: a value that really occurred."""
    if not ordered:
        raise ValueError("no values")
    if not 0 < share <= 1:
        raise ValueError(f"a percentile is a share of (0, 1], not {share}")
    rank = -(-len(ordered) * share // 1)
    return ordered[max(1, int(rank)) - 1]


def latency(samples_ns: Sequence[int]) -> Latency:
    """The percentiles of samples in nanoseconds, in any order."""
    ordered = sorted(samples_ns)
    return Latency(
        samples=len(ordered),
        p50_us=percentile(ordered, 0.5) / 1000,
        p99_us=percentile(ordered, 0.99) / 1000,
        p999_us=percentile(ordered, 0.999) / 1000,
        worst_us=ordered[-1] / 1000,
    )


def latency_figures(name: str, title: str, rounds: Sequence[Latency], note: str = "") -> list[Figure]:
    """p50, p99 and p99.9 as three figures."""
    return [
        figure(f"{name}.p50", f"{title}, p50", "µs", [one.p50_us for one in rounds], note),
        figure(f"{name}.p99", f"{title}, p99", "µs", [one.p99_us for one in rounds]),
        figure(f"{name}.p999", f"{title}, p99.9", "µs", [one.p999_us for one in rounds]),
    ]
