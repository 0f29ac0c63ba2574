"""Reads retained logs by range: answers are verbatim slices of stored batches, from memory or from the disk.

Batches in memory are answered at once. For the rest a helper thread reads long parts of the files, bypassing the cache. In
both cases the answer leaves when everything appended so far is on disk, so a reader sees a prefix of the log that a crash
cannot undo.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from penstock.backend.logs.membership import end_leases, renewed_wait_ms
from penstock.backend.logs.waiting import LogReader
from penstock.backend.node.parts import NodeParts
from penstock.backend.upkeep.upkeep_times import earliest
from penstock.model import limits
from penstock.model.batch import STAMPS, Batch, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.queue.log.groups import check_member, check_offset, retained
from penstock.queue.log.index import LoggedRun, LogIndex
from penstock.storage.entry import OFFSET_MASK, POSITION_SHIFT
from penstock.storage.errors import DamagedEntryError
from penstock.storage.job import Job
from penstock.storage.range_read import LoggedEntry, RangeReadJob
from penstock.wire.log_messages import FindOffset, LogBounds, LoggedBatch, LogSlice, ReadLog
from penstock.wire.messages import Failed

_BATCHES_AT_ONCE = 10_000
_JOBS_AT_ONCE = 2
"""While one is read, another is answered; more would only take memory."""
_JOINED_BYTES = 4096
"""Slices smaller than this on average are copied into one buffer."""


class LogReads:
    """The `ReadLog` requests of a node, answered or waiting."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._cold: deque[LogReader] = deque()
        """Those for whom a helper thread is to read."""
        self._under_way: dict[RangeReadJob, tuple[LogReader, list[LoggedRun]]] = {}
        self._jobs: list[RangeReadJob] = []

    # -- requests --------------------------------------------------------------------------------------------

    def read(self, connection: int, request_id: int, request: ReadLog, now_ms: int) -> None:
        """Answers at once if there is something to read, else waits, if it may wait."""
        parts = self._parts
        _check_bounds(request)
        wait_ms = renewed_wait_ms(parts, request, now_ms)
        reader = LogReader(connection, request_id, request, now_ms + wait_ms)
        if not parts.may_deliver(connection):
            reader.parked = True
            _allowed(parts, request)
            parts.readers.enter(reader)
        elif not self._serve(reader):
            if wait_ms and not _is_left_out(parts, request):
                parts.readers.enter(reader)
            else:
                self._answer(reader, [], [])

    def _serve(self, reader: LogReader) -> bool:
        """Answers from memory or has it read; False where there is nothing to read yet.

        Raises `PenstockError` where it may not read, `DamagedEntryError` where what it reads is not what was written.
        """
        parts = self._parts
        log = _allowed(parts, reader.request)
        runs = _runs(log, reader.request)
        if not runs:
            return False
        entries = self._cached(reader.request.queue_id, runs)
        if entries:
            self._answer(reader, runs[: len(entries)], entries)
            return True
        if parts.readers.find(reader.connection, reader.request_id) is None:
            parts.readers.enter(reader)
        reader.reading = True
        self._cold.append(reader)
        self._start_jobs()
        return True

    def _cached(self, partition_id: int, runs: Sequence[LoggedRun]) -> list[LoggedEntry]:
        """The first batches, as far as they are in memory."""
        found: list[LoggedEntry] = []
        for run in runs:
            stored = self._parts.store.cached(partition_id, run.position)
            if stored is None:
                break
            found.append((stored[0], stored[1].data))
        return found

    def _answer(self, reader: LogReader, runs: Sequence[LoggedRun], entries: Sequence[LoggedEntry]) -> None:
        parts = self._parts
        request = reader.request
        log = retained(parts.catalogue.usable(request.queue_id))
        batches, body = _slices(request, runs, entries)
        parts.readers.leave(reader)
        following = batches[-1].first + batches[-1].count if batches else log.gaps.after(request.start)
        answer = LogSlice(batches, following, log.next)
        parts.answer(reader.connection, reader.request_id, answer, body, about=request.queue_id)

    def _fail(self, reader: LogReader, error: PenstockError) -> None:
        self._parts.readers.leave(reader)
        self._parts.answer(reader.connection, reader.request_id, Failed(error.code, error.message))

    def cancel(self, connection: int, request_id: int) -> None:
        """Ends a wait with an empty slice. Data that is being read for it is dropped."""
        reader = self._parts.readers.find(connection, request_id)
        if reader is None:
            return
        try:
            self._answer(reader, [], [])
        except PenstockError as error:  # the queue may be damaged by now
            self._fail(reader, error)

    # -- waiting ---------------------------------------------------------------------------------------------

    def serve_waiting(self, now_ms: int) -> None:
        """Serves who waits for something that has changed in this turn."""
        parts = self._parts
        while parts.readers.awake:
            for reader in parts.readers.of_queue(parts.readers.awake.pop()):
                if not (reader.gone or reader.reading or reader.parked):
                    self._look(reader, now_ms)

    def _look(self, reader: LogReader, now_ms: int) -> None:
        """Answers the reader with what there is; if there is nothing and its time is over, with an empty slice."""
        parts = self._parts
        if not parts.may_deliver(reader.connection):
            reader.parked = True
            return
        try:
            if not self._serve(reader) and reader.deadline_ms <= now_ms:
                self._answer(reader, [], [])
        except PenstockError as error:
            self._fail(reader, error)
        except DamagedEntryError as damaged:  # every reader that waits on the queue gets an answer
            parts.fence(reader.request.queue_id, damaged)

    def tick(self, now_ms: int) -> None:
        """Removes silent members, and answers readers whose time is over."""
        end_leases(self._parts, now_ms)
        for reader in self._parts.readers.timed_out(now_ms):
            if not reader.parked:  # it may have been woken in this turn: then there is something to read
                self._look(reader, now_ms)

    # -- the disk --------------------------------------------------------------------------------------------

    def _start_jobs(self) -> None:
        parts = self._parts
        while self._cold and len(self._under_way) < _JOBS_AT_ONCE:
            reader = self._cold.popleft()
            if reader.gone:
                continue
            if not parts.may_deliver(reader.connection):
                reader.reading, reader.parked = False, True
                continue
            try:
                log = _allowed(parts, reader.request)
            except PenstockError as error:
                self._fail(reader, error)
                continue
            runs = _runs(log, reader.request)
            cold = next((i for i, run in enumerate(runs) if parts.store.has_cached(run.position)), len(runs))
            if not cold:  # it came into memory while it waited
                reader.reading = False
                parts.readers.awake.add(reader.request.queue_id)
                continue
            runs = runs[:cold]
            places = [(run.position, run.stored_bytes) for run in runs]
            job = parts.store.range_read_job(reader.request.queue_id, places)
            self._under_way[job] = (reader, runs)
            self._jobs.append(job)

    def next_ms(self) -> int | None:
        """When `tick` has something to do next."""
        return earliest(self._parts.readers.next_ms(), self._parts.members.next_ms())

    def take_jobs(self) -> list[RangeReadJob]:
        """Work for the helper thread."""
        jobs, self._jobs = self._jobs, []
        return jobs

    def job_done(self, job: Job) -> bool:
        """Takes a finished job and answers its reader; False if it is not one of these."""
        if not isinstance(job, RangeReadJob):
            return False
        parts = self._parts
        reader, runs = self._under_way.pop(job)
        if not reader.gone:
            reader.reading = False
            try:
                _allowed(parts, reader.request)
                if job.damaged is not None and not job.entries:
                    raise job.damaged
                self._answer(reader, runs[: len(job.entries)], job.entries)
            except PenstockError as error:
                self._fail(reader, error)
            except DamagedEntryError as damaged:
                parts.fence(reader.request.queue_id, damaged)
        self._start_jobs()
        return True


