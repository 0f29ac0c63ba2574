"""The simulated machine: the real node over the real store, driven as `runtime.driver` drives it, on a bad day.

Frames are handled when they arrive; then one pump ticks, takes a flush, hands out jobs and writes. Flushes and
jobs take simulated time in a helper that does one at a time, and the machine may lose its power, or the
process its life, at any moment: also in the middle of a flush or a job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from penstock.backend.node import Environment, Node
from penstock.model.errors import PenstockError
from penstock.simulation.disk import PowerLoss, SimulatedDisk
from penstock.simulation.network import Link
from penstock.simulation.observed_store import AppendedRecord, ObservedStore
from penstock.simulation.schedule import Schedule
from penstock.simulation.trace import Trace
from penstock.storage.disk import DiskFailedError, DiskFullError
from penstock.storage.errors import StorageError, StorageFailedError
from penstock.storage.flush import Flush
from penstock.storage.identity import Identity
from penstock.storage.job import Job
from penstock.storage.opening import open_directory
from penstock.storage.options import StorageOptions
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.messages import Failed, encode_message

_PUMP_DELAY_MS = (0, 0, 0, 1, 2)
_READ_BYTES = 4096
"""What is read from a connection in one turn."""
_OPERATIONS_IN_A_FLUSH = 4
_OPERATIONS_IN_A_JOB = 9


@dataclass(slots=True)
class DiskPace:
    """How long the disk takes; changed by faults."""

    flush_ms: tuple[int, int] = (0, 2)
    job_ms: tuple[int, int] = (0, 8)
    stalled_until_ms: int = 0
    """Elapsed time before which nothing ends."""


class _Client:
    """The server's end of a connection."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.reader = FrameReader()
        self.held: list[bytes] = []


