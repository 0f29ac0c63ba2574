"""A queue ordered by its producers' stamps beside a list that is sorted anew every time: they must agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from penstock.model.batch import Batch as EncodedBatch
from penstock.model.batch import encode
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.origin import Lateness, Origin
from penstock.model.records import MoveStarted, SettingsChanged
from penstock.model.runs import Runs, count_of, normalized
from penstock.model.settings import QueueSettings
from penstock.ordering.clock_interval import ClockInterval, around
from penstock.ordering.timestamp_id import BEFORE_ALL, TimestampId
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.decisions.stamping import ProducerStamps
from penstock.queue.snapshot import snapshot
from penstock.queue.state import states
from tests.queue import recount
from tests.queue.rig import START_MS, Rig, expand

State = Literal["held", "ready", "leased", "moving"]


@dataclass
class Plain:
    """A message and all that matters of it."""

    sequence: int
    identifier: TimestampId
    group: bytes
    state: State
    expires_ms: int | None = None
    lease: int = 0


@dataclass
class Batch:
    """Of a causal queue: a batch that arrived."""

    arrived_ms: int
    process: int
    greatest_us: int


@dataclass
class PlainOrder:
    """What must be so, without anything clever."""

    settings: QueueSettings
    messages: dict[int, Plain] = field(default_factory=dict)
    emitted: list[int] = field(default_factory=list)
    """Everything that was ever let out, in order."""
    floors: dict[int, TimestampId] = field(default_factory=dict)
    """By session on a causal queue, else under 0."""
    window: list[Plain] = field(default_factory=list)
    """What was taken in and has not left; what expires meanwhile leaves with the others, and nobody gets it."""
    arrivals: list[Batch] = field(default_factory=list)
    late: dict[int, int] = field(default_factory=dict)
    """Floors of late messages, by their sequence numbers."""

    def floor(self, process: int) -> TimestampId:
        """Nothing at or below it is taken in."""
        return self.floors.get(process if self.settings.ordering == "causal" else 0, BEFORE_ALL)

    def let_out(self, now_ms: int, now: ClockInterval) -> None:
        """What may leave the window leaves it."""
        window_ms = self.settings.window_ms
        if self.settings.ordering == "clock":
            through_us = now.earliest_us - window_ms * 1_000
            self._leave([m for m in self.window if m.identifier.time_us <= through_us], 0)
            return
        while self.arrivals and self.arrivals[0].arrived_ms + window_ms <= now_ms:
            batch = self.arrivals.pop(0)
            mine = [m for m in self.window if m.identifier.process == batch.process]
            self._leave([m for m in mine if m.identifier.time_us <= batch.greatest_us], batch.process)

    def _leave(self, leaving: list[Plain], session: int) -> None:
        leaving.sort(key=lambda m: (m.identifier, m.sequence))
        for message in leaving:
            self.window.remove(message)
            message.state = "ready"
            self.emitted.append(message.sequence)
            self.floors[session] = max(self.floors.get(session, BEFORE_ALL), message.identifier)

    def lines(self) -> dict[bytes, list[int]]:
        """What may be delivered, by group."""
        lines: dict[bytes, list[int]] = {}
        closed = {m.group for m in self.messages.values() if m.state == "leased"}
        for sequence in self.emitted:
            message = self.messages.get(sequence)
            if message is None:
                continue
            if message.state != "ready":
                closed.add(message.group)
            elif message.group not in closed:
                lines.setdefault(message.group, []).append(sequence)
        return lines


class SortedWorld:
    """A partition and its plain order; every command goes to both."""

    def __init__(self, settings: QueueSettings) -> None:
        self.rig = Rig(settings)
        self.plain = PlainOrder(settings)
        self.now_ms = START_MS
        self.uncertainty_us = 0
        self.leases: list[tuple[int, Runs]] = []
        self.numbers: dict[tuple[int, int], list[int]] = {}
        self.batches: dict[tuple[int, int], EncodedBatch] = {}
        self.counters: dict[int, int] = {}
        self.arrived = 0

    def clock(self) -> ClockInterval:
        """What the server knows of the time."""
        return around(self.now_ms * 1_000, self.uncertainty_us)

    # -- commands --------------------------------------------------------------------------------------------

    def send(
        self,
        process: int,
        offsets_us: Sequence[int],
        groups: Sequence[bytes],
        ttl_ms: int,
        number: int,
        torn: bool,
    ) -> None:
        """A batch whose stamps lie so far from now; process 0: without stamps. Torn: only half of it is recorded."""
        key = (process, number)
        now_us = self.now_ms * 1_000
        stamps = [max(1, now_us + offset) for offset in offsets_us]
        counter = self.counters.get(process, 0)
        batch = encode(
            [b"x"] * len(stamps),
            groups=groups,
            ttls_ms=[ttl_ms] * len(stamps) if ttl_ms else None,
            stamps_us=stamps if process else None,
        )
        if process and number and key in self.numbers:
            batch = self.batches[key]  # a number names one batch
        first = self.rig.partition.table.next
        try:
            decision = sending.admit(
                self.rig.partition,
                batch,
                process if number else 0,
                number,
                self.now_ms,
                said=ProducerStamps(process, counter),
                now=self.clock(),
            )
        except PenstockError as error:
            self._check_refusal(error.code, max(stamps))
            return
        if process and number and key in self.numbers:
            assert not decision.records
            assert expand(decision.reply.runs) == self.numbers[key]
            return
        lateness = [w.record.late for w in decision.records if isinstance(w.record, MoveStarted)]
        late_written = bool(lateness) and not torn
        self.rig.write(decision.records if late_written else decision.records[:1])
        self._take_in(
            process, stamps, groups, ttl_ms, counter, first, decision.reply.stamp_us, late_written, lateness
        )
        self.numbers[key] = list(range(first, first + len(stamps)))
        self.batches[key] = batch

    def _check_refusal(self, code: ErrorCode, newest_us: int) -> None:
        settings = self.plain.settings
        most_us = settings.max_uncertainty_ms * 1_000
        assert settings.ordering == "clock"
        if self.uncertainty_us > most_us:
            assert code is ErrorCode.CLOCK_UNCERTAIN
        else:
            assert code is ErrorCode.STAMP_IN_FUTURE
            assert newest_us > self.now_ms * 1_000 + self.uncertainty_us + most_us

    def _take_in(
        self,
        process: int,
        stamps: list[int],
        groups: Sequence[bytes],
        ttl_ms: int,
        counter: int,
        first: int,
        server_us: int,
        late_written: bool,
        lateness: list[Lateness | None],
    ) -> None:
        plain = self.plain
        floor = plain.floor(process)
        if not process:
            stamps = [server_us] * len(stamps)
        else:
            self.counters[process] = counter + len(stamps)
        in_time = []
        for place, stamp_us in enumerate(stamps):
            identifier = TimestampId(stamp_us, process, counter + place if process else place)
            expires_ms = -(-(self.now_ms + ttl_ms) // 10) * 10 if ttl_ms else None
            message = Plain(first + place, identifier, groups[place], "held", expires_ms)
            plain.messages[message.sequence] = message
            if identifier <= floor:
                plain.late[message.sequence] = floor.time_us
                if late_written:
                    message.state = "moving"
            else:
                in_time.append(stamp_us)
                plain.window.append(message)
        late = len(stamps) - len(in_time)
        assert bool(lateness) == bool(late)
        if lateness:
            assert lateness[0] is not None
            assert lateness[0].floor_us == floor.time_us
        if in_time and plain.settings.ordering == "causal":
            plain.arrivals.append(Batch(self.now_ms, process, max(stamps)))

    def advance(self, by_ms: int) -> None:
        """Time passes, and what is due is done."""
        self.now_ms += by_ms
        partition, plain = self.rig.partition, self.plain
        self.rig.write(upkeep.expire(partition, self.now_ms))
        for message in list(plain.messages.values()):
            if (
                message.expires_ms is not None
                and message.expires_ms <= self.now_ms
                and message.state != "moving"
            ):
                del plain.messages[message.sequence]
        self.rig.write(upkeep.end_leases(partition, self.now_ms))
        self.rig.write(upkeep.let_out(partition, self.now_ms, self.clock))
        for sequence in plain.late:
            if sequence in plain.messages:
                plain.messages[sequence].state = "moving"
        plain.let_out(self.now_ms, self.clock())
        due_ms = upkeep.next_due(partition, self.now_ms, self.clock)
        assert due_ms is None or due_ms > self.now_ms or partition.expiries.next_ms() is not None

    def receive(self, most: int) -> None:
        """Takes the next messages, which must be next."""
        granted = self.rig.receive(most, self.now_ms, visibility_timeout_ms=10**9)
        lines = self.plain.lines()
        if granted is None:
            assert not lines
            return
        for sequence in expand(granted.runs):
            message = self.plain.messages[sequence]
            assert lines[message.group].pop(0) == sequence
            message.state, message.lease = "leased", granted.lease
        self.leases.append((granted.lease, normalized(granted.runs)))

    def settle(self, which: int, delete: bool, most: int) -> None:
        """Ends some of a lease."""
        if not self.leases:
            return
        lease, runs = self.leases[which % len(self.leases)]
        some = [(runs[0][0], min(most, runs[0][1]))]
        held = [
            s
            for s in expand(some)
            if (m := self.plain.messages.get(s)) and m.state == "leased" and m.lease == lease
        ]
        if delete:
            assert self.rig.delete(lease, some, self.now_ms).done == len(held)
        else:
            assert self.rig.release(lease, some, self.now_ms).done == len(held)
        for sequence in held:
            if delete:
                del self.plain.messages[sequence]
            else:
                self.plain.messages[sequence].state = "ready"

    def purge(self) -> None:
        """Everything goes but what is on its way."""
        staying = [m for m in self.plain.messages.values() if m.state != "moving"]
        assert self.rig.carry_out(settling.purge(self.rig.partition, self.now_ms)) == len(staying)
        for message in staying:
            del self.plain.messages[message.sequence]
        self.plain.arrivals.clear()
        self.plain.window.clear()

    def move_in(self, groups: Sequence[bytes]) -> None:
        """Messages of another queue: ready at once, behind what was let out."""
        first, count = self.rig.partition.table.next, len(groups)
        runs = [(1 + self.arrived, count)]
        self.arrived += count
        origin = Origin(3, "dead", "redrive", runs, 0, [1] * count, self.now_ms)
        batch = encode([b"m"] * count, groups=groups)
        self.rig.write(moving.arrive(self.rig.partition, batch, origin, self.now_ms, (5, 77, 0)))
        for place, group in enumerate(groups):
            self.plain.messages[first + place] = Plain(first + place, BEFORE_ALL, group, "ready")
            self.plain.emitted.append(first + place)

    def carry_late(self) -> None:
        """Late messages reach the queue of late messages; what they carry says how late they were."""
        partition = self.rig.partition
        for (target, reason), runs in list(partition.moves.items()):
            assert (target, reason) == ("orders.late", "late")
            assert partition.sorting is not None
            for sequence in expand(runs):
                batch = max(first for first, _ in partition.sorting.late.items() if first <= sequence)
                known = partition.sorting.lateness_of(batch)
                assert known is not None
                assert known.floor_us == self.plain.late[sequence]
                del self.plain.messages[sequence]
            self.rig.write(moving.finish_move(partition, [*runs], self.now_ms))
            assert not count_of(run for kept in partition.moves.values() for run in kept)

    def change_window(self, window_ms: int) -> None:
        """Another window."""
        settings = msgspec.structs.replace(self.plain.settings, window_ms=window_ms)
        self.rig.write([PendingRecord(SettingsChanged(settings, self.now_ms))])
        self.plain.settings = settings

    # -- agreeing --------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Both agree."""
        partition = self.rig.partition
        recount.check(partition)
        found = {s: states.NAMES[byte & states.STATE_BITS] for s, byte in recount.living(partition).items()}
        assert found == {s: m.state for s, m in self.plain.messages.items()}
        assert partition.totals.late == len(self.plain.late)
        assert partition.sorting is not None
        if self.plain.settings.ordering == "clock":
            assert partition.sorting.watermark_us == self.plain.floor(0).time_us

    def finish(self) -> None:
        """The records alone give the same state, snapshots too; and everything comes out, once, in order."""
        dumped = snapshot.dump(self.rig.partition)
        assert snapshot.dump(self.rig.replayed()) == dumped
        assert snapshot.dump(snapshot.load(dumped)) == dumped
        self.uncertainty_us = 0
        self.advance(10_000)
        self.carry_late()
        for lease, runs in self.leases:
            self.rig.delete(lease, runs, self.now_ms)
            for sequence in expand(runs):
                message = self.plain.messages.get(sequence)
                if message is not None and message.lease == lease and message.state == "leased":
                    del self.plain.messages[sequence]
        self.leases.clear()
        for _ in range(1_000):
            if not self.plain.messages:
                break
            self.receive(3)
            assert self.leases, "nothing comes out any more"
            lease, runs = self.leases.pop()
            self.rig.delete(lease, runs, self.now_ms)
            for sequence in expand(runs):
                del self.plain.messages[sequence]
        assert not self.rig.partition.table.messages
        assert snapshot.dump(self.rig.replayed()) == snapshot.dump(self.rig.partition)