def find_offset(parts: NodeParts, request: FindOffset) -> LogBounds:
    """The ends of the log, and the first message sent at or after a time."""
    log = retained(parts.catalogue.usable(request.queue_id))
    found = log.next if request.time_ms is None else log.first_since(request.time_ms)
    return LogBounds(log.begin, log.next, found, log.gaps.pairs())


def _check_bounds(request: ReadLog) -> None:
    if not 1 <= request.max_messages <= limits.LOG_READ_MESSAGES:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"ask for 1 to {limits.LOG_READ_MESSAGES} messages, not {request.max_messages}",
        )
    if not 0 <= request.wait_ms <= limits.RECEIVE_WAIT_MS:
        raise PenstockError(ErrorCode.BAD_REQUEST, f"wait_ms must be 0 to {limits.RECEIVE_WAIT_MS}")


def _allowed(parts: NodeParts, request: ReadLog) -> LogIndex:
    """The log, if the reader may read it from where it asks; raises otherwise."""
    partition = parts.catalogue.usable(request.queue_id)
    log = retained(partition)
    if request.group:
        check_member(partition, request.group, request.member, request.generation)
    check_offset(partition, log, request.start)
    return log


def _is_left_out(parts: NodeParts, request: ReadLog) -> bool:
    """Whether no message has the number: then the reader learns where to continue, and waits there."""
    log = retained(parts.catalogue.usable(request.queue_id))
    return log.gaps.after(request.start) > request.start


