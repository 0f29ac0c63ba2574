"""Timestamp ids: (synchronized time, process, counter) in 128 bits, unique, and with the same order in every form.

As a tuple, as an integer, as 16 bytes and as 26 characters of text they sort alike. The counter of a process continues
from one id to the next, independent of the time, so the ids of a batch are one process, one first counter and a column of
times: 8 bytes a message, or nothing if all of them share one time.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import NamedTuple

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.ordering.clock_interval import ClockInterval

TIME_BITS, PROCESS_BITS, COUNTER_BITS = 56, 48, 24
TIME_MAX = limits.TIMESTAMP_US_MAX
"""Microseconds since 1970; they last until the year 4253."""
PROCESS_MAX = 2**PROCESS_BITS - 1
COUNTERS = 2**COUNTER_BITS
ID_BYTES = (TIME_BITS + PROCESS_BITS + COUNTER_BITS) // 8
TEXT_CHARACTERS = 26
_SPARE_BITS = 5 * TEXT_CHARACTERS - 8 * ID_BYTES
"""Zeros at the end of the text."""


class TimestampId(NamedTuple):
    """One id; tuples of it sort in the order of time, then process, then counter."""

    time_us: int
    process: int
    counter: int

    def to_integer(self) -> int:
        """The id as a number of 128 bits."""
        return (self.time_us << PROCESS_BITS | self.process) << COUNTER_BITS | self.counter

    def to_bytes(self) -> bytes:
        """The id as 16 bytes, most significant first."""
        return self.to_integer().to_bytes(ID_BYTES, "big")

    def to_text(self) -> str:
        """The id as 26 characters 0-9 and A-V."""
        return base64.b32hexencode(self.to_bytes()).decode()[:TEXT_CHARACTERS]


BEFORE_ALL = TimestampId(0, 0, -1)
"""Smaller than every id: the beginning of the order."""


def last_of(time_us: int) -> TimestampId:
    """The greatest id of a time."""
    return TimestampId(time_us, PROCESS_MAX, COUNTERS - 1)


def from_integer(number: int) -> TimestampId:
    """The id of a number of 128 bits."""
    if not 0 <= number < 1 << 8 * ID_BYTES:
        raise PenstockError(
            ErrorCode.BAD_REQUEST, f"{number} is not a timestamp id: it needs 128 bits or less"
        )
    rest, counter = divmod(number, COUNTERS)
    return TimestampId(rest >> PROCESS_BITS, rest & PROCESS_MAX, counter)


def from_bytes(data: bytes) -> TimestampId:
    """The id of 16 bytes."""
    if len(data) != ID_BYTES:
        raise PenstockError(ErrorCode.BAD_REQUEST, f"a timestamp id has {ID_BYTES} bytes, not {len(data)}")
    return from_integer(int.from_bytes(data, "big"))


def from_text(text: str) -> TimestampId:
    """The id of 26 characters; only the one way in which `to_text` writes it is understood."""
    found = None
    if len(text) == TEXT_CHARACTERS:
        try:  # the digits of base 32 are the same, and `int` is 10 times as fast as `base64`
            found = from_integer(int(text, 32) >> _SPARE_BITS)
        except (ValueError, PenstockError):
            pass
    if found is None or found.to_text() != text:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"{text[:64]!r} is not a timestamp id: it is written as {TEXT_CHARACTERS} characters 0-9 and A-V",
        )
    return found


def draw_process(dice: random.Random) -> int:
    """A process number that is probably unique: 100,000 processes share one with a chance of 1 in 50,000.

    Two that do share one still need the same counter in the same microsecond to make the same id.
    """
    return dice.getrandbits(PROCESS_BITS)


class IdRange(NamedTuple):
    """Ids of one time and process with consecutive counters."""

    first: TimestampId
    size: int

    def ids(self) -> Iterator[TimestampId]:
        """One by one."""
        time_us, process, counter = self.first
        return (TimestampId(time_us, process, counter + i) for i in range(self.size))


class Sequencer:
    """Makes ids of one process, each greater than the one before, for any behaviour of the clock.

    An id contains the middle of the clock's interval, whose error is at most the uncertainty. When the clock stops or goes
    back, the time of ids stops and the counter continues; when the counter has wrapped around, the time advances by a
    microsecond. A process that starts again takes a new process number, or continues from its last recorded id.
    """

    def __init__(self, process: int, last: TimestampId = BEFORE_ALL) -> None:
        if not 0 <= process <= PROCESS_MAX:
            raise ValueError(f"a process number has {PROCESS_BITS} bits, {process} has more")
        self._process = process
        self._time_us = last.time_us
        self._counter = last.counter + 1

    def take(self, now: ClockInterval, count: int = 1) -> IdRange:
        """The next `count` ids; all of them have one time and their counters never come round in between."""
        if not 1 <= count <= COUNTERS:
            raise ValueError(f"{count} ids: 1 to {COUNTERS} can be taken at once")
        time_us = max(now.middle_us, self._time_us)
        counter = self._counter
        if counter + count > COUNTERS:
            counter = 0
            time_us = max(time_us, self._time_us + 1)
        if time_us > TIME_MAX:
            raise PenstockError(
                ErrorCode.BAD_REQUEST,
                f"the clock shows {time_us} µs since 1970: past the end of timestamp ids",
            )
        self._time_us, self._counter = time_us, counter + count
        return IdRange(TimestampId(time_us, self._process, counter), count)

    def ahead_us(self, now: ClockInterval) -> int:
        """How far the next id is ahead of the latest possible true time: the effect of a clock that went back."""
        return max(0, self._time_us - now.latest_us)
