"""Drives a node: hands it what arrived, runs its flushes and jobs in their threads, writes what it answers.

The node is synchronous and owned by the event loop's thread. Everything that arrived in one turn of the loop
is handled first, then ONE pump starts a flush, hands out jobs and writes: that is where group commit comes
from. The driver decides nothing about queues. An exception out of the node means that its state can no longer
be trusted: the driver says so in one sentence, stops touching it and reports `failure`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from penstock.backend.node.node import Node
from penstock.model.batch import Buffer
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.engine.lone_flush import LoneFlush
from penstock.runtime.engine.turn import Turn
from penstock.runtime.engine.worker import Worker
from penstock.storage.disk import DiskFailedError, DiskFullError
from penstock.storage.errors import StorageError
from penstock.storage.flush import Flush
from penstock.storage.job import Job
from penstock.wire.frames import Frame

log = logging.getLogger(__name__)

EXPECTED_FAILURES = (StorageError, DiskFailedError, DiskFullError)
"""What a disk can do to a node; anything else is a defect."""


class Driver:
    """Runs one node on one event loop until it is stopped or fails."""

    def __init__(
        self,
        node: Node,
        clock: WallClock,
        loop: asyncio.AbstractEventLoop,
        *,
        write: Callable[[int, list[Buffer]], None],
        congestion_changed: Callable[[bool], None],
        failed: Callable[[], None],
    ) -> None:
        self._node = node
        self._clock = clock
        self._loop = loop
        self.turn = Turn(loop)
        """Where everybody around the node puts what is to be done together."""
        self._write = write
        self._congestion_changed = congestion_changed
        self._failed = failed
        self.congested = False
        self.failure: BaseException | None = None
        self.ended = asyncio.Event()
        """Set when the node failed or was closed."""
        self._flusher: Worker[Flush] = Worker("penstock-flush", loop, self._flush_reported)
        self._jobs: Worker[Job] = Worker("penstock-jobs", loop, self._job_reported)
        self._flush_under_way = False
        self._jobs_under_way = 0
        self._pump_is_due = False
        self._requests_in_turn = 0
        self._answers_are_due = False
        """A flush has ended, and what it lets go has not been written yet."""
        self._lone_flush = LoneFlush()
        self._lone_flush_started: float | None = None
        self._wakeup_ms: int | None = 0
        """When the node wants to be ticked, as of the last pump."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._closing = False
        self._closed = False
        self._quiet: asyncio.Future[None] | None = None
        self.wake()  # what came due while the server was down is due now

    @property
    def flush_thread_id(self) -> int:
        """What the kernel calls the thread that flushes."""
        return self._flusher.thread_id

    # -- what arrives ----------------------------------------------------------------------------------------

    def connected(self, connection: int) -> None:
        """A client has connected."""
        self._call(lambda: self._node.connected(connection))

    def behind(self, connection: int) -> None:
        """A client does not read what it is sent."""
        self._call(lambda: self._node.behind(connection))

    def caught_up(self, connection: int) -> None:
        """A client has read what it was sent."""
        self._call(lambda: self._node.caught_up(connection))

    def disconnected(self, connection: int) -> None:
        """A client is gone."""
        self._call(lambda: self._node.disconnected(connection, self._clock.now_ms()))

    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
        """Whole frames arrived, each of which stands for so many requests."""
        if self.failure is not None or self._closing:
            return
        node_handle, now_ms = self._node.handle, self._clock.now_ms()
        try:
            for frame in frames:
                node_handle(connection, frame, now_ms)
                self._requests_in_turn += stands_for
        except Exception as error:
            self._fail(error)
            return
        self.wake()

    def wake(self) -> None:
        """Pumps once, after everything that arrived in this turn of the loop."""
        if not self._pump_is_due:
            self._pump_is_due = True
            self.turn.last(self._pump)

    def _call(self, call: Callable[[], None]) -> None:
        if self.failure is not None or self._closed:
            return
        try:
            call()
        except Exception as error:
            self._fail(error)
            return
        self.wake()

    # -- the pump --------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        self._pump_is_due = False
        if self.failure is not None or self._closed:
            return
        node = self._node
        try:
            if self._wakeup_ms is not None and self._wakeup_ms <= (now_ms := self._clock.now_ms()):
                self._wakeup_ms = None
                node.tick(now_ms)
            ran_inline = self._start_flush()
            # Answers first: whoever waits for one does not wait for our housekeeping.
            for connection, buffers in node.take_output():
                self._write(connection, buffers)
            self._answers_are_due = False
            if ran_inline:
                self._start_flush()  # of what came of the first
            self._ship()
            if not self._closing:
                self._hand_out_jobs()
            if (congested := node.congested()) is not self.congested:
                self.congested = congested
                self._congestion_changed(congested)
            self._set_timer()
        except Exception as error:
            self._fail(error)
            return
        quiet = self._quiet
        if quiet is not None and not (self._flush_under_way or self._jobs_under_way or quiet.done()):
            quiet.set_result(None)

    def _ship(self) -> None:
        """For nodes that are not alone: what was appended goes to the others while the disk is at it."""

    def _start_flush(self) -> bool:
        """Hands out the next flush, unless one is under way or there is nothing; True if it has ended already."""
        if self._flush_under_way:
            return False  # what was appended since joins the next one
        # With answers to write there is something to overlap with: they would wait for the sync of what came after them.
        alone = self._requests_in_turn == 1 and not self._answers_are_due
        self._requests_in_turn = 0
        flush = self._node.take_flush()
        self._ship()
        if flush is None:
            return False
        if alone:
            started = time.perf_counter()
            if self._lone_flush.runs_inline():
                flush.run()
                self._lone_flush.took(time.perf_counter() - started, inline=True)
                self._node.flushed(flush, self._clock.now_ms())
                return True
            self._lone_flush_started = started
        self._flush_under_way = True
        self._flusher.put(flush)
        return False

    def _flush_reported(self, flush: Flush) -> None:
        self._flush_under_way = False
        self._answers_are_due = True
        if self._lone_flush_started is not None:
            self._lone_flush.took(time.perf_counter() - self._lone_flush_started, inline=False)
            self._lone_flush_started = None
        self._report(lambda: self._node.flushed(flush, self._clock.now_ms()))

    def _hand_out_jobs(self) -> None:
        for job in self._node.take_jobs():
            self._jobs_under_way += 1
            self._jobs.put(job)

    def _job_reported(self, job: Job) -> None:
        self._jobs_under_way -= 1
        self._report(lambda: self._node.job_done(job, self._clock.now_ms()))

    def _report(self, call: Callable[[], None]) -> None:
        if self.failure is not None:
            return
        try:
            call()
        except Exception as error:
            self._fail(error)
            return
        # Requests that were read in the same turn are handled before the pump, and join the flush that it starts.
        self.wake()
        self.turn.run()

    # -- time ------------------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        """Sees to it that the next pump comes in time for what the node waits for."""
        node = self._node
        self._wakeup_ms = wakeup_ms = node.next_wakeup_ms()
        goes_on = node.has_more() and not self._flush_under_way
        if wakeup_ms is None and not goes_on:
            return  # a timer that is set may fire for nothing: cheaper than cancelling one a request
        now_ms = self._clock.now_ms()
        # Work that goes on by itself gets a turn a millisecond: where it stands still, that burns no core.
        at_ms = now_ms + 1 if goes_on or wakeup_ms is None else max(wakeup_ms, now_ms + 1)
        if self._timer is not None:
            if self._timer_ms <= at_ms:
                return
            self._timer.cancel()
        self._timer_ms = at_ms
        self._timer = self._loop.call_later((at_ms - now_ms) / 1000, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self._pump()

    # -- the end ---------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Flushes what was handled, answers it, waits for jobs under way, and closes the node.

        The caller has stopped reading from connections before, and closes them after.
        """
        self._closing = True
        if self.failure is None:
            self._quiet = self._loop.create_future()
            self.wake()
            await self._quiet
        if self.failure is None:
            try:
                self._node.close(self._clock.now_ms())
                for connection, buffers in self._node.take_output():
                    self._write(connection, buffers)
            except Exception as error:
                self._fail(error)
        self._closed = True
        self._stop()

    def _fail(self, error: BaseException) -> None:
        """Nothing may touch the node any more: what it would answer might not be true."""
        if self.failure is not None:
            return
        self.failure = error
        log.critical("the server stops, because its state can no longer be trusted: %s", describe(error))
        if not isinstance(error, EXPECTED_FAILURES):
            log.error("this is a defect of Penstock; please report it with what follows", exc_info=error)
        self._stop()
        self._failed()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._quiet is not None and not self._quiet.done():
            self._quiet.set_result(None)
        self._flusher.stop()
        self._jobs.stop()
        self.ended.set()

    def join(self, timeout_seconds: float) -> bool:
        """Waits for the threads to end; False when one still hangs on the disk."""
        return self._flusher.join(timeout_seconds) and self._jobs.join(timeout_seconds)


def describe(error: BaseException) -> str:
    """The error as part of a sentence; a defect names its kind too."""
    return str(error) if isinstance(error, EXPECTED_FAILURES) else f"{type(error).__name__}: {error}"
