"""The turns of a node: the order of work in a turn, the contents of one flush, and the time of the next turn.

All requests that arrived together are handled first. Then one turn ticks the node, starts a flush, writes answers and
hands out jobs: this gives group commit. The driver of a process (`runtime/engine/driver.py`) and that of a simulated
machine only carry this out: they have the clock, the threads, the sockets and the timer.
"""

from __future__ import annotations

from typing import Protocol

from penstock.backend.node.outbox import HandedAnswer, HandOver
from penstock.model.batch import Buffer
from penstock.storage.flush import Flush
from penstock.storage.job import Job


class TurningNode(Protocol):
    """What a turn needs of a node."""

    def tick(self, now_ms: int) -> None:
        """Does what is due."""
        ...

    def take_flush(self) -> Flush | None:
        """The records appended since the last flush, if any."""
        ...

    def flushed(self, flush: Flush, now_ms: int) -> None:
        """A flush has ended."""
        ...

    def take_jobs(self) -> list[Job]:
        """Work for another thread."""
        ...

    def job_done(self, job: Job, now_ms: int) -> None:
        """A job has ended."""
        ...

    def take_output(self) -> list[tuple[int, list[Buffer]]]:
        """Answers that may leave, by connection."""
        ...

    def take_handed(self) -> list[tuple[HandOver, list[HandedAnswer]]]:
        """Answers to clients in this process that may leave."""
        ...

    def congested(self) -> bool:
        """Whether nothing should be read from clients for the moment."""
        ...

    def next_wakeup_ms(self) -> int | None:
        """When something is due; None: never."""
        ...

    def has_more(self) -> bool:
        """Whether there is work that continues by itself."""
        ...


class Hands(Protocol):
    """What turns are carried out with."""

    def now_ms(self) -> int:
        """The time."""
        ...

    def run_flush(self, flush: Flush, *, alone: bool) -> bool:
        """Has a flush run, in another thread or at once; True: it has ended already. `alone`: it is of one request."""
        ...

    def run_job(self, job: Job) -> None:
        """Has a job run in another thread."""
        ...

    def write(self, connection: int, buffers: list[Buffer], /) -> None:
        """Sends answers."""
        ...

    def ship(self) -> None:
        """Sends what a node that is not alone has for others."""
        ...

    def congestion_changed(self, congested: bool, /) -> None:
        """Whether clients may be read from."""
        ...

    def set_timer(self, delay_ms: int) -> None:
        """After so long says `timer_is_over` and takes a turn; in place of the timer that was set before."""
        ...


class NodeTurns:
    """Takes one turn after the other, each with `run`. Errors of the node are passed to the caller."""

    def __init__(self, node: TurningNode, hands: Hands) -> None:
        self._node = node
        self._hands = hands
        self.requests = 0
        """The number of requests since the last turn; the driver counts them here."""
        self.congested = False
        self.is_closing = False
        """Whether jobs are not begun any more."""
        self.is_flushing = False
        """Whether a flush is under way."""
        self._jobs_under_way = 0
        self._answers_are_due = False
        """A flush has ended, and the answers that it releases have not been written yet."""
        self._wakeup_ms: int | None = 0
        """When the node wants to be ticked, as of the last turn."""
        self._timer_ms: int | None = None
        """When the timer fires, if it is set."""

    @property
    def is_quiet(self) -> bool:
        """Whether nothing runs in other threads."""
        return not (self.is_flushing or self._jobs_under_way)

    def run(self) -> None:
        """Takes a turn."""
        node, hands = self._node, self._hands
        if self._wakeup_ms is not None and self._wakeup_ms <= (now_ms := hands.now_ms()):
            self._wakeup_ms = None
            node.tick(now_ms)
        has_flushed = self._start_flush()
        # Answers first: clients that wait for one do not wait for upkeep.
        self.write_answers()
        self._answers_are_due = False
        if has_flushed:
            self._start_flush()  # as a result of the first
        hands.ship()
        if not self.is_closing:
            for job in node.take_jobs():
                self._jobs_under_way += 1
                hands.run_job(job)
        if (congested := node.congested()) is not self.congested:
            self.congested = congested
            hands.congestion_changed(congested)
        self._set_timer()

    def write_answers(self) -> None:
        """Sends and hands over what may leave."""
        for connection, buffers in self._node.take_output():
            self._hands.write(connection, buffers)
        for hand_over, answers in self._node.take_handed():
            hand_over(answers)

    def flush_ended(self, flush: Flush) -> None:
        """A flush that had not ended when it was handed out has ended; the next turn follows soon."""
        self.is_flushing = False
        self._answers_are_due = True
        self._node.flushed(flush, self._hands.now_ms())

    def job_ended(self, job: Job) -> None:
        """A job has ended; the next turn follows soon."""
        self._jobs_under_way -= 1
        self._node.job_done(job, self._hands.now_ms())

    def timer_is_over(self) -> None:
        """The timer has fired; a turn follows at once."""
        self._timer_ms = None

    def _start_flush(self) -> bool:
        """Hands out the next flush, unless one is under way or there is nothing; True if it has ended already."""
        if self.is_flushing:
            return False  # records appended since join the next one
        # If answers must be written, the flush must not run inline: they would wait for the sync of later records.
        alone = self.requests == 1 and not self._answers_are_due
        self.requests = 0
        flush = self._node.take_flush()
        # Others get what was appended while the disk is at it.
        self._hands.ship()
        if flush is None:
            return False
        if self._hands.run_flush(flush, alone=alone):
            self._node.flushed(flush, self._hands.now_ms())
            return True
        self.is_flushing = True
        return False

    def _set_timer(self) -> None:
        """Sees to it that the next turn comes in time for what the node waits for."""
        node = self._node
        self._wakeup_ms = wakeup_ms = node.next_wakeup_ms()
        goes_on = node.has_more() and not self.is_flushing
        if wakeup_ms is None and not goes_on:
            return  # a timer that is set may fire for nothing: cheaper than cancelling one a request
        now_ms = self._hands.now_ms()
        # Work that continues by itself gets a turn a millisecond: if it cannot continue, this uses no whole core.
        at_ms = now_ms + 1 if goes_on or wakeup_ms is None else max(wakeup_ms, now_ms + 1)
        if self._timer_ms is None or at_ms < self._timer_ms:
            self._timer_ms = at_ms
            self._hands.set_timer(at_ms - now_ms)