class Machine:
    """One computer with one data directory."""

    def __init__(
        self, schedule: Schedule, random: Random, trace: Trace, disk: SimulatedDisk, options: StorageOptions
    ) -> None:
        self._schedule = schedule
        self._random = random
        self._trace = trace
        self.disk = disk
        self.options = options
        self.pace = DiskPace()
        self.max_unflushed_bytes = 64 * 1024
        self.identity = Identity("simulated", random.randbytes(32))
        self.node: Node | None = None
        self.store: ObservedStore | None = None
        self.boots = 0
        self.observer: Callable[[AppendedRecord], None] = lambda record: None
        self.booted: list[Callable[[], None]] = []
        """Called after each start, before anything is served."""
        self.going_down: list[Callable[[], None]] = []
        """Called at each stop, while the state of the node can still be looked at."""
        self.defects: list[tuple[int, str]] = []
        """(when, what): errors out of the node that nothing the simulation did explains."""
        self.most_unflushed_bytes = 0
        self.loses_power_after_flush = False
        """The next flush reaches the disk, and nobody hears of it."""
        self._clients: dict[int, _Client] = {}
        self._reset()

    def _reset(self) -> None:
        self._flush: Flush | None = None
        self._flush_has_run = False
        self._job: Job | None = None
        self._job_has_run = False
        self._jobs: deque[Job] = deque()
        self._pump_is_due = False
        self._timer_ms: int | None = None
        self._congested = False
        self.loses_power_after_flush = False

    @property
    def is_up(self) -> bool:
        """Whether the node serves."""
        return self.node is not None

    # -- start and stop --------------------------------------------------------------------------------------

    def boot(self) -> bool:
        """Starts the process; False if it did not come up."""
        assert self.node is None
        self.boots += 1
        self._reset()
        try:
            store = ObservedStore(
                self.disk, self.options, open_directory(self.disk, self.options, self.identity)
            )
            store.observer = self.observer
            environment = Environment("simulated", "simulated", lambda: (0.0, 0))
            node = Node(store, environment, self._schedule.now_ms, self.max_unflushed_bytes)
        except PowerLoss:
            self._trace.add("machine", "lost power while it started")
            self._leave_disk(power=True)
            return False
        except (DiskFullError, DiskFailedError) as error:
            self._trace.add("machine", f"did not start: {error}")
            self._leave_disk(power=False)
            return False
        except StorageError as error:
            self._trace.add("machine", f"refused to start: {error}")
            self._leave_disk(power=False)
            raise
        except Exception as error:
            self._trace.add("machine", f"failed to start: {type(error).__name__}: {error}")
            self.defects.append((self._schedule.now_ms, f"at the start: {type(error).__name__}: {error}"))
            self._leave_disk(power=False)
            return False
        self.disk.power_off_after = None
        self.store, self.node = store, node
        report = node.opening_report
        self._trace.add(
            "machine",
            f"started: {report.messages} messages, {report.replayed} records replayed, torn {report.torn}, "
            f"damages {report.damages}",
        )
        for call in self.booted:
            call()
        self._wake()
        return True

    def crash(self, *, power: bool) -> None:
        """The power goes, or only the process dies; helper threads may have been in the middle of something."""
        if self.node is None:
            return
        self._trace.add("machine", "lost power" if power else "was killed")
        for call in self.going_down:
            call()
        under_way: list[tuple[Job, int]] = []
        if self._flush is not None and not self._flush_has_run:
            under_way.append((self._flush, _OPERATIONS_IN_A_FLUSH))
        if self._job is not None and not self._job_has_run:
            under_way.append((self._job, _OPERATIONS_IN_A_JOB))
        self._random.shuffle(under_way)
        for work, operations in under_way:
            if self._random.random() < 0.7:
                self.disk.power_off_after = self.disk.operations + self._random.randint(0, operations)
                try:
                    work.run()
                except PowerLoss:
                    pass
        self._end(power=power)

    def stop(self) -> None:
        """A clean stop: what is under way ends, the node says its last words."""
        node = self.node
        if node is None:
            return
        self._trace.add("machine", "stops")
        for call in self.going_down:
            call()
        try:
            for _ in range(1_000):
                self._finish_work()
                self._pump()
                if self.node is None or (self._flush is None and self._job is None):
                    break
            if self.node is not None:
                node.close(self._schedule.now_ms)
        except Exception as error:
            self._failed(error)
        if self.node is not None:
            self._end(power=False)

    def _finish_work(self) -> None:
        if self._flush is not None:
            flush = self._flush
            self._run_flush(flush)
            self._flush_ended(flush)
        if self.node is not None and self._job is not None:
            job = self._job
            self._run_job(job)
            self._job_ended(job)

    def _end(self, *, power: bool) -> None:
        self.node = self.store = None
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.link.server_stopped()
        self._leave_disk(power=power)

    def _leave_disk(self, *, power: bool) -> None:
        self.disk = self.disk.crash() if power else self.disk.reopen()

    def _failed(self, error: Exception) -> None:
        """As in the real driver: an error out of the node ends the process."""
        self._trace.add("machine", f"the node failed: {type(error).__name__}: {error}")
        if not isinstance(error, StorageFailedError):
            self.defects.append((self._schedule.now_ms, f"{type(error).__name__}: {error}"))
        for call in self.going_down:
            call()
        self._end(power=False)

    # -- connections -----------------------------------------------------------------------------------------

    def accepts(self) -> bool:
        """Whether somebody listens."""
        return self.node is not None

    def opened(self, link: Link) -> None:
        """A client has connected."""
        assert self.node is not None
        self._clients[link.number] = _Client(link)
        self.node.connected(link.number)

    def lost(self, link: Link) -> None:
        """A client is gone."""
        if self._clients.pop(link.number, None) is not None and self.node is not None:
            try:
                self.node.disconnected(link.number, self._schedule.now_ms)
            except Exception as error:
                self._failed(error)
                return
            self._wake()

    def arrived(self, link: Link, data: bytes) -> None:
        """Bytes of a client; held back while the node is congested."""
        client = self._clients.get(link.number)
        if client is None:
            return
        if self._congested or client.held:
            client.held.append(data)
            return
        self._take(client, data)

    def _take(self, client: _Client, data: bytes) -> None:
        try:
            frames = client.reader.feed(data)
        except PenstockError as error:
            answer = encode_frame(0, encode_message(Failed(error.code, error.message)))
            client.link.to_client(b"".join(answer))
            client.link.break_off()
            return
        for frame in frames:
            if self.node is None:
                return
            try:
                self.node.handle(client.link.number, frame, self._schedule.now_ms)
            except Exception as error:
                self._failed(error)
                return
        if frames:
            self._wake()

    # -- the pump --------------------------------------------------------------------------------------------

    def _later(self, delay_ms: int, call: Callable[[], None]) -> None:
        """Plans something that this process would do, if it still lives."""
        boot = self.boots
        self._schedule.after(
            delay_ms, lambda: call() if boot == self.boots and self.node is not None else None
        )

    def _wake(self) -> None:
        if not self._pump_is_due:
            self._pump_is_due = True
            self._later(self._random.choice(_PUMP_DELAY_MS), self._pump)

    def _pump(self) -> None:
        self._pump_is_due = False
        node = self.node
        if node is None:
            return
        try:
            wakeup_ms = node.next_wakeup_ms()
            if wakeup_ms is not None and wakeup_ms <= self._schedule.now_ms:
                node.tick(self._schedule.now_ms)
            if self._flush is None:
                self._start_flush(node)
            for job in node.take_jobs():
                self._jobs.append(job)
            self._start_job()
            for connection, buffers in node.take_output():
                client = self._clients.get(connection)
                if client is not None:
                    client.link.to_client(b"".join(buffers))
            self._follow_congestion(node)
            self._set_timer(node)
        except Exception as error:
            self._failed(error)

    def _follow_congestion(self, node: Node) -> None:
        assert self.store is not None
        self.most_unflushed_bytes = max(self.most_unflushed_bytes, self.store.unflushed_bytes)
        self._congested = node.congested()
        if self._congested:
            return
        for client in list(self._clients.values()):
            taken = 0
            while client.held and taken < _READ_BYTES and client.link.number in self._clients:
                data = client.held.pop(0)
                taken += len(data)
                self._take(client, data)
            if client.held:
                self._wake()

    def _set_timer(self, node: Node) -> None:
        wakeup_ms = node.next_wakeup_ms()
        now_ms = self._schedule.now_ms
        if node.has_more() and self._flush is None:
            wakeup_ms = now_ms if wakeup_ms is None else min(wakeup_ms, now_ms)
        if wakeup_ms is None or (self._timer_ms is not None and self._timer_ms <= wakeup_ms):
            return
        self._timer_ms = due_ms = wakeup_ms
        self._later(max(wakeup_ms - now_ms, 1), lambda: self._timer_fired(due_ms))

    def _timer_fired(self, due_ms: int) -> None:
        if self._timer_ms == due_ms:
            self._timer_ms = None
            self._pump()

    # -- the helpers -----------------------------------------------------------------------------------------

    def _start_flush(self, node: Node) -> None:
        flush = node.take_flush()
        if flush is None:
            return
        self._flush, self._flush_has_run = flush, False
        run_ms, end_ms = self._moments(self.pace.flush_ms)
        self._later(run_ms, lambda: self._run_flush(flush))
        self._later(end_ms, lambda: self._flush_ended(flush))

    def _run_flush(self, flush: Flush) -> None:
        if flush is self._flush and not self._flush_has_run:
            flush.run()
            self._flush_has_run = True
            if self.loses_power_after_flush:
                self.crash(power=True)

    def _flush_ended(self, flush: Flush) -> None:
        if flush is self._flush:
            self._flush = None
            self._report(lambda node: node.flushed(flush, self._schedule.now_ms))

    def _start_job(self) -> None:
        if self._job is None and self._jobs:
            self._job = job = self._jobs.popleft()
            self._job_has_run = False
            run_ms, end_ms = self._moments(self.pace.job_ms)
            self._later(run_ms, lambda: self._run_job(job))
            self._later(end_ms, lambda: self._job_ended(job))

    def _run_job(self, job: Job) -> None:
        if job is self._job and not self._job_has_run:
            job.run()
            self._job_has_run = True

    def _job_ended(self, job: Job) -> None:
        if job is self._job:
            self._job = None
            if job.error is not None:
                self._trace.add("machine", f"{type(job).__name__} failed: {job.error}")
            self._report(lambda node: node.job_done(job, self._schedule.now_ms))

    def _report(self, call: Callable[[Node], None]) -> None:
        if self.node is None:
            return
        try:
            call(self.node)
        except Exception as error:
            self._failed(error)
            return
        self._pump()

    def _moments(self, pace_ms: tuple[int, int]) -> tuple[int, int]:
        """When work takes effect on the disk and when it is reported, from now."""
        end_ms = self._random.randint(*pace_ms)
        end_ms = max(end_ms, self.pace.stalled_until_ms - self._schedule.elapsed_ms)
        return self._random.randint(0, end_ms), end_ms
