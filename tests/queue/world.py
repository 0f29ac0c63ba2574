"""The engine beside the reference: every command goes to both, and after every command both must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import pytest

from penstock.model.batch import UNSET, Batch, encode
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.origin import Origin
from penstock.model.records import NumbersSkipped, SettingsChanged
from penstock.model.runs import Run, Runs, normalized, runs_of
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import receive as receiving
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.snapshot import snapshot
from penstock.queue.state import states
from tests.queue import recount
from tests.queue.reference import FOREVER, Outgoing, QueueIsFull, Reference
from tests.queue.rig import START_MS, Rig, expand

Verb = Literal["delete", "release", "unreceive", "extend"]
UPKEEP = {
    "expire": upkeep.expire,
    "retain": upkeep.retain,
    "end_delays": upkeep.end_delays,
    "end_leases": upkeep.end_leases,
}


def encoded(batch: Sequence[Outgoing]) -> Batch:
    """The batch as a producer would encode it, with no more columns than it needs."""
    return encode(
        [m.body for m in batch],
        priorities=[m.priority for m in batch] if any(m.priority for m in batch) else None,
        delays_ms=[UNSET if m.delay_ms is None else m.delay_ms for m in batch]
        if any(m.delay_ms is not None for m in batch)
        else None,
        ttls_ms=[UNSET if m.ttl_ms is None else m.ttl_ms for m in batch]
        if any(m.ttl_ms is not None for m in batch)
        else None,
        groups=[m.group for m in batch] if any(m.group for m in batch) else None,
        deduplication_ids=[m.identifier for m in batch] if any(m.identifier for m in batch) else None,
        attributes=[m.attributes for m in batch] if any(m.attributes for m in batch) else None,
    )


class World:
    """A partition, its reference, and a dead-letter queue that its moves go to."""

    def __init__(self, settings: QueueSettings, start: int = 1) -> None:
        self.rig = Rig(settings, start=start)
        self.reference = Reference(settings, next=start)
        self.dead = Rig(QueueSettings(ordering=settings.ordering), partition_id=2)
        self.gone: dict[int, bytes] = {}
        """What must be in the dead-letter queue, by sequence number here."""
        self.now_ms = START_MS
        self.leases: list[tuple[int, Runs]] = []
        """Every lease ever given out; most are stale."""
        self.bodies = 0
        self.arrivals = 0
        self.sent: dict[tuple[int, int], list[Outgoing]] = {}
        """Batches by producer and number."""

    def body(self, size: int) -> bytes:
        """A body unlike any other, if there is room to tell them apart."""
        self.bodies += 1
        return self.bodies.to_bytes(4, "little")[:size].ljust(size, b".")

    # -- commands --------------------------------------------------------------------------------------------

    def send(self, batch: list[Outgoing], producer: int, number: int) -> None:
        """Sends; under a number that was used before the batch of that number comes again."""
        if producer:
            batch = self.sent.setdefault((producer, number), batch)
        settings = self.reference.settings
        too_long = max(message.delay_ms or 0 for message in batch) > settings.retention_ms
        if too_long or (settings.fifo and any(message.priority for message in batch)):
            if not (producer and (producer, number) in self.reference.answers):
                with pytest.raises(PenstockError):
                    self.rig.send(encoded(batch), self.now_ms, producer, number)
            return
        try:
            expected = self.reference.send(batch, producer, number, self.now_ms)
        except QueueIsFull:
            with pytest.raises(PenstockError) as caught:
                self.rig.send(encoded(batch), self.now_ms, producer, number)
            assert caught.value.code is ErrorCode.QUEUE_FULL
            return
        answer = self.rig.send(encoded(batch), self.now_ms, producer, number)
        assert expand(answer.runs) == expected.sequences
        assert answer.duplicates == expected.duplicates

    def send_refused(self, batch: list[Outgoing]) -> None:
        """The engine decides to take a batch, but the journal has no room for it: nothing has happened."""
        try:
            sending.admit(self.rig.partition, encoded(batch), 0, 0, self.now_ms)
        except PenstockError:
            pass

    def receive(self, max_messages: int, max_bytes: int, visibility_timeout_ms: int | None) -> None:
        """Receives, and looks at what was received."""
        granted = self.rig.receive(
            max_messages, self.now_ms, max_bytes=max_bytes, visibility_timeout_ms=visibility_timeout_ms
        )
        if granted is None:
            assert not self.reference.lines()
            return
        sequences = expand(granted.runs)
        timeout_ms = visibility_timeout_ms
        if timeout_ms is None:
            timeout_ms = self.reference.settings.visibility_timeout_ms
        assert granted.until_ms == self.now_ms + timeout_ms
        self.reference.lease(sequences, granted.lease, self.now_ms, granted.until_ms, max_messages, max_bytes)
        expected = [self.reference.messages[sequence] for sequence in sequences]
        assert self.rig.bodies(granted.runs) == [message.body for message in expected]
        table = self.rig.partition.table
        counts = [count for run in granted.runs for count in table.receive_counts(run)]
        assert counts == [message.receives for message in expected]
        times = [time for run in granted.runs for time in table.first_received(run, self.now_ms)]
        assert times == [message.first_received_ms for message in expected]
        self.leases.append((granted.lease, normalized(granted.runs)))

    def receive_refused(self, max_messages: int) -> None:
        """A receive is decided, but the journal has no room for it: everything stays deliverable."""
        receiving.grant(self.rig.partition, max_messages, 1 << 20, None, self.now_ms)

    def settle(
        self, verb: Verb, which: int, runs: Runs | None, time_ms: int, received: int | None = None
    ) -> None:
        """Settles some lease, live or stale; `runs` None: all that it was given."""
        if not self.leases:
            return
        lease, given = self.leases[which % len(self.leases)]
        if runs is not None:  # some of what it was given, and some of what it was not
            given = [(given[0][0] + first, count) for first, count in runs if given[0][0] + first >= 0]
        named = set(expand(given))
        held = self.reference.held(lease, named)
        gone = sum(1 for sequence in named if sequence not in self.reference.messages)
        match verb:
            case "delete":
                if received is not None:
                    held += self.reference.waiting(named, received)
                outcome = self.rig.delete(lease, given, self.now_ms, received)
                self.reference.delete(lease, named)
                if received is not None:
                    self.reference.delete_waiting(named, received)
            case "release":
                if received is not None and not time_ms:
                    held += self.reference.waiting(named, received, ["ready"])
                outcome = self.rig.release(lease, given, self.now_ms, time_ms, received)
                self.reference.release(lease, named, self.now_ms, time_ms)
            case "unreceive":
                outcome = self.rig.release(lease, given, self.now_ms, time_ms, unreceived=True)
                self.reference.unreceive(lease, named, self.now_ms, time_ms)
            case "extend":
                if received is not None:
                    held += self.reference.waiting(named, received, ["ready"])
                outcome = self.rig.extend(lease, given, time_ms, self.now_ms, received)
                self.reference.extend(lease, named, self.now_ms + time_ms)
                if received is not None:
                    self.reference.resume(lease, named, received, self.now_ms + time_ms)
        assert outcome.done == len(held)
        assert outcome.gone == gone
        assert outcome.done + outcome.gone + len(expand(outcome.stale)) == len(named)

    def advance(self, by_ms: int, refused: bool) -> None:
        """Time passes, and what is due is done; maybe after a first try for which the journal had no room."""
        self.now_ms += by_ms
        for name, decide in UPKEEP.items():
            if refused:
                decide(self.rig.partition, self.now_ms)
            self.rig.write(decide(self.rig.partition, self.now_ms))
            getattr(self.reference, name)(self.now_ms)
        self.rig.upkeep(self.now_ms)

    def purge(self) -> None:
        """Everything goes, from a log too."""
        staying = sum(1 for m in self.reference.messages.values() if m.state != "moving")
        log = self.rig.partition.log
        lost = staying if log is None else max(staying, log.messages)
        assert self.rig.carry_out(settling.purge(self.rig.partition, self.now_ms)) == lost
        assert log is None or not log.messages
        self.reference.purge()

    def change(self, **changes: object) -> None:
        """Other settings."""
        settings = msgspec.structs.replace(self.reference.settings, **changes)
        self.rig.write([PendingRecord(SettingsChanged(settings, self.now_ms))])
        self.reference.settings = settings

    def redrive(self, run: Run) -> None:
        """Sends ready messages on their way."""
        decision = moving.start_move(self.rig.partition, [run], "dead", self.now_ms)
        assert self.rig.carry_out(decision) == self.reference.start_move(expand([run]), "dead")

    def carry(self, most: int, steps: int, again: bool) -> None:
        """Carries some messages over; a crash leaves it after any number of steps, and it may be done again."""
        for runs in [runs_of(expand(runs)[:most]) for runs in self.rig.partition.moves.values()]:
            for _ in range(2 if again else 1):
                self._arrive_dead(runs)
            if steps > 1:
                self.rig.write(moving.finish_move(self.rig.partition, runs, self.now_ms))
                self.rig.write(moving.finish_move(self.rig.partition, runs, self.now_ms))
                self.reference.finish_move(expand(runs))
            if steps > 2:
                for _ in range(2):
                    forgotten = moving.forget_origins(self.dead.partition, 1, runs, self.now_ms)
                    self.dead.write(forgotten)

    def _arrive_dead(self, runs: Runs) -> None:
        sequences = expand(runs)
        origin = Origin(1, "orders", "redrive", runs, 0, [0] * len(sequences), self.now_ms)
        bodies = [self.reference.messages[sequence].body for sequence in sequences]
        self.dead.write(moving.arrive(self.dead.partition, encode(bodies), origin, self.now_ms))
        self.gone.update(zip(sequences, bodies, strict=True))

    def abandon(self) -> None:
        """The dead-letter queue is not there: what has not arrived in it comes back."""
        on_their_way = sorted(run for moves in self.rig.partition.moves.values() for run in moves)
        back = runs_of(sequence for sequence in expand(on_their_way) if sequence not in self.gone)
        self.rig.write(moving.abandon_move(self.rig.partition, back, self.now_ms))
        self.reference.abandon_move(expand(back))

    def arrive(self, batch: list[Outgoing], again: bool) -> None:
        """Messages of another queue move in, maybe twice, the second time with one more."""
        first = 1 + self.arrivals
        for extra in (0, 1) if again else (1,):
            part = batch[: len(batch) - 1 + extra]
            if not part:
                continue
            runs = [(first, len(part))]
            origin = Origin(3, "other", "redrive", runs, 0, [7] * len(part), self.now_ms)
            self.rig.write(moving.arrive(self.rig.partition, encoded(part), origin, self.now_ms))
            self.reference.arrive(part, 3, expand(runs), self.now_ms)
        self.arrivals += len(batch)

    def skip(self, numbers: int) -> None:
        """Numbers are left out, as by a primary after a failover that may have lost messages."""
        first = self.reference.next + numbers
        self.rig.write([PendingRecord(NumbersSkipped(first, self.now_ms))])
        self.reference.next = first

    def relocate(self, which: int) -> None:
        """A checkpoint moves what lives in a file."""
        files = sorted(self.rig.partition.table.files)
        if files:
            self.rig.relocate({files[which % len(files)]})

    # -- agreeing --------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Both agree, and the engine agrees with itself."""
        partition, reference = self.rig.partition, self.reference
        recount.check(partition)
        found = {
            sequence: (states.NAMES[byte & states.STATE_BITS], byte & states.PRIORITY_BITS)
            for sequence, byte in recount.living(partition).items()
        }
        assert found == {s: (m.state, m.priority) for s, m in reference.messages.items()}
        assert partition.table.next == reference.next
        assert partition.table.bytes == sum(m.size for m in reference.messages.values())
        for sequence, message in reference.messages.items():
            assert partition.table.receive_counts((sequence, 1)) == [message.receives]
        moves = {key: expand(runs) for key, runs in partition.moves.items()}
        assert moves == reference.moving()
        for how in ("deleted", "expired", "dead_lettered", "dropped", "purged"):
            assert getattr(partition.totals, how) == reference.ended.get(how, 0), how
        due_ms = upkeep.upkeep_due(partition)
        wanted_ms = max(self.now_ms, reference.next_ms())
        assert (FOREVER if due_ms is None else due_ms) <= wanted_ms, "a node would sleep through it"
        unused = {position >> 32 for position in self.rig.stored} - set(partition.table.files)
        assert unused <= set(self.rig.emptied), "nobody was told that a file is empty"

    def finish(self) -> None:
        """The records alone give the same state; and everything comes out, once, in order, until none is left."""
        dumped = snapshot.dump(self.rig.partition)
        assert snapshot.dump(self.rig.replayed()) == dumped
        assert snapshot.dump(snapshot.load(dumped)) == dumped
        self._check_dead()
        self.abandon()
        self.carry(1 << 20, 3, again=False)
        self.change(retention_ms=10**12, max_receives=None)
        while self.reference.messages:
            self.advance(1, refused=False)
            before = len(self.reference.messages)
            while self.reference.lines():
                self.receive(7, 1 << 20, None)
                self.settle("delete", -1, None, 0)
            assert len(self.reference.messages) < before or before == 0 or self._wait()
            self.carry(1 << 20, 3, again=False)
            self.check()
        assert not self.rig.partition.table.messages
        assert snapshot.dump(self.rig.replayed()) == snapshot.dump(self.rig.partition)

    def _wait(self) -> bool:
        times = [m.ready_ms if m.state == "delayed" else m.until_ms for m in self.reference.messages.values()]
        later_ms = max(times, default=0)
        self.advance(max(1, later_ms - self.now_ms), refused=False)
        return True

    def _check_dead(self) -> None:
        recount.check(self.dead.partition)
        runs = self.dead.partition.table.runs_in(states.RUNS_LIVING, 1, self.dead.partition.table.next, 10**6)
        assert sorted(self.dead.bodies(runs)) == sorted(self.gone.values())
