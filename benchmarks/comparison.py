"""Two lists of rounds beside each other, and whether they differ by more than their own rounds do. Nothing here measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import median
from typing import NamedTuple

from rich.table import Table

from benchmarks.figures import Figure
from benchmarks.table import number

Measured = Mapping[str, Figure]
"""The figures of one round, by name."""


class Verdict(StrEnum):
    """What the rounds say."""

    SAME = ""
    BETTER = "better"
    WORSE = "worse"


class Comparison(NamedTuple):
    """One figure in both trees."""

    title: str
    unit: str
    old: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """New by old, of the medians."""
        old = median(self.old)
        return median(self.new) / old if old else float("nan")

    @property
    def verdict(self) -> Verdict:
        """A difference counts only where no round of one tree reaches into the range of the other."""
        if max(self.new) < min(self.old):
            smaller = True
        elif min(self.new) > max(self.old):
            smaller = False
        else:
            return Verdict.SAME
        return Verdict.WORSE if smaller is is_rate(self.unit) else Verdict.BETTER


def is_rate(unit: str) -> bool:
    """Whether more is better: so many in a second. Of times and memory less is better."""
    return unit.endswith("/s")


def compared(old: Sequence[Measured], new: Sequence[Measured]) -> list[Comparison]:
    """The figures that every round of both trees has, in the order of the new tree."""
    names = [name for name in new[0] if all(name in one for one in (*old, *new))]
    return [
        Comparison(
            new[0][name].title,
            new[0][name].unit,
            tuple(one[name].value for one in old),
            tuple(one[name].value for one in new),
        )
        for name in names
    ]


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """For people."""
    table = Table(title="Two trees in turns")
    table.add_column("figure")
    for title in ("old", "min – max", "new", "min – max"):
        table.add_column(title, justify="right", style="dim" if title == "min – max" else "")
    table.add_column("unit")
    table.add_column("new / old", justify="right")
    table.add_column("verdict")
    for one in comparisons:
        table.add_row(
            one.title,
            number(median(one.old)),
            f"{number(min(one.old))} – {number(max(one.old))}",
            number(median(one.new)),
            f"{number(min(one.new))} – {number(max(one.new))}",
            one.unit,
            f"{one.ratio:.2f}",
            one.verdict.value,
        )
    return table
