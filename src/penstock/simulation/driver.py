"""Drives the node of a simulated machine, the counterpart of `runtime.engine.driver`: threads, timers and output over
simulated time.

The product (`backend.node.node_turns`) decides the work of a turn. One driver is one life of the process. Flushes and jobs
take simulated time, each in a helper that does one thing at a time; they take effect on the disk at one moment and are
reported at a later one. Now and then the flush of a lone request runs inline, as in production.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal, Protocol

from penstock.backend.node.node import Node
from penstock.backend.node.node_turns import NodeTurns
from penstock.model.batch import Buffer
from penstock.simulation.observed_store import ObservedStore
from penstock.simulation.schedule import Times
from penstock.simulation.trace import Trace
from penstock.simulation.turn_pause import ProcessGone, Site
from penstock.storage.flush import Flush
from penstock.storage.job import Job
from penstock.storage.reader import ReadJob

_PUMP_DELAY_MS = (0, 0, 0, 1, 2)
_INLINE_SHARE = 0.2
"""So many flushes of lone requests run at once, and not in the helper."""

Trap = Literal["in a flush", "after a flush", "in a job"]


@dataclass(slots=True)
class DiskPace:
    """How long the disk takes; changed by faults."""

    flush_ms: tuple[int, int] = (0, 2)
    job_ms: tuple[int, int] = (0, 8)
    stalled_until_ms: int = 0
    """Elapsed time before which nothing ends."""


class Host(Protocol):
    """The machine, as its driver sees it."""

    pace: DiskPace
    trap: Trap | None

    def write(self, connection: int, data: bytes) -> None: ...
    def congestion_changed(self, congested: bool) -> None: ...
    def read_on(self) -> bool:
        """Takes what was held back; True if there is more of it."""

    def failed(self, error: Exception) -> None: ...
    def crash(self, *, power: bool) -> None: ...
    def do(self, call: Callable[[], None]) -> None:
        """Does something, when the machine is not paused."""

    def at(self, site: Site) -> None:
        """The process is at a point where it may pause."""


class _PausingNode:
    """The node of a turn, on a machine that may pause between two steps of it."""

    def __init__(self, node: Node, at: Callable[[Site], None]) -> None:
        self._node = node
        self._at = at
        self.take_flush = node.take_flush
        self.take_jobs = node.take_jobs
        self.job_done = node.job_done
        self.congested = node.congested
        self.next_wakeup_ms = node.next_wakeup_ms
        self.has_more = node.has_more
        self.take_handed = node.take_handed

    def tick(self, now_ms: int) -> None:
        self._at("turn")
        self._node.tick(now_ms)

    def flushed(self, flush: Flush, now_ms: int) -> None:
        self._at("flushed")
        self._node.flushed(flush, now_ms)

    def take_output(self) -> list[tuple[int, list[Buffer]]]:
        self._at("output")
        return self._node.take_output()


class SimulatedDriver:
    """Runs one node until the machine stops it."""

    def __init__(
        self, host: Host, node: Node, store: ObservedStore, schedule: Times, random: Random, trace: Trace
    ) -> None:
        self._host = host
        self.node = node
        self.store = store
        self._schedule = schedule
        self._random = random
        self._trace = trace
        self.ended = False
        self.turns = NodeTurns(_PausingNode(node, host.at), self)
        self.most_unflushed_bytes = 0
        """Without the input of the one turn in which the limit was exceeded."""
        self.taken_bytes = 0
        """The bytes that the node has accepted from clients since its last turn."""
        self._burst_bytes = 0
        self._was_congested = False
        self._flush: Flush | None = None
        self._flush_has_run = False
        self._job: Job | None = None
        self._job_has_run = False
        self._jobs: deque[Job] = deque()
        self._pump_is_due = False
        self._timer_number = 0
        """Of the timer that counts: it takes the place of those before."""

    def call(self, call: Callable[[Node], None]) -> None:
        """Lets the node do something; an error out of it ends the process, as in the real driver."""
        if self.ended:
            return
        try:
            call(self.node)
        except ProcessGone:
            return
        except Exception as error:
            self._host.failed(error)

    def came(self, requests: int) -> None:
        """So many requests came since the last turn."""
        self.turns.requests += requests

    def wake(self) -> None:
        """Pumps once, after everything that arrived in this turn."""
        if not self._pump_is_due:
            self._pump_is_due = True
            self.later(self._random.choice(_PUMP_DELAY_MS), self._pump)

    @property
    def congested(self) -> bool:
        """Whether clients are not to be read from."""
        return self.turns.congested

    @property
    def is_flushing(self) -> bool:
        """Whether a flush is under way."""
        return self._flush is not None

    def half_done(self) -> list[Job]:
        """The work that the helpers have begun."""
        flush = [self._flush] if self._flush is not None and not self._flush_has_run else []
        job = [self._job] if self._job is not None and not self._job_has_run else []
        return [*flush, *job]

    def finish(self) -> None:
        """Completes all running work at once, for a clean stop."""
        self.turns.is_closing = True
        for _ in range(1_000_000):
            if self._flush is not None:
                flush = self._flush
                self._run_flush(flush)
                self._flush_ended(flush)
            if self._job is not None and not self.ended:
                job = self._job
                self._run_job(job)
                self._job_ended(job)
            if not self.ended:
                self._pump()
            if self.ended or (self._flush is None and self._job is None):
                return

    # -- the pump --------------------------------------------------------------------------------------------

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        """Plans something that this process will do, if it still lives."""
        self._schedule.after(delay_ms, partial(self._host.do, partial(self._unless_ended, call)))

    def _unless_ended(self, call: Callable[[], None]) -> None:
        if not self.ended:
            call()

    def _pump(self) -> None:
        self._pump_is_due = False
        self.call(self._turn)

    def _turn(self, node: Node) -> None:
        self.turns.run()
        if self.ended:  # by what was read on in the middle of it
            return
        self._note_unflushed(node)
        self._turned(node)
        if not self.congested and self._host.read_on():
            self.wake()

    def _turned(self, node: Node) -> None:
        """A turn of the node is over."""

    def _note_unflushed(self, node: Node) -> None:
        # Moves have their own limit, and happen only when a flush includes them at once.
        store, taken, self.taken_bytes = self.store, self.taken_bytes, 0
        unflushed_bytes = store.unflushed_bytes - store.moved_bytes - store.foreign_bytes
        # Input that arrived together, after a cut or a pause, was accepted before anything could stop it.
        if not (self._was_congested and self.congested):
            self._burst_bytes = min(taken, max(0, unflushed_bytes - node._parts.max_unflushed_bytes))
        self.most_unflushed_bytes = max(self.most_unflushed_bytes, unflushed_bytes - self._burst_bytes)
        self._was_congested = self.congested

    # -- the hands of the turns ------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """See `Hands`."""
        return self._schedule.now_ms

    def write(self, connection: int, buffers: list[Buffer], /) -> None:
        """See `Hands`."""
        self._host.write(connection, b"".join(buffers))

    def ship(self) -> None:
        """See `Hands`; for nodes that are not alone."""

    def congestion_changed(self, congested: bool, /) -> None:
        """See `Hands`."""
        self._host.congestion_changed(congested)

    def set_timer(self, delay_ms: int) -> None:
        """See `Hands`."""
        self._timer_number = number = self._timer_number + 1
        self.later(delay_ms, lambda: self._timer_fired(number))

    def _timer_fired(self, number: int) -> None:
        if self._timer_number == number:
            self.turns.timer_is_over()
            self._pump()

    def run_flush(self, flush: Flush, *, alone: bool) -> bool:
        """See `Hands`."""
        if alone and self._host.trap is None and self._random.random() < _INLINE_SHARE:
            flush.run()
            return True
        self._flush, self._flush_has_run = flush, False
        if self._host.trap == "in a flush":
            self.later(0, lambda: self._host.crash(power=True))
            return False
        run_ms, end_ms = self._moments(self._host.pace.flush_ms)
        self.later(run_ms, lambda: self._run_flush(flush))
        self.later(end_ms, lambda: self._flush_ended(flush))
        return False

    def run_job(self, job: Job) -> None:
        """See `Hands`."""
        self._jobs.append(job)
        self._start_job()

    # -- the helpers -----------------------------------------------------------------------------------------

    def _run_flush(self, flush: Flush) -> None:
        if flush is self._flush and not self._flush_has_run:
            flush.run()
            self._flush_has_run = True
            if self._host.trap == "after a flush":
                self._host.crash(power=True)

    def _flush_ended(self, flush: Flush) -> None:
        if flush is self._flush and not self.ended:
            self._flush = None
            self._report(lambda _: self.turns.flush_ended(flush))

    def _start_job(self) -> None:
        if self._job is None and self._jobs:
            self._job = job = self._jobs.popleft()
            self._job_has_run = False
            if self._host.trap == "in a job" and not isinstance(job, ReadJob):
                self.later(0, lambda: self._host.crash(power=True))
                return
            run_ms, end_ms = self._moments(self._host.pace.job_ms)
            self.later(run_ms, lambda: self._run_job(job))
            self.later(end_ms, lambda: self._job_ended(job))

    def _run_job(self, job: Job) -> None:
        if job is self._job and not self._job_has_run:
            job.run()
            self._job_has_run = True

    def _job_ended(self, job: Job) -> None:
        if job is self._job and not self.ended:
            self._job = None
            self._start_job()
            if job.error is not None:
                self._trace.add("machine", f"{type(job).__name__} failed: {job.error}")
            self._report(lambda _: self.turns.job_ended(job))

    def _report(self, call: Callable[[Node], None]) -> None:
        self.call(call)
        self._pump()

    def _moments(self, pace_ms: tuple[int, int]) -> tuple[int, int]:
        """When work takes effect on the disk and when it is reported, from now."""
        end_ms = self._random.randint(*pace_ms)
        end_ms = max(end_ms, self._host.pace.stalled_until_ms - self._schedule.elapsed_ms)
        return self._random.randint(0, end_ms), end_ms
