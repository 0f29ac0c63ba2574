"""Collects usage beside the requests: adding an event never waits, never fails, and uses bounded memory.

An event is in the spool before its request is answered, so a process that is killed loses none: the next process with the
same directory sends them. Numbers rise by one for each request, also if there was no room for the event, so missing events
are visible as a gap.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

import msgspec

from penstock.usage.batch import UsageBatch
from penstock.usage.event import Row, UsageEvent
from penstock.usage.spool import LEAST_BYTES, NO_ROOM, Spool
from penstock.usage.spool_files import RingInMemory, SpoolFiles
from penstock.usage.stranger_rows import StrangerRows

logger = logging.getLogger(__name__)

BATCH_EVENTS = 512
"""Turning so many into Arrow takes a good half millisecond from the requests."""
EVENT_BYTES = 1536
"""A longer one is shortened, so that a batch is never larger than the log's largest message: it would be refused for ever."""

BLOCK_EVENTS = 256
"""Rows that are written together; a batch for the log is made of whole blocks."""
BLOCK_EVENT_BYTES = 512
"""Rows longer than this on average are written one by one, so that long ones among them are seen and shortened."""

_rows = msgspec.msgpack.Decoder(list[UsageEvent])
_row = msgspec.msgpack.Decoder(UsageEvent)


class UsageTotals(NamedTuple):
    """Counts since the collector began."""

    recorded: int
    reported: int
    """In the log. Events that an earlier process has left are not in these counts."""
    dropped: int
    """Found no room, or could not be converted."""
    waiting: int


class _Block(NamedTuple):
    """Rows that are one entry of the spool."""

    first: int
    """The number of the first; those of the others follow."""
    end: int
    """Where the spool continues."""
    rows: list[Row]


class UsageCollector:
    """Owns the spool of this process, and for a time those of dead ones."""

    def __init__(self, files: SpoolFiles, front_end: str, *, token: bytes, spool_bytes: int) -> None:
        """`token`: 16 random bytes, which make the name and the producer unlike all others."""
        self.front_end = f"{front_end}/{token[:4].hex()}"
        self._files = files
        self._producer = int.from_bytes(token[8:16], "little") >> 1 | 1
        self._left = self._adopted()
        self._spool = self._made(token[:8].hex(), spool_bytes)
        self._waiting: deque[_Block] = deque()
        self._waiting_events = 0
        self._encoder = msgspec.msgpack.Encoder()
        self._strangers = StrangerRows()
        self._number = 0
        self._dropped = 0
        self._reported = 0
        self._full = False
        self._closed = False
        self._unconverted: tuple[UsageBatch, int] | None = None
        """The batch on its way that has rows which cannot be converted, and how many."""
        self.many: Callable[[], None] = _nobody
        """Called when there is a whole batch to hand on."""

    def record(self, event: UsageEvent) -> None:
        """Takes an event; on return it outlives the process."""
        try:
            data = self._encoder.encode((event,))
        except Exception:
            self._record_odd(event)
            return
        if len(data) > EVENT_BYTES:
            event = event.shortened()
            data = self._encoder.encode((event,))
        self._keep([event.row()], data)

    def _record_odd(self, event: UsageEvent) -> None:
        """Takes an event that cannot be written as it is: with readable text, or not at all."""
        event = event.readable().shortened()
        try:
            data = self._encoder.encode((event,))
        except Exception:
            self._number += 1
            self._skip(1)
        else:
            self._keep([event.row()], data)

    def record_all(self, rows: list[Row]) -> None:
        """Takes the rows of requests that are answered together, for less than one by one."""
        if len(rows) > BLOCK_EVENTS:
            self.record_all(rows[:BLOCK_EVENTS])
            self.record_all(rows[BLOCK_EVENTS:])
            return
        try:
            data = self._encoder.encode(rows)
        except Exception:  # one of them is at fault, and is found below
            data = b""
        if data and len(data) <= BLOCK_EVENT_BYTES * len(rows):
            self._keep(rows, data)
            return
        for row in rows:
            self.record(UsageEvent(*row))

    def record_stranger(self, row: Row) -> None:
        """Adds the row of a request from an unknown caller; if there are many, they are summed."""
        rows = self._strangers.take(row)
        if rows:
            self.record_all(rows)

    def record_sums(self, now_ms: int | None) -> None:
        """Takes what was added up of a minute that is over; None: of this one too."""
        rows = self._strangers.rest() if now_ms is None else self._strangers.due(now_ms)
        if rows:
            self.record_all(rows)

    def _keep(self, rows: list[Row], data: bytes) -> None:
        first, count = self._number + 1, len(rows)
        self._number += count
        end = NO_ROOM if self._closed else self._spool.append(first, data)
        if end == NO_ROOM:
            self._drop(count)
            return
        self._waiting.append(_Block(first, end, rows))
        before = self._waiting_events
        self._waiting_events = after = before + count
        if before < BATCH_EVENTS <= after:
            self.many()

    def next_batch(self) -> UsageBatch | None:
        """The next events for the log, those of earlier processes first; the same again until they are `reported`."""
        while self._left:
            batch = _next_of(self._left[0])
            if batch is not None:
                return batch
            given_up = self._left.pop(0)
            if given_up.is_damaged:
                logger.warning(
                    "the rest of the usage rows that %(process)s left is damaged, as after a power cut, and is dropped; the log "
                    "shows a gap where requests are missing",
                    {"process": given_up.name},
                )
            given_up.give_up()
        if not self._waiting:
            return None
        return _batch_of(self._spool, self.front_end, _first_of(self._waiting))

    def stream(self, batch: UsageBatch) -> bytes:
        """A batch as the log gets it. Rows that cannot be converted are left out: else no later one would ever be handed on."""
        try:
            return batch.stream()
        except Exception:
            convertible = batch.convertible()
            self._unconverted = (batch, len(batch.rows) - len(convertible.rows))
            return convertible.stream()

    @property
    def has_many(self) -> bool:
        """Whether a whole batch waits, or what an earlier process has left."""
        return self._waiting_events >= BATCH_EVENTS or bool(self._left)

    def reported(self, batch: UsageBatch) -> None:
        """The log has the batch."""
        batch.spool.release(batch.end)
        skipped = 0
        if self._unconverted is not None and self._unconverted[0] == batch:
            skipped = self._unconverted[1]
            self._skip(skipped, own=batch.spool is self._spool)
        self._unconverted = None
        if batch.spool is not self._spool:
            return
        while self._waiting and self._waiting[0].end <= batch.end:
            self._waiting.popleft()
        self._waiting_events -= len(batch.rows)
        self._reported += len(batch.rows) - skipped
        if self._full:
            self._full = False
            logger.warning(
                "usage is recorded again; %(requests)d requests are missing since the start, and the "
                "usage log shows where",
                {"requests": self._dropped},
            )

    def totals(self) -> UsageTotals:
        """What happened to all events so far."""
        return UsageTotals(self._number, self._reported, self._dropped, self._waiting_events)

    def close(self) -> None:
        """Accepts no more; events that the log does not have stay in the directory for the next process."""
        self.record_sums(None)
        self._closed = True
        self._spool.close()
        for spool in self._left:
            spool.close()
        self._left = []

    # -- the files -------------------------------------------------------------------------------------------

    def _drop(self, count: int) -> None:
        self._dropped += count
        if not self._full and not self._closed:
            self._full = True
            logger.warning(
                "usage is not recorded: the usage log accepts nothing, and %(directory)s is full. "
                "Requests are still served; missing records are counted",
                {"directory": self._files.place},
            )

    def _skip(self, count: int, *, own: bool = True) -> None:
        """Rows that cannot be written or converted are missing from now on."""
        self._dropped += count if own else 0
        logger.warning(
            "%(requests)d usage records cannot be converted and are left out; the usage log shows a "
            "gap where they are missing. This is a defect of Penstock; please report it",
            {"requests": count},
        )

    def _adopted(self) -> list[Spool]:
        found = []
        for name in self._files.names():
            try:
                file = self._files.take(name)
            except (OSError, ValueError) as error:
                logger.warning(
                    "could not read the usage records in %(spool)s of %(directory)s: %(error)s",
                    {"spool": name, "directory": self._files.place, "error": error},
                )
                continue
            spool = Spool.adopt(file) if file is not None else None
            if spool is not None:
                found.append(spool)
        return found

    def _made(self, name: str, size: int) -> Spool:
        size = max(size, LEAST_BYTES)
        try:
            return Spool.begin(self._files.make(name, size), self.front_end, self._producer)
        except OSError as error:
            logger.warning(
                "cannot store usage in %(directory)s: %(error)s. Requests are still served, but usage "
                "records that are not in the log yet are lost if this process is killed",
                {"directory": self._files.place, "error": error.strerror or error},
            )
            return Spool.begin(RingInMemory(size), self.front_end, self._producer)


