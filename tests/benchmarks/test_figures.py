"""Percentiles and the spread of rounds."""

from __future__ import annotations

import pytest

from benchmarks.figures import figure, latency, latency_figures, percentile


def test_percentile_is_a_value_that_occurred() -> None:
    values = list(range(1, 101))
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile(values, 0.999) == 100
    assert percentile(values, 1.0) == 100


def test_percentile_of_few_values() -> None:
    assert percentile([7], 0.5) == 7
    assert percentile([1, 2], 0.5) == 1
    assert percentile([1, 2, 3], 0.5) == 2
    assert percentile([1, 2, 3], 0.99) == 3


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1], 0.0), ([1], 1.1)])
def test_percentile_refuses_what_has_no_answer(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match=r"no values|a percentile is"):
        percentile(values, share)


def test_latency_sorts_and_converts_to_microseconds() -> None:
    samples = [5_000, 1_000, 3_000, 2_000, 4_000]
    result = latency(samples)
    assert (result.samples, result.p50_us, result.p99_us, result.worst_us) == (5, 3.0, 5.0, 5.0)
    assert samples[0] == 5_000, "the samples are the caller's"


def test_figure_is_the_median_with_worst_and_best() -> None:
    result = figure("publish.100.rate", "publish", "msg/s", [30.0, 10.0, 20.0], "note")
    assert (result.value, result.low, result.high, result.rounds) == (20.0, 10.0, 30.0, 3)
    assert figure("x", "x", "", [1.0, 2.0]).value == 1.5


def test_figure_without_rounds_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no round of 'publish'"):
        figure("publish", "publish", "msg/s", [])


def test_latency_figures_are_three() -> None:
    rounds = [latency([1_000, 2_000]), latency([3_000, 4_000])]
    figures = latency_figures("single", "send", rounds, "why")
    assert [one.name for one in figures] == ["single.p50", "single.p99", "single.p999"]
    assert [one.value for one in figures] == [2.0, 3.0, 3.0]
    assert [one.note for one in figures] == ["why", "", ""]
