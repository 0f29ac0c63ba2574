"""Collects usage beside the requests: taking an event never waits, never fails, and never holds without bound.

An event is in the spool before its request is answered, so that a process that is killed takes none along: whoever
starts next over the same directory hands on what it left. Numbers rise by one a request, also where there was no room
for the event: what is missing shows as a gap wherever the rows end up.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from penstock.usage.batch import UsageBatch
from penstock.usage.event import UsageEvent
from penstock.usage.spool import NO_ROOM, SUFFIX, Spool

log = logging.getLogger(__name__)

BATCH_EVENTS = 512
"""Turning so many into Arrow takes a good half millisecond from the requests."""
EVENT_BYTES = 1536
"""A longer one is shortened, so that a batch is never larger than the log's largest message: it would be refused for ever."""

_decoder = msgspec.msgpack.Decoder(UsageEvent)


class UsageTotals(NamedTuple):
    """Since the collector began."""

    recorded: int
    reported: int
    """In the log. Events that an earlier process has left are not in these counts."""
    dropped: int
    waiting: int


class UsageCollector:
    """Owns the spool of this process, and for a while those that others have left."""

    def __init__(self, directory: str, front_end: str, *, token: bytes, spool_bytes: int) -> None:
        """`token`: 16 random bytes, which make the name and the producer unlike all others."""
        self.front_end = f"{front_end}/{token[:4].hex()}"
        self._directory = Path(directory)
        self._producer = int.from_bytes(token[8:16], "little") >> 1 | 1
        self._left = self._adopted()
        self._spool = self._made(token[:8].hex(), spool_bytes)
        self._waiting: deque[tuple[int, int, UsageEvent]] = deque()
        self._encoder = msgspec.msgpack.Encoder()
        self._number = 0
        self._dropped = 0
        self._reported = 0
        self._full = False
        self._closed = False
        self.many: Callable[[], None] = _nobody
        """Called when there is a whole batch to hand on."""

    def record(self, event: UsageEvent) -> None:
        """Takes an event; on return it outlives the process."""
        self._number += 1
        try:
            data = self._encoder.encode(event)
        except UnicodeEncodeError:
            event = event.readable()
            data = self._encoder.encode(event)
        if len(data) > EVENT_BYTES:
            event = event.shortened()
            data = self._encoder.encode(event)
        end = NO_ROOM if self._closed else self._spool.append(self._number, data)
        if end == NO_ROOM:
            self._drop()
            return
        waiting = self._waiting
        waiting.append((self._number, end, event))
        if len(waiting) == BATCH_EVENTS:
            self.many()

    def next_batch(self) -> UsageBatch | None:
        """The next events for the log, those of earlier processes first; the same again until they are `reported`."""
        while self._left:
            batch = _next_of(self._left[0])
            if batch is not None:
                return batch
            self._left.pop(0).remove()
        if not self._waiting:
            return None
        spool = self._spool
        taken = [self._waiting[place] for place in range(min(len(self._waiting), BATCH_EVENTS))]
        if taken[0][0] <= spool.through:
            taken = [entry for entry in taken if entry[0] <= spool.through]
        else:
            spool.begin_batch(spool.batch + 1, taken[-1][0])
        return UsageBatch(
            spool,
            self.front_end,
            spool.producer,
            spool.batch,
            [number for number, _, _ in taken],
            [event for _, _, event in taken],
            taken[-1][1],
        )

    @property
    def has_many(self) -> bool:
        """Whether a whole batch waits, or what an earlier process has left."""
        return len(self._waiting) >= BATCH_EVENTS or bool(self._left)

    def reported(self, batch: UsageBatch) -> None:
        """The log has the batch."""
        batch.spool.release(batch.end)
        if batch.spool is not self._spool:
            return
        for _ in batch.events:
            self._waiting.popleft()
        self._reported += len(batch.events)
        if self._full:
            self._full = False
            log.warning(
                "requests are recorded again; %d are missing since the start, and the log shows where",
                self._dropped,
            )

    def totals(self) -> UsageTotals:
        """What became of all events so far."""
        return UsageTotals(self._number, self._reported, self._dropped, len(self._waiting))

    def close(self) -> None:
        """Takes no more; what the log does not have stays in the directory for the next process."""
        self._closed = True
        self._spool.close()
        for spool in self._left:
            spool.close()
        self._left = []

    # -- the directory ---------------------------------------------------------------------------------------

    def _drop(self) -> None:
        self._dropped += 1
        if not self._full and not self._closed:
            self._full = True
            log.warning(
                "requests are no longer recorded: the log of usage takes nothing, and %s is full; "
                "requests go on, and what is missing is counted",
                self._directory,
            )

    def _adopted(self) -> list[Spool]:
        found = []
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            try:
                spool = Spool.adopt(path)
            except (OSError, ValueError) as error:
                log.warning("cannot read what %s holds of usage: %s", path, error)
                continue
            if spool is not None:
                found.append(spool)
        return found

    def _made(self, name: str, size: int) -> Spool:
        try:
            return Spool.make(self._directory / f"{name}{SUFFIX}", size, self.front_end, self._producer)
        except OSError as error:
            log.warning(
                "cannot keep usage in %s: %s; requests go on, and what is on its way to the log is lost if this "
                "process is killed",
                self._directory,
                error.strerror or error,
            )
            return Spool.make(None, size, self.front_end, self._producer)


def _next_of(spool: Spool) -> UsageBatch | None:
    """The next events that a dead process has left; None: there are no more, or they cannot be read."""
    entries = [entry for entry, _ in zip(spool.entries(), range(BATCH_EVENTS), strict=False)]
    if not entries:
        return None
    if entries[0].number <= spool.through:
        entries = list(takewhile(lambda entry: entry.number <= spool.through, entries))
    else:
        spool.begin_batch(spool.batch + 1, entries[-1].number)
    try:
        events = [_decoder.decode(entry.data) for entry in entries]
    except msgspec.MsgspecError as error:
        log.warning("what %s has left of usage cannot be read: %s", spool.name, error)
        return None
    numbers = [entry.number for entry in entries]
    return UsageBatch(spool, spool.name, spool.producer, spool.batch, numbers, events, entries[-1].end)


def _nobody() -> None:
    pass
