"""The section of order: every kind has its turn, and what is measured is what was sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.options import ORDER_SECTIONS, BenchOptions
from benchmarks.order_modes import BEST_EFFORT, MODES
from benchmarks.processes import LoadProcess
from benchmarks.sections import order
from benchmarks.stage import Stage


def test_order_is_asked_for_by_itself(tmp_path: Path) -> None:
    assert BenchOptions(order=True, data_directory=tmp_path).sections == ORDER_SECTIONS
    with pytest.raises(ValueError, match="give one of them"):
        BenchOptions(order=True, log=True, data_directory=tmp_path).check()


def test_every_mode_has_every_place_of_a_round() -> None:
    places = [order.turns(number) for number in range(len(MODES))]
    assert all(len(set(turns)) == len(MODES) for turns in places)
    assert {turns.index(BEST_EFFORT) for turns in places} == set(range(len(MODES)))


def test_kinds_are_measured_beside_best_effort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = (BEST_EFFORT, *(mode for mode in MODES if mode.name in ("fifo-groups", "causal-10")))
    monkeypatch.setattr(order, "MODES", modes)
    monkeypatch.setattr(order, "WARM_UP_MESSAGES", 1_000)
    monkeypatch.setattr(order, "TURN_SHARE", 0.01)
    monkeypatch.setattr(order, "RATE", 200)
    monkeypatch.setattr(BenchOptions, "rounds", 1)
    options = BenchOptions(quick=True, sizes=(100,), data_directory=tmp_path)
    with LoadProcess() as producer, LoadProcess() as consumer:
        stage = Stage(options, tmp_path, [producer, consumer], lambda sentence: None)
        figures = {one.name: one for one in order.measure(stage)}
    assert figures["order.causal-10.publish.100.rate"].value > 0
    assert figures["order.causal-10.late.100"].value == 0
    ratio = figures["order.fifo-groups.receive.100.ratio"].value
    rates = [figures[f"order.{name}.receive.100.rate"].value for name in ("fifo-groups", "best-effort")]
    assert ratio == pytest.approx(rates[0] / rates[1])
    assert figures["order.causal-10.end-to-end.p50"].value > 10_000
    assert "order.best-effort.send.p99" in figures
    assert "order.best-effort.send.p99.ratio" not in figures
