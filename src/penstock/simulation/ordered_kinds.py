"""Queues whose order is by time, and queues that are logs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from penstock.model.settings import QueueSettings
from penstock.simulation.queue_plan import QueuePlan, visibility


def _clock(random: Random) -> QueuePlan:
    dead = random.random() < 0.5
    settings = QueueSettings(
        ordering="clock",
        max_uncertainty_ms=random.choice((10, 100, 400)),
        when_uncertain=random.choice(("hold", "refuse")),
        visibility_timeout_ms=visibility(random),
        max_receives=random.randint(2, 4) if dead else None,
        dead_letter_queue="clock-dead" if dead else None,
    )
    return QueuePlan("clock", settings, groups=random.choice((0, 0, 4)))


def _stamped_clock(random: Random) -> QueuePlan:
    dead = random.random() < 0.4
    settings = QueueSettings(
        ordering="clock",
        stamps="producer",
        window_ms=random.choice((0, 10, 100, 700)),
        max_uncertainty_ms=random.choice((20, 100, 400)),
        when_uncertain=random.choice(("hold", "refuse")),
        visibility_timeout_ms=visibility(random),
        default_ttl_ms=random.choice((None, None, 3_000)),
        max_receives=random.randint(2, 4) if dead else None,
        dead_letter_queue="stamped-clock-dead" if dead else None,
    )
    return QueuePlan("stamped-clock", settings, groups=random.choice((0, 0, 4)), stamped=True)


def _causal(random: Random) -> QueuePlan:
    dead = random.random() < 0.4
    settings = QueueSettings(
        ordering="causal",
        window_ms=random.choice((0, 10, 100, 700)),
        visibility_timeout_ms=visibility(random),
        max_receives=random.randint(2, 4) if dead else None,
        dead_letter_queue="causal-dead" if dead else None,
    )
    return QueuePlan("causal", settings, groups=random.choice((0, 0, 4)), stamped=True)


def _stamped(random: Random) -> QueuePlan:
    settings = QueueSettings(visibility_timeout_ms=visibility(random))
    return QueuePlan("stamped", settings, groups=random.choice((0, 3)), stamped=True)


def _log(random: Random) -> QueuePlan:
    settings = QueueSettings(
        ordering=random.choice(("best-effort", "fifo", "clock")),
        consumption="log",
        retention_ms=random.choice((345_600_000, 345_600_000, 2_500)),
        retain_bytes=random.choice((None, None, 2_000, 15_000)),
        max_uncertainty_ms=400,
    )
    return QueuePlan("log", settings, groups=random.choice((0, 3)))


def _both(random: Random) -> QueuePlan:
    settings = QueueSettings(
        ordering=random.choice(("best-effort", "fifo")),
        consumption="both",
        retention_ms=random.choice((345_600_000, 345_600_000, 6_000)),
        retain_bytes=random.choice((None, None, 8_000)),
        visibility_timeout_ms=visibility(random),
    )
    return QueuePlan("both", settings, groups=random.choice((0, 3)))


ORDERED_KINDS: dict[str, Callable[[Random], QueuePlan]] = {
    "clock": _clock,
    "stamped-clock": _stamped_clock,
    "causal": _causal,
    "stamped": _stamped,
}
LOG_KINDS: dict[str, Callable[[Random], QueuePlan]] = {"log": _log, "both": _both}
