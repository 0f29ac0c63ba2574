"""The faults of a run: each kind with its own frequency, from its own plan, until the run is over."""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.simulation.aimed_damage import AimedDamage
from penstock.simulation.damage import Victim, living_positions, pick_byte, pick_vital_byte
from penstock.simulation.driver import DiskPace
from penstock.simulation.history import BitFlip, ClockStep
from penstock.simulation.machine import Machine
from penstock.simulation.machine_faults import MachineFaults
from penstock.simulation.message_history import Span
from penstock.simulation.observed_store import ObservedStore
from penstock.simulation.own_dice import own_dice
from penstock.simulation.schedule import Schedule, recur
from penstock.simulation.targeted_sectors import SectorHunter, draw_sector_hunt
from penstock.simulation.workload.stage import Stage
from penstock.storage.errors import StorageError

_RESTART_MS = (10, 100, 900, 4_000)
_IMPATIENT_MS = (60, 300)


class Faults:
    """Injects faults until stopped, then repairs everything."""

    def __init__(self, stage: Stage, machine: Machine) -> None:
        self._stage = stage
        self._machine = machine
        self._schedule: Schedule = stage.schedule
        self._random: Random = stage.random
        self._history = stage.recorder.history
        self._over = False
        self.counts: Counter[str] = Counter()
        """The number of faults, by kind."""
        self._inside = MachineFaults(self._history, stage.schedule, stage.random, stage.trace, self.counts)
        self._inside.add(machine)
        self._hunter = self._draw_hunter()
        self._impatience = own_dice(stage.random, "impatience")
        self.refusals: list[tuple[int, str]] = []
        """When and why the machine refused to start although nothing that was done to it explains it."""
        self.aimed: AimedDamage | None = None
        """Damages what nothing may be lost by, in some runs."""

    def _draw_hunter(self) -> SectorHunter | None:
        scenario = self._stage.scenario
        hunt = draw_sector_hunt(scenario.duration_ms) if scenario.faults.misplaced_ms else None
        if hunt is None:
            return None
        dice = own_dice(self._random, "sectors")
        return SectorHunter(hunt, self._machine, self._inside, self._schedule, dice)

    def start(self) -> None:
        """Plans the first of each kind."""
        plan = self._stage.scenario.faults
        for every_ms, fault in (
            (plan.crashes_ms, self._crash),
            (plan.disconnects_ms, self._disconnect),
            (plan.slow_disk_ms, self._slow_disk),
            (plan.stalls_ms, self._stall),
            (plan.full_disk_ms, self._fill_disk),
            (plan.clock_steps_ms, self._step_clock),
            (plan.bit_flips_ms, self._flip),
            (plan.failing_syncs_ms, lambda: self._inside.fail_operation(self._machine)),
            (plan.garbage_ms, self._garbage),
            (plan.refusals_ms, lambda: self._inside.refuse_appends(self._machine)),
            (plan.misplaced_ms, self._misplace),
            (plan.turn_pauses_ms, lambda: self._inside.pause_in_turn(self._machine)),
            (self._stage.scenario.clocks.faults_ms, self._disturb_clock),
        ):
            if every_ms:
                recur(self._schedule.after_rest, self._random, every_ms, fault, lambda: self._over)
        if self._hunter is not None:
            self._hunter.start()
        if self._stage.scenario.is_impatient:
            self._be_impatient_later()

    def heal(self) -> None:
        """No more faults; the disk is fast, has space, and the machine runs."""
        self._over = True
        if self._hunter is not None:
            self._hunter.over = True
        self._machine.pace = DiskPace()
        self._inside.heal(self._machine)
        self._free_disk()
        self._machine.clock.heal()
        if not self._machine.is_up:
            self._boot()

    # -- the machine -----------------------------------------------------------------------------------------

    def _crash(self) -> None:
        if not self._machine.is_up:
            return
        how = self._random.random()
        if how < 0.5:
            self._machine.trap = self._random.choice(("in a flush", "after a flush", "in a job"))
            self.counts[f"power cut {self._machine.trap}"] += 1
        elif how < 0.65:
            self.counts["power cut"] += 1
            self._machine.crash(power=True)
        elif how < 0.85:
            self.counts["kill"] += 1
            self._machine.crash(power=False)
        else:
            self.counts["clean stop"] += 1
            self._machine.stop()

    def watch(self, store: ObservedStore) -> None:
        """Called whenever the machine goes down: notes it and plans the start."""
        self._history.downtimes.append(Span(self._schedule.now_ms))
        self._schedule.after(self._random.choice(_RESTART_MS), self._boot)

    def _boot(self) -> None:
        machine = self._machine
        if machine.is_up:
            return
        if self.aimed is not None and not self._over:
            self.aimed.spoil_front(machine.disk)
        if not self._over and self._random.random() < 0.1:
            machine.disk.power_off_after = machine.disk.operations + self._random.randint(0, 12)
        elif not self._over and self._stage.scenario.faults.bit_flips_ms and self._random.random() < 0.3:
            self._boot_damaged()
            return
        self._boot_plainly()

    def _boot_plainly(self) -> None:
        try:
            booted = self._machine.boot()
        except StorageError as error:
            if self._stage.scenario.faults.misplaced_ms and self._inside.put_right():
                self._stage.trace.add("faults", "the disk is restored from a copy")
                self._schedule.after(self._random.choice(_RESTART_MS), self._boot)
                return
            self.refusals.append((self._schedule.now_ms, f"{type(error).__name__}: {error}"))
        else:
            self._booted(booted)

    def _booted(self, booted: bool) -> None:
        if not booted:
            self._schedule.after(self._random.choice(_RESTART_MS), self._boot)
            return
        for span in self._history.downtimes:
            if span.answered_ms is None:
                span.answered_ms = self._schedule.now_ms

    def _boot_damaged(self) -> None:
        """Damages what the node cannot do without; if it does not start, puts it right and starts again."""
        disk = self._machine.disk
        victim = pick_vital_byte(disk, self._machine.identity.seed, self._random)
        if victim is None:
            self._boot_plainly()
            return
        bit = self._random.randrange(8)
        disk.fault = None
        disk.flip_bit(victim.file, victim.offset, bit)
        damaged = disk.contents(victim.file)[victim.offset]
        self.counts["bit flip at the start"] += 1
        self._stage.trace.add("faults", f"flips bit {bit} of byte {victim.offset} of {victim.file}")
        flip = BitFlip(self._schedule.now_ms, victim.file, None)
        self._history.flips.append(flip)
        try:
            booted = self._machine.boot()
        except StorageError:
            self._history.flips.remove(flip)
            self._machine.disk.flip_bit(victim.file, victim.offset, bit)
            self._stage.trace.add("faults", "flips it back")
            self._boot_plainly()
            return
        if not booted and self._is_there(victim, damaged):
            # It failed for another reason, as a full disk: the next start would find the damage.
            self._history.flips.remove(flip)
            self._machine.disk.flip_bit(victim.file, victim.offset, bit)
            self._stage.trace.add("faults", "flips it back")
        self._booted(booted)

    def _is_there(self, victim: Victim, damaged: int) -> bool:
        """Whether a damaged byte was not written over since."""
        disk = self._machine.disk
        content = disk.contents(victim.file) if victim.file in disk.files() else b""
        return content[victim.offset : victim.offset + 1] == bytes([damaged])

    # -- the network -----------------------------------------------------------------------------------------

    def _disconnect(self) -> None:
        links = self._stage.network.open_links
        if links:
            number = self._random.choice(sorted(links))
            if self._random.random() < 0.3:
                self.counts["stalled connection"] += 1
                links[number].stall(self._random.choice((100, 1_000, 3_000)))
                return
            self.counts["connection broken"] += 1
            self._stage.trace.add("faults", f"connection {number} breaks")
            links[number].break_off()

    def _be_impatient_later(self) -> None:
        self._schedule.after_rest(self._impatience.randint(*_IMPATIENT_MS), self._be_impatient)

    def _be_impatient(self) -> None:
        """A connection stalls, and its client gives it up after its next request: that arrives after what it sends since."""
        links = self._stage.network.open_links
        if self._over:
            return
        if links:
            link = links[self._impatience.choice(sorted(links))]
            link.stall(self._impatience.choice((300, 1_000, 3_000)))
            link.is_given_up = True
            self.counts["stalled connection given up"] += 1
        self._be_impatient_later()

    def _garbage(self) -> None:
        client = self._random.choice(self._stage.clients)
        self.counts["garbage"] += 1
        self._stage.trace.add("faults", f"{client.name} sends garbage")
        client.send_raw(self._random.randbytes(self._random.randint(4, 60)))

    # -- the disk --------------------------------------------------------------------------------------------

    def _slow_disk(self) -> None:
        pace = self._machine.pace
        low, high = self._random.choice(((5, 60), (50, 400), (300, 1_500)))
        self.counts["slow disk"] += 1
        self._stage.trace.add("faults", f"the disk takes {low} to {high} ms")
        pace.flush_ms, pace.job_ms = (low, high), (low, 2 * high)

        duration_ms = self._random.randint(500, 3_000)
        self._note_slowness(duration_ms + 2 * high)

        def recover() -> None:
            self._machine.pace = DiskPace(stalled_until_ms=self._machine.pace.stalled_until_ms)

        self._schedule.after(duration_ms, recover)

    def _stall(self) -> None:
        duration_ms = self._random.randint(500, 5_000)
        self.counts["stalled disk"] += 1
        self._stage.trace.add("faults", f"the disk stalls for {duration_ms} ms")
        self._machine.pace.stalled_until_ms = self._schedule.elapsed_ms + duration_ms
        self._note_slowness(duration_ms)

    def _note_slowness(self, duration_ms: int) -> None:
        """Work that is queued behind the disk takes time too."""
        span = Span(self._schedule.now_ms)
        self._history.slow_disks.append(span)

        def over() -> None:
            span.answered_ms = self._schedule.now_ms

        self._schedule.after(2 * duration_ms + 1_000, over)

    def _fill_disk(self) -> None:
        disk = self._machine.disk
        if disk.capacity is not None:
            return
        used = sum(disk.files().values())
        disk.capacity = used + self._random.choice((0, 5_000, 60_000, 300_000))
        self.counts["full disk"] += 1
        self._stage.trace.add("faults", f"the disk has room for {disk.capacity - used} more bytes")
        self._history.full_disks.append(Span(self._schedule.now_ms))
        self._schedule.after(self._random.randint(500, 6_000), self._free_disk)

    def _free_disk(self) -> None:
        self._machine.disk.capacity = None
        for span in self._history.full_disks:
            if span.answered_ms is None:
                span.answered_ms = self._schedule.now_ms
                self._stage.trace.add("faults", "the disk has room again")

    def _misplace(self) -> None:
        inside = self._inside
        self._random.choice((inside.cannot_read, inside.lose_write, inside.misdirect_write))(self._machine)

    def _flip(self) -> None:
        store, node = self._machine.store, self._machine.node
        if store is None or node is None:
            return
        disk = self._machine.disk
        living = living_positions(node)
        victim = pick_byte(disk, store.identity.seed, store.committed_position, living, self._random)
        if victim is None:
            return
        bit = self._random.randrange(8)
        disk.flip_bit(victim.file, victim.offset, bit)
        self.counts["bit flip"] += 1
        self._history.flips.append(BitFlip(self._schedule.now_ms, victim.file, victim.owner))
        self._stage.trace.add(
            "faults",
            f"flips bit {bit} of byte {victim.offset} of {victim.file}, owned by queue {victim.owner}",
        )

    # -- the clock -------------------------------------------------------------------------------------------

    def _disturb_clock(self) -> None:
        self.counts["clock disturbed"] += 1
        self._stage.trace.add("faults", self._machine.clock.disturb())

    def _step_clock(self) -> None:
        forward_ms = self._random.choice((20, 500, 5_000))
        self.counts["clock step"] += 1
        self._stage.trace.add("faults", f"the clock steps forward by {forward_ms} ms")
        now_ms = self._schedule.now_ms
        self._history.clock_steps.append(ClockStep(now_ms, now_ms + forward_ms))
        self._schedule.step_clock(forward_ms)
