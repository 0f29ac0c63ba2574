"""The faults of a cluster: machines, the network between them, the store, disks and clocks; each with its own frequency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

from penstock.cluster.layout.entries import DrainEntry, drain_key, encode
from penstock.simulation.aimed_damage import AimedDamage
from penstock.simulation.cluster.fabric import SHAPES, Fabric
from penstock.simulation.cluster.fault_plan import ClusterFaultPlan
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.damage import living_positions, pick_byte
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.driver import DiskPace
from penstock.simulation.history import BitFlip, ClockStep, History
from penstock.simulation.machine_faults import MachineFaults
from penstock.simulation.message_history import Span
from penstock.simulation.schedule import Schedule, recur
from penstock.simulation.trace import Trace
from penstock.storage.errors import StorageError

_RESTART_MS = (10, 100, 900, 3_000, 6_000)


class ClusterFaults:
    """Injects faults until stopped, then repairs everything."""

    def __init__(
        self,
        plan: ClusterFaultPlan,
        machines: list[ClusterMachine],
        fabric: Fabric,
        metadata: SimulatedMetadata,
        history: History,
        schedule: Schedule,
        random: Random,
        trace: Trace,
    ) -> None:
        self._plan_of_run = plan
        self._machines = machines
        self._fabric = fabric
        self._metadata = metadata
        self._history = history
        self._schedule = schedule
        self._random = random
        self._trace = trace
        self._over = False
        self.damaged = random.choice(machines)
        """The only machine whose disk is damaged, if that is planned."""
        self.aimed: AimedDamage | None = None
        """The aimed damage to that disk, in some of those runs."""
        self._down_until_ms: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        """The number of faults, by kind."""
        self.refusals: list[tuple[int, str]] = []
        self._inside = MachineFaults(history, schedule, random, trace, self.counts)
        for machine in machines:
            self._inside.add(machine)
            machine.going_down.append(lambda store, machine=machine: self._went_down(machine))  # type: ignore[misc]  # a lambda with its own value

    def start(self) -> None:
        """Plans the first of each kind."""
        plan = self._plan_of_run
        if plan.slow_network:
            self.counts["slow network"] += 1
            self._fabric.slow((0, self._random.choice((20, 80, 300))))
        if plan.lossy_network:
            self.counts["lossy network"] += 1
            self._fabric.lose(plan.lossy_network)
        if plan.skew_ms:
            self.counts["clocks set differently"] += 1
        for machine in self._machines:
            if not machine.starts:
                self._later(500, 6_000, partial(self._join, machine))
        for every_ms, fault in (
            (plan.crashes_ms, self._crash),
            (plan.cuts_ms, self._cut),
            (plan.store_away_ms, self._take_store_away),
            (plan.pauses_ms, self._pause),
            (plan.disconnects_ms, self._disconnect),
            (plan.slow_disk_ms, self._slow_disk),
            (plan.full_disk_ms, self._fill_disk),
            (plan.clock_ms, self._disturb_clock),
            (plan.drains_ms, self._drain),
            (plan.flips_ms, self._damage),
            (plan.failing_syncs_ms, self._on_one(self._inside.fail_operation)),
            (plan.stalls_ms, self._stall),
            (plan.refusals_ms, self._on_one(self._inside.refuse_appends)),
            (plan.turn_pauses_ms, self._on_one(self._inside.pause_in_turn)),
        ):
            if every_ms:
                recur(self._schedule.after, self._random, every_ms, fault, lambda: self._over)

    def heal(self) -> None:
        """No more faults: all machines run, reach each other, and have space."""
        self._over = self._fabric.calm = True
        self._fabric.slow((0, 3))
        self._fabric.lose(0.0)
        self._fabric.mend()
        if self._metadata.away:
            self._metadata.come_back()
        for machine in self._machines:
            self.undrain(machine.name)
        for machine in self._machines:
            machine.pace = DiskPace()
            machine.trap = None
            machine.disk.capacity = None
            machine.clock.heal()
            machine.time.heal()
            self._inside.heal(machine)
            machine.disk.lies = False
            machine.resume()
            if not machine.is_up:
                self._boot(machine)

    def _on_one(self, fault: Callable[[ClusterMachine], None]) -> Callable[[], None]:
        return lambda: fault(self._random.choice(self._machines))

    def _later(self, low_ms: int, high_ms: int, call: Callable[[], None]) -> None:
        """The end of a fault; healing has done it already."""
        self._schedule.after(self._random.randint(low_ms, high_ms), lambda: None if self._over else call())

    # -- machines --------------------------------------------------------------------------------------------

    def _crash(self) -> None:
        count = 1
        if self._plan_of_run.most_crash and self._random.random() < 0.4:
            count = self._random.choice((len(self._machines) // 2 + 1, len(self._machines)))
            self.counts["crash of all" if count == len(self._machines) else "crash of a majority"] += 1
        for machine in self._random.sample(self._machines, count):
            if not machine.is_up:
                continue
            how = self._random.random()
            if how < 0.3 and count == 1:
                machine.trap = self._random.choice(("in a flush", "after a flush", "in a job"))
                self.counts[f"power cut {machine.trap}"] += 1
            elif how < 0.7:
                self.counts["power cut"] += 1
                machine.disk.loses_all = self._random.random() < 0.3
                machine.crash(power=True)
            elif how < 0.9:
                self.counts["kill"] += 1
                machine.crash(power=False)
            else:
                self.counts["clean stop"] += 1
                machine.resume()
                machine.stop()

    def _join(self, machine: ClusterMachine) -> None:
        self._trace.add("faults", f"{machine.name} joins the cluster")
        self.counts["node joins"] += 1
        self._boot(machine)

    def keep_down(self, name: str, duration_ms: int) -> None:
        """A machine that goes down now is not started before."""
        self._down_until_ms[name] = self._schedule.elapsed_ms + duration_ms

    def bring_up(self, name: str) -> None:
        """A machine that is down is started."""
        self._boot(next(machine for machine in self._machines if machine.name == name))

    def _went_down(self, machine: ClusterMachine) -> None:
        delay_ms = self._random.choice(_RESTART_MS)
        until_ms = self._down_until_ms.pop(machine.name, None)
        if until_ms is not None and until_ms > self._schedule.elapsed_ms:
            delay_ms = until_ms - self._schedule.elapsed_ms
        self._schedule.after(delay_ms, lambda: self._boot(machine))

    def _boot(self, machine: ClusterMachine) -> None:
        if machine.is_up:
            return
        if not self._over and self._plan_of_run.crashes_ms and self._random.random() < 0.1:
            machine.disk.power_off_after = machine.disk.operations + self._random.randint(0, 12)
        if self.aimed is not None and machine is self.damaged and not self._over:
            self.aimed.strike(machine.name, machine.disk, machine.identity.seed)
        try:
            booted = machine.boot()
        except StorageError as error:
            if machine is self.damaged and self._plan_of_run.flips_ms:
                self._trace.add("faults", f"{machine.name} gets an empty disk")
                machine.disk = SimulatedDisk(
                    Random(self._random.random()), cold_reads=machine.disk.cold_reads
                )
                self._went_down(machine)
                return
            self.refusals.append((self._schedule.now_ms, f"{machine.name}: {type(error).__name__}: {error}"))
            return
        if not booted:
            self._went_down(machine)

    def _pause(self) -> None:
        machine = self._random.choice(self._machines)
        self._trace.add("faults", f"{machine.name} stands still")
        self.counts["pause"] += 1
        machine.pause()

        def go_on() -> None:
            self._trace.add("faults", f"{machine.name} goes on")
            machine.resume()

        self._later(200, 6_000, go_on)

    # -- the network and the store ---------------------------------------------------------------------------

    def _cut(self) -> None:
        shape = self._random.choice(SHAPES)
        self.counts[f"cut: {shape}"] += 1
        self._trace.add("faults", self._fabric.cut(shape))

        def mend() -> None:
            self._trace.add("faults", "everybody reaches everybody")
            self._fabric.mend()

        self._later(200, 5_000, mend)

    def _disconnect(self) -> None:
        network = self._fabric.clients[self._random.choice(self._machines).name]
        if network.open_links:
            self.counts["connection broken"] += 1
            network.open_links[self._random.choice(sorted(network.open_links))].break_off()

    def _take_store_away(self) -> None:
        if self._metadata.away:
            return
        self._trace.add("faults", "the metadata store is away")
        self.counts["store away"] += 1
        self._metadata.away = True

        def come_back() -> None:
            self._trace.add("faults", "the metadata store is back")
            self._metadata.come_back()

        self._later(300, 6_000, come_back)

    def _stall(self) -> None:
        duration_ms = self._random.choice((100, 1_000, 3_000))
        self.counts["stalled connection"] += self._fabric.stall(duration_ms)

    def _drain(self) -> None:
        """Changes who holds what; half of the time the node may hold something again before it is empty."""
        name = self._random.choice(self._machines).name
        self.drain(name)
        self._later(300, 6_000, lambda: self.undrain(name))

    def drain(self, name: str) -> None:
        """A node is to hold nothing."""
        self._trace.add("faults", f"an operator drains {name}")
        self.counts["drain"] += 1
        self._metadata.put(drain_key(name), encode(DrainEntry(node=name)))

    def undrain(self, name: str) -> None:
        """It may hold partitions again."""
        if self._metadata.delete(drain_key(name)):
            self._trace.add("faults", f"{name} may hold partitions again")

    # -- disks and clocks ------------------------------------------------------------------------------------

    def _slow_disk(self) -> None:
        machine = self._random.choice(self._machines)
        low, high = self._random.choice(((5, 60), (50, 400), (300, 1_500)))
        self._trace.add("faults", f"the disk of {machine.name} takes {low} to {high} ms")
        self.counts["slow disk"] += 1
        machine.pace = DiskPace((low, high), (low, 2 * high))

        def recover() -> None:
            machine.pace = DiskPace()

        self._later(500, 3_000, recover)

    def _fill_disk(self) -> None:
        machine = self._random.choice(self._machines)
        if machine.disk.capacity is not None:
            return
        machine.disk.capacity = machine.disk.used_bytes() + self._random.choice((0, 5_000, 60_000))
        self._trace.add("faults", f"the disk of {machine.name} is nearly full")
        self.counts["full disk"] += 1
        span = Span(self._schedule.now_ms)
        self._history.full_disks.append(span)

        def free() -> None:
            machine.disk.capacity = None
            span.answered_ms = self._schedule.now_ms

        self._later(500, 5_000, free)

    def _disturb_clock(self) -> None:
        if self._random.random() < 0.4:
            forward_ms = self._random.choice((20, 500, 3_000))
            self._trace.add("faults", f"all clocks step forward by {forward_ms} ms")
            self.counts["all clocks step"] += 1
            now_ms = self._schedule.now_ms
            self._history.clock_steps.append(ClockStep(now_ms, now_ms + forward_ms))
            self._schedule.step_clock(forward_ms)
            return
        machine = self._random.choice(self._machines)
        if self._plan_of_run.skew_ms and self._random.random() < 0.6:
            self.counts["clock of one node set or frozen"] += 1
            self._trace.add("faults", f"{machine.name}: {machine.time.disturb()}")
            return
        self.counts["clock of one node"] += 1
        self._trace.add("faults", f"{machine.name}: {machine.clock.disturb()}")

    def _damage(self) -> None:
        """One machine's disk is damaged, or replaced by an empty one; it is restarted often, so that this is found."""
        machine = self.damaged
        if not machine.is_up:
            return
        if self.aimed is not None:
            self.aimed.take_segment(machine.name, machine.disk)
            if self.aimed.wants_restart():
                machine.crash(power=False)
                return
        if self._random.random() < 0.2:
            machine.crash(power=False)
            self._trace.add("faults", f"{machine.name} gets an empty disk")
            self.counts["empty disk"] += 1
            machine.disk = SimulatedDisk(Random(self._random.random()), cold_reads=machine.disk.cold_reads)
            return
        if self._random.random() < 0.25:
            self._lie(machine)
            return
        inside = self._inside
        self._random.choice(
            (self._flip, self._flip, inside.cannot_read, inside.lose_write, inside.misdirect_write)
        )(machine)
        if self._random.random() < 0.5:
            machine.crash(power=False)

    def _lie(self, machine: ClusterMachine) -> None:
        """Its disk says for a while that it has what it has not; then the power goes."""
        self._trace.add("faults", f"{machine.name}: its disk only says that it syncs")
        machine.disk.lies = machine.disk.loses_all = True

        def cut() -> None:
            self.counts["lost syncs"] += machine.is_up
            machine.crash(power=True)

        self._later(100, 1_200, cut)

    def _flip(self, machine: ClusterMachine) -> None:
        node, store = machine.replicated, machine.store
        if node is None or store is None:
            return
        living = living_positions(node)
        victim = pick_byte(machine.disk, store.identity.seed, store.committed_position, living, self._random)
        if victim is None:
            return
        self.counts["bit flip"] += 1
        machine.disk.flip_bit(victim.file, victim.offset, self._random.randrange(8))
        self._history.flips.append(BitFlip(self._schedule.now_ms, victim.file, None))
        self._trace.add(
            "faults", f"{machine.name}: flips a bit of {victim.file}, owned by partition {victim.owner}"
        )
