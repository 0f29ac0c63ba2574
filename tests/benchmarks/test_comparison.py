"""Two trees beside each other: what counts as a difference."""

from __future__ import annotations

import pytest

from benchmarks.comparison import Comparison, Verdict, compared, comparison_table
from benchmarks.figures import figure


@pytest.mark.parametrize(
    ("unit", "old", "new", "verdict"),
    [
        ("µs", (10.0, 12.0), (13.0, 14.0), Verdict.WORSE),
        ("µs", (10.0, 12.0), (8.0, 9.0), Verdict.BETTER),
        ("messages/s", (10.0, 12.0), (13.0, 14.0), Verdict.BETTER),
        ("messages/s", (10.0, 12.0), (8.0, 9.0), Verdict.WORSE),
        ("µs", (10.0, 12.0), (11.0, 20.0), Verdict.SAME),
        ("/s", (10.0, 12.0), (1.0, 11.0), Verdict.SAME),
    ],
)
def test_a_difference_counts_where_the_rounds_do_not_overlap(
    unit: str, old: tuple[float, ...], new: tuple[float, ...], verdict: Verdict
) -> None:
    assert Comparison("a figure", unit, old, new).verdict is verdict


def test_figures_that_one_round_lacks_are_left_out() -> None:
    both = figure("both", "in both", "µs", [2.0])
    old = {"both": both, "gone": figure("gone", "only before", "µs", [1.0])}
    new = {"new": figure("new", "only now", "µs", [1.0]), "both": figure("both", "in both", "µs", [3.0])}
    [comparison] = compared([old, old], [new, new])
    assert (comparison.title, comparison.ratio) == ("in both", 1.5)
    assert comparison_table([comparison]).row_count == 1
