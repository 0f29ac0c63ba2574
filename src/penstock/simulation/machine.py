"""The simulated machine: the real node over the real store on a simulated disk, and the connections to it.

It may lose its power, or the process may be killed, at any moment: also in the middle of a flush or a job, and while it
starts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from traceback import extract_tb

from penstock.backend.node.node import Environment, Node
from penstock.ordering.clock_interval import ClockInterval
from penstock.simulation.client_port import ClientPort
from penstock.simulation.clocks import NodeClock
from penstock.simulation.disk import PowerLoss, SimulatedDisk
from penstock.simulation.driver import DiskPace, SimulatedDriver, Trap
from penstock.simulation.network import Link
from penstock.simulation.observed_store import AppendedRecord, ObservedStore
from penstock.simulation.refusals import Refusals
from penstock.simulation.schedule import Times
from penstock.simulation.trace import Trace
from penstock.simulation.turn_pause import ProcessGone, Site, TurnPause
from penstock.storage.disk import DiskFailedError, DiskFullError
from penstock.storage.errors import StorageError, StorageFailedError
from penstock.storage.flush import Flush
from penstock.storage.identity import Identity
from penstock.storage.opening import open_directory
from penstock.storage.options import StorageOptions
from penstock.wire.frames import Frame

_OPERATIONS_IN_A_FLUSH = 4
_OPERATIONS_IN_A_JOB = 9


class Machine:
    """One computer with one data directory."""

    def __init__(
        self,
        schedule: Times,
        random: Random,
        trace: Trace,
        disk: SimulatedDisk,
        options: StorageOptions,
        clock: NodeClock,
    ) -> None:
        self._schedule = schedule
        self._random = random
        self._trace = trace
        self.disk = disk
        self.options = options
        self.clock = clock
        self.pace = DiskPace()
        self.trap: Trap | None = None
        """When to lose the power next."""
        self.turn_pause: TurnPause | None = None
        """Where to pause in the middle of a turn."""
        self.stood_still: Callable[[TurnPause], None] = lambda pause: None
        """Called when it is about to pause."""
        self._in_turn = False
        self._paused = False
        self._held: deque[Callable[[], None]] = deque()
        self.refusals = Refusals()
        """Which appends find no room in the journal."""
        self.max_unflushed_bytes = 64 * 1024
        self._most_unflushed_bytes = 0
        self.name = "machine"
        self.identity = Identity("simulated", random.randbytes(32))
        self.starts = 0
        self.on_append: Callable[[AppendedRecord], None] = lambda record: None
        self.opening: list[Callable[[SimulatedDisk], None]] = []
        """Called before each start, with what the process will find."""
        self.booted: list[Callable[[Node], None]] = []
        """Called after each start, before anything is served."""
        self.going_down: list[Callable[[ObservedStore], None]] = []
        """Called at each stop, while the state can still be read."""
        self.defects: list[tuple[int, str]] = []
        """(when, what): errors out of the node that nothing the simulation did explains."""
        self._driver: SimulatedDriver | None = None
        self._port: ClientPort | None = None
        """The port for clients, while there is a process."""

    @property
    def is_up(self) -> bool:
        """Whether the node serves."""
        return self._driver is not None

    @property
    def is_flushing(self) -> bool:
        """Whether something is on its way to the disk."""
        return self._driver is not None and self._driver.is_flushing

    @property
    def node(self) -> Node | None:
        """The node, while it serves."""
        return self._driver.node if self._driver is not None else None

    @property
    def store(self) -> ObservedStore | None:
        """Its store, while it serves."""
        return self._driver.store if self._driver is not None else None

    @property
    def most_unflushed_bytes(self) -> int:
        """The most that ever waited for the disk."""
        present = self._driver.most_unflushed_bytes if self._driver is not None else 0
        return max(self._most_unflushed_bytes, present)

    # -- start and stop --------------------------------------------------------------------------------------

    def boot(self) -> bool:
        """Starts the process; False if it did not come up. Raises what it refuses to start for."""
        assert self._driver is None
        self.starts += 1
        for look in self.opening:
            look(self.disk)
        try:
            opened = open_directory(self.disk, self.options, self.identity)
            store = ObservedStore(self.disk, self.options, opened)
            store.on_append = self.on_append
            store.before_append, store.reserve_begun = self._before_append, self.refusals.reserve_begun
            self.clock.started()
            environment = Environment("simulated", "simulated", lambda: (0.0, 0), self._read_clock)
            node = self._make_node(store, environment)
        except PowerLoss:
            self._not_started("lost power while it started", power=True)
            return False
        except (DiskFullError, DiskFailedError) as error:
            self._not_started(f"did not start: {error}")
            return False
        except StorageError as error:
            self._not_started(f"refused to start: {error}")
            raise
        except Exception as error:
            self._not_started(f"failed to start: {type(error).__name__}: {error}")
            self.defects.append(
                (self._schedule.now_ms, f"at the start: {type(error).__name__}: {error}{_place(error)}")
            )
            return False
        self.disk.power_off_after = None
        self._driver = driver = self._make_driver(node, store)
        self._port = ClientPort(driver, self._schedule, self._handle)
        report = node.opening_report
        self._trace.add(
            self.name,
            f"started: {report.messages} messages, {report.replayed} records replayed, torn {report.torn}, "
            f"damages {report.damages}",
        )
        for call in self.booted:
            call(node)
        self._driver.wake()
        return True

    # -- pauses ----------------------------------------------------------------------------------------------

    def do(self, call: Callable[[], None]) -> None:
        """Does something now, or in its turn when the machine continues."""
        if self._paused or self._in_turn or self._held:
            self._held.append(call)
        else:
            call()

    def pause(self) -> None:
        """Nothing happens here from now on; the rest of the world does not wait."""
        self._paused = self.is_up

    def resume(self) -> None:
        """It continues, with all input that arrived meanwhile."""
        self._paused = False
        while self._held and not (self._in_turn or self._paused):
            self._held.popleft()()

    def at(self, site: Site) -> None:
        """The process is at a point where it may pause in the middle of its turn."""
        pause = self.turn_pause
        if pause is None or pause.site != site or self._schedule.is_within or not pause.when():
            return
        if pause.first > 1:
            self.turn_pause = pause._replace(first=pause.first - 1)
            return
        self.turn_pause = None
        driver = self._driver
        if driver is None:
            return
        self._trace.add(
            self.name, f"stands still for {pause.duration_ms} ms in the middle of a turn ({site})"
        )
        self.stood_still(pause)
        self._stands_still()
        self._in_turn = True
        self._schedule.pass_within(pause.duration_ms)
        self._in_turn = False
        if self._driver is not driver:
            raise ProcessGone
        self._schedule.after(0, self._go_on)

    def _stands_still(self) -> None:
        """It is about to."""

    def _go_on(self) -> None:
        if not self._paused:
            self.resume()

    def _before_append(self, kind: int, partition: int, head: bytes, reserve: bool) -> None:
        self.at("append")
        if self.refusals.is_armed and self._driver is not None:
            error = self.refusals.error_for(kind, partition, head, reserve=reserve)
            if error is not None:
                raise error

    def _read_clock(self) -> ClockInterval | None:
        self.at("clock")
        return self.clock.interval()

    def _make_node(self, store: ObservedStore, environment: Environment) -> Node:
        return Node(store, environment, self._schedule.now_ms, self.max_unflushed_bytes)

    def _make_driver(self, node: Node, store: ObservedStore) -> SimulatedDriver:
        return SimulatedDriver(self, node, store, self._schedule, self._random, self._trace)

    def _not_started(self, why: str, *, power: bool = False) -> None:
        self._trace.add(self.name, why)
        self._leave_disk(power=power)

    def crash(self, *, power: bool) -> None:
        """The power goes, or only the process dies; helper threads may have been in the middle of something."""
        driver = self._driver
        if driver is None:
            return
        self._trace.add(self.name, "lost power" if power else "was killed")
        half_done = driver.half_done()
        self._random.shuffle(half_done)
        for call in self.going_down:
            call(driver.store)
        for work in half_done:
            if self._random.random() < 0.7:
                most = _OPERATIONS_IN_A_FLUSH if isinstance(work, Flush) else _OPERATIONS_IN_A_JOB
                self.disk.power_off_after = self.disk.operations + self._random.randint(0, most)
                try:
                    work.run()
                except PowerLoss:
                    pass
        self._end(power=power)

    def stop(self) -> None:
        """A clean stop: running work ends, the node closes its journal."""
        driver = self._driver
        if driver is None:
            return
        if self._in_turn:  # it does not get the signal, and is killed
            self.crash(power=False)
            return
        self._trace.add(self.name, "stops")
        self.turn_pause = None
        driver.finish()
        driver.call(lambda node: node.close(self._schedule.now_ms))
        if self._driver is driver:
            for call in self.going_down:
                call(driver.store)
            self._end(power=False)

    def failed(self, error: Exception) -> None:
        """As in the real driver: an error out of the node ends the process."""
        if self._driver is None:
            return
        sentence = f"{type(error).__name__}: {error}"
        self._trace.add(self.name, f"the node failed: {sentence}")
        if not isinstance(error, StorageFailedError):
            self.defects.append((self._schedule.now_ms, f"{sentence}{_place(error)}"))
        for call in self.going_down:
            call(self._driver.store)
        self._end(power=False)

    def _end(self, *, power: bool) -> None:
        assert self._driver is not None
        self._driver.ended = True
        self._most_unflushed_bytes = self.most_unflushed_bytes
        self._driver = self.trap = None
        self._paused = self._in_turn = False
        self._held.clear()
        if self._port is not None:
            self._port.close()
        self._port = None
        self._leave_disk(power=power)

    def _leave_disk(self, *, power: bool) -> None:
        self.disk = self.disk.crash() if power else self.disk.reopen()

    # -- connections -----------------------------------------------------------------------------------------

    def accepts(self) -> bool:
        """Whether a server listens."""
        return self._driver is not None

    def opened(self, link: Link) -> None:
        """A client has connected."""
        self.do(lambda: self._port.opened(link) if self._port is not None else None)

    def lost(self, link: Link) -> None:
        """A client is gone."""
        self.do(lambda: self._port.lost(link) if self._port is not None else None)

    def arrived(self, link: Link, data: bytes) -> None:
        """Bytes of a client."""
        self.do(lambda: self._port.arrived(link, data) if self._port is not None else None)

    def write(self, connection: int, data: bytes) -> None:
        """Answers of the node, for a client that may be gone."""
        if self._port is not None:
            self._port.write(connection, data)

    def congestion_changed(self, congested: bool) -> None:
        """Whether clients may be read from."""
        if self._port is not None:
            self._port.sessions.congestion_changed(congested)

    def read_on(self) -> bool:
        """Takes some of what waits to be read; True if there is more."""
        return self._port is not None and self._port.read_on()

    def _handle(self, connection: int, frame: Frame, node: Node) -> None:
        now_ms = self._schedule.now_ms
        self.at("request")
        node.handle(connection, frame, now_ms)


def _place(error: Exception) -> str:
    """Where an error was raised, for the report of a seed that shows a defect."""
    frames = extract_tb(error.__traceback__)
    return f" (in {frames[-1].name}, {frames[-1].filename}:{frames[-1].lineno})" if frames else ""
