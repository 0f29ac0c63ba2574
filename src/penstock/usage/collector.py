"""Collects usage beside the requests: taking an event never waits, never fails, and never holds without bound.

A thread writes what has been collected a few times a second. Events that find no room, or that the disk does not
take, are counted, and a line says how many are missing as soon as one can be written.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import NamedTuple

import msgspec

from penstock.usage.event import Dropped, Line, UsageEvent
from penstock.usage.rolling_file import RollingFile

log = logging.getLogger(__name__)

WAITING_EVENTS = 65_536
PAUSE_SECONDS = 0.2
EVENTS_PER_WRITE = 256
"""Encoding holds the interpreter's lock: 256 events take it from the requests for about 0.1 ms."""
CLOSE_SECONDS = 5.0


class UsageTotals(NamedTuple):
    """Since the collector began."""

    recorded: int
    written: int
    dropped: int
    waiting: int


class UsageCollector:
    """Owns the directory's open file and the thread that writes it."""

    def __init__(
        self,
        directory: str,
        *,
        file_bytes: int,
        keep_files: int,
        now_ms: Callable[[], int],
        waiting_events: int = WAITING_EVENTS,
    ) -> None:
        self._file = RollingFile(directory, file_bytes, keep_files)
        self._directory = directory
        self._now_ms = now_ms
        self._waiting: deque[UsageEvent] = deque()
        self._waiting_events = waiting_events
        self._half = max(1, waiting_events // 2)
        self._encoder = msgspec.json.Encoder()
        # Each count has one thread that raises it, so none needs a lock.
        self._refused = 0
        self._taken = 0
        self._written = 0
        self._lost = 0
        self._said = 0
        """How many of those dropped the files tell of."""
        self._failing = False
        self._closing = False
        self._wake = Event()
        self._thread = Thread(target=self._run, name="penstock-usage", daemon=True)
        self._thread.start()

    def record(self, event: UsageEvent) -> None:
        """Takes an event; called by one thread only (0.3 µs, making the event included)."""
        waiting = self._waiting
        if len(waiting) >= self._waiting_events or self._closing:
            self._refused += 1
            return
        waiting.append(event)
        if len(waiting) == self._half:
            self._wake.set()

    def totals(self) -> UsageTotals:
        """What became of all events so far."""
        waiting, dropped = len(self._waiting), self._refused + self._lost
        return UsageTotals(self._taken + waiting + self._refused, self._written, dropped, waiting)

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Writes what waits and closes the file; False if a disk that hangs took too long."""
        self._closing = True
        self._wake.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    # -- the thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._guarded(self._recover)
        while not self._closing:
            self._wake.wait(PAUSE_SECONDS)
            self._wake.clear()
            self._write_all()
            self._guarded(lambda: self._file.roll_if_due(self._now_ms()))
        self._write_all()
        self._guarded(self._file.close)

    def _recover(self) -> None:
        if found := self._file.recover():
            log.info("closed %d files of usage that were left open in %s", found, self._directory)

    def _write_all(self) -> None:
        """Everything that waits now; what arrives meanwhile waits for the next time, unless it is the last."""
        left = len(self._waiting)
        while left > 0 or self._refused + self._lost > self._said:
            count = min(left, EVENTS_PER_WRITE)
            events = [self._waiting.popleft() for _ in range(count)]
            left -= count
            self._taken += count
            if not self._write(events) and not left:
                return  # the line that says what is missing has to wait

    def _write(self, events: list[UsageEvent]) -> bool:
        now_ms = self._now_ms()
        dropped = self._refused + self._lost
        lines: list[Line] = [*events]
        if dropped > self._said:
            lines.insert(0, Dropped(now_ms, dropped - self._said))
        data, good = self._encoded(lines)
        unreadable = len(lines) - good
        if not self._guarded(lambda: self._file.write(data, now_ms)):
            self._lost += len(events)
            return False
        if self._failing:
            self._failing = False
            log.warning("usage is written to %s again", self._directory)
        self._said = dropped
        self._written += len(events) - unreadable
        self._lost += unreadable
        return True

    def _encoded(self, lines: Sequence[Line]) -> tuple[bytes, int]:
        """The lines, and how many of them; text that is not Unicode cannot be written."""
        try:
            return self._encoder.encode_lines(lines), len(lines)
        except (UnicodeEncodeError, msgspec.MsgspecError, TypeError):
            pieces = []
            for line in lines:
                try:
                    pieces.append(self._encoder.encode(line) + b"\n")
                except (UnicodeEncodeError, msgspec.MsgspecError, TypeError):
                    continue
            return b"".join(pieces), len(pieces)

    def _guarded(self, act: Callable[[], None]) -> bool:
        """Whether the disk did it; says so once, until events can be written again."""
        try:
            act()
        except OSError as error:
            if not self._failing:
                self._failing = True
                log.warning(
                    "cannot write usage to %s: %s; requests go on, and what is missing is counted",
                    self._directory,
                    error.strerror or error,
                )
            return False
        return True
