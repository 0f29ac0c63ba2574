"""The options of a server's clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.config import kinds
from penstock.config.option import option

ClockSource = Literal["auto", "own", "chrony", "clockbound"]


@dataclass(frozen=True, kw_only=True)
class ClockOptions:
    """The source of the time that orders queues by time."""

    clock_source: ClockSource = field(
        default="auto",
        metadata=option(
            "clock.source",
            kinds.choice("auto", "own", "chrony", "clockbound"),
            "The server's time source. `chrony`, `clockbound`: the daemon of that name on this computer, "
            "with its error bound. `own`: the server's own clock defines the time and is never uncertain. "
            "`auto`: a daemon that knows the time when the server starts, or else the server's own clock.",
        ),
    )
    clock_drift_ppm: int = field(
        default=200,
        metadata=option(
            "clock.drift_ppm",
            kinds.count(1, 100_000),
            "Maximum rate error of this computer's clock, in parts per million. The time becomes uncertain "
            "at this rate until the source is asked again.",
        ),
    )