def _runs(log: LogIndex, request: ReadLog) -> list[LoggedRun]:
    return log.batches(request.start, request.max_messages, _max_bytes(request), _BATCHES_AT_ONCE)


def _max_bytes(request: ReadLog) -> int:
    max_bytes = request.max_bytes if request.max_bytes is not None else limits.LOG_READ_BYTES_DEFAULT
    return max(1, min(max_bytes, limits.LOG_READ_BYTES))


def _slices(
    request: ReadLog, runs: Sequence[LoggedRun], entries: Sequence[LoggedEntry]
) -> tuple[list[LoggedBatch], list[Buffer]]:
    """The batches as they are stored, the first and the last cut where the request begins and ends."""
    heads: list[LoggedBatch] = []
    body: list[Buffer] = []
    left, max_bytes = request.max_messages, _max_bytes(request)
    total = 0
    for (first, messages, position, _, sent_ms), (sent, payload) in zip(runs, entries, strict=True):
        if sent.first != first or sent.count != messages:
            file, offset = position >> POSITION_SHIFT, position & OFFSET_MASK
            raise DamagedEntryError(f"file {file}", offset, "another batch is there")
        low = max(request.start - first, 0)
        high = min(messages, low + left)
        size = len(payload)
        if high - low < messages or size > max_bytes:
            buffers, high = _cut(Batch(payload), low, high, max_bytes)
            size = sum(map(len, buffers))
            body += buffers
        else:
            body.append(payload)
        stamp_us = sent.stamp_us
        if not stamp_us and payload[1] & STAMPS and (times := Batch(payload).integers(STAMPS)) is not None:
            stamp_us = times[low]
        counter = sent.counter + low if sent.process else 0
        heads.append(LoggedBatch(first + low, high - low, sent_ms, size, stamp_us, sent.process, counter))
        left -= high - low
        total += size
    if len(body) > 1 and total < _JOINED_BYTES * len(body):
        return heads, [b"".join(body)]
    return heads, body


def _cut(batch: Batch, low: int, high: int, max_bytes: int) -> tuple[list[Buffer], int]:
    """As many messages from `low` on as have not more bytes, one at least; and where they end."""
    buffers = batch.slice(low, high)
    fits, beyond = low + 1, high + 1
    if sum(map(len, buffers)) <= max_bytes or high == fits:
        return buffers, high
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if sum(map(len, batch.slice(low, middle))) <= max_bytes:
            fits = middle
        else:
            beyond = middle
    return batch.slice(low, fits), fits
