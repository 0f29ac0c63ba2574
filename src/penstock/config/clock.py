"""What a server can be told about its clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.config import kinds
from penstock.config.option import option

ClockSource = Literal["auto", "own", "chrony", "clockbound"]


@dataclass(frozen=True, kw_only=True)
class ClockOptions:
    """Where the time comes from that orders queues by time."""

    clock_source: ClockSource = field(
        default="auto",
        metadata=option(
            "clock.source",
            kinds.choice("auto", "own", "chrony", "clockbound"),
            "Where the server has its time from. `chrony`, `clockbound`: the daemon of that name on this computer, whose "
            "error bound is then the server's. `own`: the server's own clock defines time, which is then never "
            "uncertain. `auto`: a daemon that knows the time when the server starts, else its own clock.",
        ),
    )
    clock_drift_ppm: int = field(
        default=200,
        metadata=option(
            "clock.drift_ppm",
            kinds.count(1, 100_000),
            "By how many millionths this computer's clock may run wrong at most; what is known of the time grows "
            "more uncertain at this rate until it is asked for again.",
        ),
    )
