"""A partition on a bench: decisions are carried out as a node would, and everything written is kept.

Records go through their encoded form before they are applied, as after a restart, and `replayed()` applies the
whole log to a fresh partition, so that a test can ask whether the state follows from the records alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.model.batch import Batch, encode
from penstock.model.records import CatalogueRecord, decode_record, encode_record
from penstock.model.runs import Run, Runs
from penstock.model.settings import QueueSettings
from penstock.queue import living_files
from penstock.queue.decisions import receive as receiving
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import Admitted, Decision, Granted, Outcome, PendingRecord, Reply
from penstock.queue.log.retention import cut
from penstock.queue.partition import Partition
from penstock.queue.snapshot import snapshot

START_MS = 1_000_000
SENDS_PER_FILE = 5

Entry = tuple[bytes, bytes | None, int] | dict[int, int]
"""(record, payload, position) as a journal would hold it, or old -> new positions as a checkpoint moved them."""


def expand(runs: Iterable[Run]) -> list[int]:
    """The sequence numbers of the runs, in their order."""
    return [sequence for first, count in runs for sequence in range(first, first + count)]


class Rig:
    """One partition, its log and its bodies."""

    def __init__(
        self, settings: QueueSettings | None = None, *, partition_id: int = 1, start: int = 1
    ) -> None:
        self._start = start
        self._partition_id = partition_id
        self._settings = settings or QueueSettings()
        self.partition = self._fresh()
        self.log: list[Entry] = []
        self.stored: dict[int, tuple[int, Batch]] = {}
        """First sequence number and batch by position."""
        self.emptied: list[int] = []
        self._sends = 0

    def _fresh(self) -> Partition:
        partition = Partition(self._partition_id, "orders", self._settings, START_MS)
        partition.table.next = self._start
        if partition.log is not None:
            partition.log.next = self._start
        return partition

    # -- carrying out ----------------------------------------------------------------------------------------

    def write(self, decided: Sequence[PendingRecord]) -> None:
        """Appends and applies, in order."""
        for record, batch in decided:
            position = 0
            if batch is not None:
                self._sends += 1
                position = (1 + self._sends // SENDS_PER_FILE) << 32 | 64 * (self._sends % SENDS_PER_FILE)
                self.stored[position] = (self.partition.table.next, batch)
            entry = (encode_record(record), bytes(batch.data) if batch is not None else None, position)
            self.log.append(entry)
            _apply(self.partition, entry)
        self.emptied += living_files.take_emptied(self.partition)

    def carry_out(self, decision: Decision[Reply]) -> Reply:
        """Writes the records; returns the reply."""
        self.write(decision.records)
        return decision.reply

    def replayed(self, log: Sequence[Entry] | None = None, onto: Partition | None = None) -> Partition:
        """A fresh partition, or another, to which the whole log was applied, or another."""
        partition = onto or self._fresh()
        for entry in self.log if log is None else log:
            _apply(partition, entry)
        return partition

    def reload(self) -> None:
        """Goes through a snapshot, as a restart does."""
        dumped = snapshot.dump(self.partition)
        self.partition = snapshot.load(dumped)
        assert snapshot.dump(self.partition) == dumped

    def relocate(self, files: set[int]) -> None:
        """Moves what lives in the files elsewhere, as a checkpoint does."""
        self._sends += SENDS_PER_FILE
        new_file = 1 + self._sends // SENDS_PER_FILE
        places = living_files.living_places(self.partition, files, set())
        living = dict.fromkeys(position for position, _, _ in places if position >= 0)
        moved = {old: new_file << 32 | 64 * (i + SENDS_PER_FILE) for i, old in enumerate(living)}
        self._sends += SENDS_PER_FILE
        self.log.append(moved)
        _apply(self.partition, moved)
        for old, new in moved.items():
            self.stored[new] = self.stored[old]
        self.emptied += living_files.take_emptied(self.partition)

    # -- the usual requests ----------------------------------------------------------------------------------

    def send(self, batch: Batch, now_ms: int = START_MS, producer: int = 0, number: int = 0) -> Admitted:
        """Sends a batch."""
        return self.carry_out(sending.admit(self.partition, batch, producer, number, now_ms))

    def send_plain(self, count: int, now_ms: int = START_MS, size: int = 10) -> list[int]:
        """Sends messages that have nothing but a body."""
        return expand(self.send(encode([bytes(size)] * count), now_ms).runs)

    def send_groups(self, groups: Sequence[bytes], now_ms: int = START_MS) -> list[int]:
        """Sends one message a group named."""
        return expand(self.send(encode([b"x"] * len(groups), groups=groups), now_ms).runs)

    def receive(
        self,
        max_messages: int = 10,
        now_ms: int = START_MS,
        *,
        max_bytes: int = 1 << 20,
        visibility_timeout_ms: int | None = None,
    ) -> Granted | None:
        """Receives what is next."""
        decision = receiving.grant(self.partition, max_messages, max_bytes, visibility_timeout_ms, now_ms)
        return self.carry_out(decision) if decision is not None else None

    def take(self, max_messages: int = 10, now_ms: int = START_MS) -> list[int]:
        """The sequence numbers of what is next, leased."""
        granted = self.receive(max_messages, now_ms)
        return expand(granted.runs) if granted is not None else []

    def delete(self, lease: int, runs: Runs, now_ms: int = START_MS, received: int | None = None) -> Outcome:
        """Deletes under a lease."""
        return self.carry_out(settling.delete(self.partition, lease, runs, now_ms, received))

    def release(
        self,
        lease: int,
        runs: Runs,
        now_ms: int = START_MS,
        delay_ms: int = 0,
        received: int | None = None,
        *,
        unreceived: bool = False,
    ) -> Outcome:
        """Gives back under a lease."""
        decision = settling.release(
            self.partition, lease, runs, delay_ms, now_ms, received, unreceived=unreceived
        )
        return self.carry_out(decision)

    def extend(
        self,
        lease: int,
        runs: Runs,
        timeout_ms: int,
        now_ms: int = START_MS,
        received: int | None = None,
    ) -> Outcome:
        """Extends under a lease."""
        return self.carry_out(settling.extend(self.partition, lease, runs, timeout_ms, now_ms, received))

    def upkeep(self, now_ms: int) -> None:
        """Everything that time alone does, until nothing is due."""
        for _ in range(100):
            for decide in (upkeep.expire, upkeep.retain, upkeep.end_delays, upkeep.end_leases, cut):
                self.write(decide(self.partition, now_ms))
            due_ms = upkeep.upkeep_due(self.partition)
            if due_ms is None or due_ms > now_ms:
                return
        raise AssertionError("upkeep is due and does nothing: a node would spin")

    def bodies(self, runs: Iterable[Run]) -> list[bytes]:
        """The bodies of the runs as they would be read back from disk."""
        bodies: list[bytes] = []
        for position, first, messages in receiving.stored_runs(self.partition, runs):
            stored_first, batch = self.stored[position]
            start = first - stored_first
            bodies += Batch(b"".join(batch.slice(start, start + messages))).bodies()
        return bodies


def _apply(partition: Partition, entry: Entry) -> None:
    if isinstance(entry, dict):
        files = {position >> 32 for position in entry}
        living_files.relocate(partition, list(living_files.living_places(partition, files, set())), entry)
        return
    head, payload, position = entry
    record = decode_record(head)
    assert not isinstance(record, CatalogueRecord)
    partition.apply(record, Batch(payload) if payload is not None else None, position)


def leased(count: int = 10, **settings: object) -> tuple[Rig, int]:
    """Messages 1 to `count`, out for a second under lease 1."""
    rig = Rig(QueueSettings(visibility_timeout_ms=1_000, **settings))  # type: ignore[arg-type]  # as the caller names them
    rig.send_plain(count)
    granted = rig.receive(count)
    assert granted is not None
    return rig, granted.lease