def _next_of(spool: Spool) -> UsageBatch | None:
    """The next events of a dead process; None: there are no more, or they cannot be read."""
    blocks = _first_of(_readable(spool))
    return _batch_of(spool, spool.name, blocks) if blocks else None


def _readable(spool: Spool) -> Iterator[_Block]:
    """The readable events. An unreadable entry is left out, and the following ones are sent."""
    for entry in spool.entries():
        try:
            rows = [event.row() for event in _events_in(entry.data)]
        except msgspec.MsgspecError as error:
            logger.warning(
                "could not read some of the usage records that %(spool)s left: %(error)s",
                {"spool": spool.name, "error": error},
            )
            continue
        yield _Block(entry.number, entry.end, rows)


def _events_in(data: bytes) -> list[UsageEvent]:
    try:
        return _rows.decode(data)
    except msgspec.ValidationError:  # of a version that wrote one event an entry
        return [_row.decode(data)]


def _first_of(blocks: Iterable[_Block]) -> list[_Block]:
    """The blocks that make one batch."""
    taken: list[_Block] = []
    room = BATCH_EVENTS
    for block in blocks:
        room -= len(block.rows)
        if room < 0 and taken:
            break
        taken.append(block)
    return taken


def _batch_of(spool: Spool, front_end: str, blocks: list[_Block]) -> UsageBatch:
    """A batch that was sent before has the same events again; otherwise a new batch begins."""
    if blocks[0].first <= spool.through:
        blocks = list(takewhile(lambda block: block.first <= spool.through, blocks))
    else:
        spool.begin_batch(spool.batch + 1, blocks[-1].first + len(blocks[-1].rows) - 1)
    numbers: list[int] = []
    rows: list[Row] = []
    for first, _, some in blocks:
        numbers += range(first, first + len(some))
        rows += some
    return UsageBatch(spool, front_end, spool.producer, spool.batch, numbers, rows, blocks[-1].end)


def _nobody() -> None:
    pass
