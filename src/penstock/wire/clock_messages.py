"""Requests for the time: the exchange that synchronizes clocks, and the sequencer's ids."""

from __future__ import annotations

import msgspec


class ReadClock(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """Answered with `ClockReading`, at once: it waits for no disk."""


class TakeIds(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """Answered with `TakenIds`: so many ids of the server's sequencer."""

    count: int = 1


class ClockReading(msgspec.Struct, frozen=True, array_like=True, tag=112):
    """The server's interval of true time when the question came and when the answer left.

    In microseconds since 1970. All zero: the server's own clock is not synchronized yet.
    """

    received_earliest_us: int
    received_latest_us: int
    sent_earliest_us: int
    sent_latest_us: int
    drift_ppm: int
    """How fast the server's clock may run wrong at most."""
    source: str
    """The source of the server's time: `own`, `chrony` or `clockbound`."""


class TakenIds(msgspec.Struct, frozen=True, array_like=True, tag=113):
    """Ids of one time and process; counters run on from the first."""

    time_us: int
    process: int
    counter: int
    count: int
    uncertainty_us: int
