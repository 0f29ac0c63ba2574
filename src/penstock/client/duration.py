"""Durations as people write them (seconds, or a `timedelta`), turned into milliseconds once, at the door."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.model.errors import ErrorCode, PenstockError

Duration = float | timedelta
"""Seconds as `int` or `float`, or a `timedelta`."""

_LONGEST_MS = 2**53


def milliseconds(value: Duration, what: str) -> int:
    """Whole milliseconds; anything above zero stays above zero. `what` names the argument in errors."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    elif not isinstance(value, (int, float)):
        raise TypeError(f"{what} must be seconds or a timedelta, not {type(value).__name__}")
    scaled = value * 1000
    if not 0 <= scaled <= _LONGEST_MS:  # also refuses NaN
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"{what} is {value} seconds: give a number of seconds from 0 up, or a timedelta",
        )
    return round(scaled) or (1 if scaled > 0 else 0)


def optional_milliseconds(value: Duration | None, what: str) -> int | None:
    """Like `milliseconds`; None stays None (the queue's own setting)."""
    return None if value is None else milliseconds(value, what)


def moment(stamp_ms: int) -> datetime:
    """A server's time stamp as an aware datetime."""
    return datetime.fromtimestamp(stamp_ms / 1000, UTC)
