"""The page of shared memory in which ClockBound says how wrong the wall clock can be (version 2 of its protocol).

The daemon writes the bound about once a second, with the monotonic time at which it held and the rate at which it
grows. Its generation is odd while it writes.
"""

from __future__ import annotations

import struct

MAGIC = (0x414D5A4E, 0x43420200)
VERSION = 2
SYNCHRONIZED, FREE_RUNNING = 1, 2
LAYOUT = struct.Struct("=IIIHHqqqqqQIiB7x")
"""Magic, size, version, generation; as of, void after (seconds, nanoseconds); bound, disruptions, drift, status."""
READS_AT_MOST = 11
"""Of a page that the daemon keeps writing to."""
_SECOND_NS = 1_000_000_000


class PageError(Exception):
    """The page does not say how wrong the clock can be; says why."""


class PageReads:
    """Reads of a page until two in a row are alike, and the daemon was not writing."""

    def __init__(self) -> None:
        self._before: bytes | None = None
        self._reads = 0

    def take(self, page: bytes) -> bytes | None:
        """What was read: the whole page, or None where it is to be read again. Raises `PageError` after too many reads."""
        before, self._before = self._before, page
        if page == before and (len(page) < LAYOUT.size or _is_finished(page)):
            return page
        self._reads += 1
        if self._reads == READS_AT_MOST:
            raise PageError("ClockBound is in the middle of an update, or has not begun")
        return None


def error_bound_us(page: bytes, monotonic_ns: int) -> int:
    """How far the wall clock may be off at a monotonic time; raises `PageError`."""
    if len(page) < LAYOUT.size:
        raise PageError("ClockBound's shared memory is too short")
    first, second, _, version, _, as_of_s, as_of_ns, void_s, void_ns, bound_ns, _, drift_ppb, status, _ = (
        LAYOUT.unpack_from(page)
    )
    if (first, second) != MAGIC or version != VERSION:
        raise PageError(f"ClockBound's shared memory is not of version {VERSION}")
    if status not in (SYNCHRONIZED, FREE_RUNNING) or monotonic_ns >= void_s * _SECOND_NS + void_ns:
        raise PageError("ClockBound does not guarantee the time at the moment")
    # Its monotonic clock is a coarse one, which may be a little ahead of what we read.
    elapsed_ns: int = max(0, monotonic_ns - (as_of_s * _SECOND_NS + as_of_ns))
    grown_ns: int = bound_ns + elapsed_ns * drift_ppb // _SECOND_NS
    return grown_ns // 1000 + 1


def _is_finished(page: bytes) -> bool:
    generation: int = LAYOUT.unpack_from(page)[4]
    return generation > 0 and generation % 2 == 0
