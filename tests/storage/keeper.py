"""A node of a hundred lines over a store: keeps numbered bodies, so that tests can say exactly what must survive.

Everything it does is written to `history` in the order of the journal. After any crash its state must be that
of some prefix of the history, and the prefix must hold everything that was committed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from penstock.model.batch import encode
from penstock.model.records import Deleted, Sent, decode_record, encode_record
from penstock.simulation.disk import SimulatedDisk
from penstock.storage.checkpoint import Checkpoint
from penstock.storage.disk import Disk
from penstock.storage.identity import Identity
from penstock.storage.job import Job
from penstock.storage.options import StorageOptions
from penstock.storage.store import Store

IDENTITY = Identity("keeper", b"a secret of thirty-two bytes....")
OPTIONS = StorageOptions(
    journal_file_bytes=16 * 1024,
    entry_bytes_max=8 * 1024,
    free_bytes_min=0,
    segment_bytes=8 * 1024,
    checkpoint_journal_bytes=32 * 1024,
    cache_bytes=4 * 1024,
    read_ahead_bytes=2 * 1024,
    spare_files_max=2,
)

Operation = tuple[str, int, int, bytes]
"""What, partition, index (of the record, or of the record it deletes), body."""


class PartitionCopy:
    """One partition as the keeper knows it."""

    def __init__(self) -> None:
        self.index = 0
        self.positions: dict[int, int] = {}

    def dump(self) -> bytes:
        return msgspec.msgpack.encode(self.positions)


class Keeper:
    """The node; jobs and flushes run when a test says so."""

    def __init__(self, disk: Disk, options: StorageOptions = OPTIONS) -> None:
        self.history: list[Operation] = []
        self.committed = 0
        self.appended_at: list[int] = []
        self.boot(disk, options)

    def boot(self, disk: Disk, options: StorageOptions = OPTIONS) -> None:
        """Opens the directory and rebuilds the state."""
        self.store = Store.open(disk, options, IDENTITY)
        self.partitions: dict[int, PartitionCopy] = {}
        self.checkpoint: Checkpoint | None = None
        self.jobs: list[Job] = []
        recovery = self.store.recovery
        self.damaged = {damage.partition for damage in recovery.damages}
        for partition, (index, state) in recovery.snapshots.items():
            copy = self.partitions[partition] = PartitionCopy()
            copy.index = index
            copy.positions = msgspec.msgpack.decode(state, type=dict[int, int])
        for entry in recovery.entries():
            copy = self.partitions.setdefault(entry.partition, PartitionCopy())
            assert entry.index == copy.index + 1
            copy.index = entry.index
            record = decode_record(entry.head)
            if isinstance(record, Sent):
                copy.positions[entry.index] = entry.position
            else:
                assert isinstance(record, Deleted)
                for index, _ in record.runs:
                    del copy.positions[index]
        for partition, copy in self.partitions.items():
            self.store.keep_only(partition, {position >> 32 for position in copy.positions.values()})
        self.store.keep_partitions({*self.partitions, *self.damaged})

    # -- changes ---------------------------------------------------------------------------------------------

    def put(self, partition: int, body: bytes, *, reserve: bool = True) -> int:
        """Keeps a body; its index is its number."""
        copy = self.partitions.setdefault(partition, PartitionCopy())
        batch = encode([body])
        sent = Sent(copy.index + 1, 1, 0, 0, 0, 0, 0)
        position = self.store.append(
            partition, copy.index + 1, encode_record(sent), (batch.data,), reserve=reserve
        )
        self.store.remember(position, sent, batch)
        copy.index += 1
        copy.positions[copy.index] = position
        self._wrote(("put", partition, copy.index, body))
        return copy.index

    def delete(self, partition: int, index: int) -> None:
        """Gives a body up."""
        copy = self.partitions[partition]
        self.store.append(partition, copy.index + 1, encode_record(Deleted(0, [(index, 1)], 0)))
        copy.index += 1
        position = copy.positions.pop(index)
        self._wrote(("delete", partition, index, b""))
        self._drop_if_empty(partition, position >> 32)

    def _wrote(self, operation: Operation) -> None:
        self.history.append(operation)
        self.appended_at.append(self.store.appended_position)

    def _drop_if_empty(self, partition: int, file: int) -> None:
        positions = self.partitions[partition].positions
        if not self.store.is_journal(file) and not any(p >> 32 == file for p in positions.values()):
            self.store.drop_file(partition, file)

    def flush(self) -> None:
        """One group commit."""
        flush = self.store.take_flush()
        if flush is not None:
            flush.run()
            committed = self.store.flushed(flush)
            while self.committed < len(self.history) and self.appended_at[self.committed] <= committed:
                self.committed += 1

    def work(self) -> None:
        """Runs the store's own jobs until there are none."""
        while jobs := self.store.take_jobs():
            for job in jobs:
                self.run(job)

    def run(self, job: Job) -> None:
        job.run()
        self.store.job_done(job)

    # -- checkpoints -----------------------------------------------------------------------------------------

    def full_checkpoint(self, *, compact: bool = False) -> None:
        """All steps, one after the other."""
        for _ in self.checkpoint_steps(compact=compact):
            self.flush()
            self.work()  # what may be removed before the snapshot is written must not be needed without it

    def checkpoint_steps(self, *, compact: bool = False) -> Iterator[None]:
        """A checkpoint that pauses wherever a node may do something else."""
        checkpoint = self.store.begin_checkpoint()
        for partition in sorted(self.partitions):
            if partition not in self.damaged:
                yield
                self.vacate(checkpoint, partition, compact=compact)
        yield
        for partition, copy in sorted(self.partitions.items()):
            if partition not in self.damaged:
                checkpoint.add(partition, copy.index, copy.dump())
        yield
        while (job := checkpoint.snapshot_job()) is None:
            yield
        job.run()
        yield
        self.store.job_done(job)
        if job.error is not None:
            self.store.abandon_checkpoint(checkpoint)
        else:
            self.store.finish_checkpoint(checkpoint)

    def vacate(self, checkpoint: Checkpoint, partition: int, *, compact: bool = False) -> None:
        """Copies what is alive in files that the checkpoint vacates, or in every file."""
        copy = self.partitions[partition]
        old = {
            index: position
            for index, position in copy.positions.items()
            if checkpoint.is_journal(position >> 32)
            or (compact and not self.store.is_journal(position >> 32))
        }
        job = self.store.copy_job(partition, list(old.values()))
        self.run(job)
        for index, position in old.items():
            if position in job.moved and index in copy.positions:
                copy.positions[index] = job.moved[position]
        for file in {position >> 32 for position in old.values()} if not job.error else ():
            self._drop_if_empty(partition, file)

    # -- truth -----------------------------------------------------------------------------------------------

    def bodies(self, partition: int) -> dict[int, bytes]:
        """What the store gives back, byte for byte."""
        found = {}
        for index, position in self.partitions[partition].positions.items():
            sent, batch = self.store.read(partition, position, block=True)
            assert sent.first == index
            found[index] = bytes(batch.body(0))
        return found

    def check(self, history: list[Operation], committed: int) -> list[Operation]:
        """The state is that of a prefix that holds everything committed; returns the prefix."""
        length = sum(copy.index for copy in self.partitions.values())
        assert committed <= length <= len(history)
        prefix = history[:length]
        expected: dict[int, dict[int, bytes]] = {}
        for what, partition, index, body in prefix:
            if what == "put":
                expected.setdefault(partition, {})[index] = body
            else:
                del expected[partition][index]
        found = {partition: self.bodies(partition) for partition in self.partitions}
        assert {p: bodies for p, bodies in found.items() if bodies} == {
            p: b for p, b in expected.items() if b
        }
        assert not self.damaged
        return prefix


def after_crash(keeper: Keeper, disk: SimulatedDisk, options: StorageOptions = OPTIONS) -> Keeper:
    """The next life on what is left, checked against the last."""
    following = Keeper(disk, options)
    following.history = following.check(keeper.history, keeper.committed)
    following.committed = len(following.history)
    following.appended_at = [0] * len(following.history)
    return following


def body(generator: random.Random, most: int = 900) -> bytes:
    """A body of any size up to `most`."""
    return generator.randbytes(generator.choice((0, 1, 7, 100, generator.randint(0, most))))
