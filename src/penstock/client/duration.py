"""Durations as users write them (seconds, or a `timedelta`), converted into milliseconds at the interface."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError

Duration = float | timedelta
"""Seconds as `int` or `float`, or a `timedelta`."""

_LONGEST_MS = 2**53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def moment_us(stamp_us: int) -> datetime:
    """Microseconds since 1970 as an aware datetime."""
    return datetime.fromtimestamp(stamp_us // 1_000_000, UTC) + timedelta(microseconds=stamp_us % 1_000_000)


def microseconds_since_1970(when: datetime | float, what: str) -> int:
    """An aware datetime, or seconds since 1970 as `time.time()` gives them, as whole microseconds."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise PenstockError(
                ErrorCode.BAD_REQUEST,
                f"{what} is {when} without a time zone: use datetime.now(UTC), or seconds since 1970",
            )
        stamp_us = (when - _EPOCH) // timedelta(microseconds=1)
    elif isinstance(when, (int, float)):
        scaled = when * 1_000_000
        if not 0 < scaled <= limits.TIMESTAMP_US_MAX:  # also refuses NaN
            raise _no_moment(when, what)
        stamp_us = round(scaled)
    else:
        raise TypeError(f"{what} must be a datetime or seconds since 1970, not {type(when).__name__}")
    if not 0 < stamp_us <= limits.TIMESTAMP_US_MAX:
        raise _no_moment(when, what)
    return stamp_us


def _no_moment(when: object, what: str) -> PenstockError:
    return PenstockError(
        ErrorCode.BAD_REQUEST,
        f"{what} is {when}: give a datetime, or seconds since 1970, after 1970 and before the year 4253",
    )


def moment(stamp_ms: int) -> datetime:
    """A server's time stamp as an aware datetime."""
    return datetime.fromtimestamp(stamp_ms / 1000, UTC)
