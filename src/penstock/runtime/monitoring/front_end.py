"""The metrics of a front end: its connection to the engine, its resources, and its usage record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock import __version__
from penstock.metrics.front_end_figures import FrontEndDescription, front_end_families
from penstock.metrics.usage_figures import usage_families
from penstock.runtime.monitoring.monitoring import Answer, failed, figures, well
from penstock.runtime.monitoring.process_usage import process_usage
from penstock.usage.collector import UsageTotals


class EngineStatus(Protocol):
    """The way to the engine."""

    @property
    def connected(self) -> bool:
        """Whether anything can be asked right now."""
        ...


class FrontEndSight:
    """See `Sight`: one front end."""

    def __init__(
        self, name: str, started_ms: int, way: EngineStatus, usage: Callable[[], UsageTotals]
    ) -> None:
        self._name = name
        self._started_ms = started_ms
        self._way = way
        self._usage = usage

    def metrics(self, reply: Answer) -> None:
        """All figures."""
        cpu_seconds, memory_bytes = process_usage()
        about = FrontEndDescription(
            self._name, __version__, self._started_ms, self._way.connected, cpu_seconds, memory_bytes
        )
        reply(figures((*front_end_families(about), *usage_families(*self._usage()))))

    def health(self, reply: Answer) -> None:
        """Whether requests can get through."""
        reply(well() if self._way.connected else failed("no node can be reached"))
