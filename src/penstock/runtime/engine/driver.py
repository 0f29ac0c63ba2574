"""Drives a node: hands it all input, runs its flushes and jobs in their threads, writes its answers.

The node is synchronous and owned by the event loop's thread. `backend/node/node_turns.py` decides the work of its turns.
The driver ensures that everything that arrived in one turn of the event loop has one turn of the node. After an exception
of the node its state can no longer be trusted: the driver logs one sentence, stops using it and reports `failure`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable

from penstock.backend.node.node import Node
from penstock.backend.node.node_turns import NodeTurns
from penstock.backend.node.outbox import HandOver
from penstock.model.batch import Buffer
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.engine.turn import Turn
from penstock.runtime.engine.worker import Worker
from penstock.storage.disk import DiskFailedError, DiskFullError
from penstock.storage.errors import StorageError
from penstock.storage.flush import Flush
from penstock.storage.job import Job
from penstock.wire.frames import Frame

logger = logging.getLogger(__name__)

EXPECTED_FAILURES = (StorageError, DiskFailedError, DiskFullError)
"""Failures of a disk; any other exception is a defect."""
INLINE_SECONDS = 0.002
"""A slower disk never holds up the loop; the cost of a hand-off does not matter there."""
TRY_OTHER_EVERY = 64
"""Every so many lone flushes the other place is tried, to see whether things have changed."""
SAMPLES = 15
"""Medians are taken of so many, and the two places take turns until each has them."""


class LoneFlush:
    """Decides where the flush of a lone request runs: on the event loop's own thread, or in the flush thread.

    With one request in a turn of the loop there is nothing to overlap its flush with, and waking another thread and being
    woken by it costs some 56 µs where a sync takes 200 to 300. On a machine whose cores were all busy it was the opposite,
    presumably because a thread that sleeps most of the time gets a core at once and the loop's own thread waits for its
    turn. So the median of both is kept, and the faster one is used. See `docs/adr/0007-a-lone-request-flushes-inline.md`.
    """

    def __init__(self) -> None:
        self._inline = _Median()
        self._thread = _Median()
        self._count = 0

    def runs_inline(self) -> bool:
        """Whether the next lone flush runs on the loop's thread."""
        self._count += 1
        if self._count <= 2 * SAMPLES:
            return self._count % 2 == 0
        inline = self._inline.seconds <= self._thread.seconds and self._inline.seconds < INLINE_SECONDS
        return inline is not (self._count % TRY_OTHER_EVERY == 0)

    def took(self, seconds: float, *, inline: bool) -> None:
        """A lone flush took so long, from being handed out to being reported."""
        (self._inline if inline else self._thread).add(seconds)


class _Median:
    """The median of the last samples, which a rare stall does not change."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=SAMPLES)
        self.seconds = 0.0

    def add(self, sample: float) -> None:
        self._samples.append(sample)
        self.seconds = sorted(self._samples)[len(self._samples) // 2]


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
        """Collects the work of a turn for all users of the node."""
        self.write = write
        self.congestion_changed = congestion_changed
        self._failed = failed
        self.turns = NodeTurns(node, self)
        self.now_ms = clock.now_ms
        self.failure: BaseException | None = None
        self.ended = asyncio.Event()
        """Set when the node failed or was closed."""
        self._flusher: Worker[Flush] = Worker("penstock-flush", loop, self._flush_reported)
        self._jobs: Worker[Job] = Worker("penstock-jobs", loop, self._job_reported)
        self._pump_is_due = False
        self._lone_flush = LoneFlush()
        self._lone_flush_started: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._closed = False
        self._quiet: asyncio.Future[None] | None = None
        self.wake()  # work that became due while the server was down is done now

    @property
    def congested(self) -> bool:
        """Whether clients are not to be read from."""
        return self.turns.congested

    @property
    def flush_thread_id(self) -> int:
        """The kernel's id of the flush thread."""
        return self._flusher.thread_id

    # -- what arrives ----------------------------------------------------------------------------------------

    def connected(self, connection: int, hand_over: HandOver | None = None) -> None:
        """A client has connected; `hand_over`: how one in this process takes its answers."""
        self._call(lambda: self._node.connected(connection, hand_over))

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
        """Handles complete frames, each of which counts as so many requests."""
        if self.failure is not None or self._closing:
            return
        node_handle, now_ms = self._node.handle, self._clock.now_ms()
        try:
            for frame in frames:
                node_handle(connection, frame, now_ms)
                self.turns.requests += stands_for
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
        try:
            self.turns.run()
        except Exception as error:
            self._fail(error)
            return
        quiet = self._quiet
        if quiet is not None and self.turns.is_quiet and not quiet.done():
            quiet.set_result(None)

    def ship(self) -> None:
        """See `Hands`; for nodes that are not alone."""

    def run_flush(self, flush: Flush, *, alone: bool) -> bool:
        """See `Hands`: in the flush thread, or here where that is quicker for a lone request."""
        if alone:
            started = time.perf_counter()
            if self._lone_flush.runs_inline():
                flush.run()
                self._lone_flush.took(time.perf_counter() - started, inline=True)
                return True
            self._lone_flush_started = started
        self._flusher.put(flush)
        return False

    def run_job(self, job: Job) -> None:
        """See `Hands`."""
        self._jobs.put(job)

    def _flush_reported(self, flush: Flush) -> None:
        if self._lone_flush_started is not None:
            self._lone_flush.took(time.perf_counter() - self._lone_flush_started, inline=False)
            self._lone_flush_started = None
        self._report(lambda: self.turns.flush_ended(flush))

    def _job_reported(self, job: Job) -> None:
        self._report(lambda: self.turns.job_ended(job))

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

    def set_timer(self, delay_ms: int) -> None:
        """See `Hands`."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_ms / 1000, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self.turns.timer_is_over()
        self._pump()

    # -- the end ---------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Flushes what was handled, answers it, waits for jobs under way, and closes the node.

        The caller has stopped reading from connections before, and closes them after.
        """
        self._closing = self.turns.is_closing = True
        if self.failure is None:
            self._quiet = self._loop.create_future()
            self.wake()
            await self._quiet
        if self.failure is None:
            try:
                self._node.close(self._clock.now_ms())
                self.turns.write_answers()
            except Exception as error:
                self._fail(error)
        self._closed = True
        self._stop()

    def _fail(self, error: BaseException) -> None:
        """Nothing may use the node any more: its answers might be wrong."""
        if self.failure is not None:
            return
        self.failure = error
        logger.critical(
            "the server stops, because its state can no longer be trusted: %(error)s",
            {"error": describe(error)},
        )
        if not isinstance(error, EXPECTED_FAILURES):
            logger.error("this is a defect of Penstock; please report it with what follows", exc_info=error)
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
