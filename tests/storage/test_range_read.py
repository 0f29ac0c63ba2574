"""Reading long stretches of a retained log: few reads, every checksum, and no trace in the cache."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from penstock.model.batch import Batch, encode
from penstock.model.origin import Origin
from penstock.model.records import Sent, encode_record
from penstock.simulation.disk import SimulatedDisk, SimulatedFile
from penstock.storage import range_read
from penstock.storage.disk import DiskFailedError
from penstock.storage.range_read import Place, RangeReadJob
from penstock.storage.store import Store
from tests.storage.keeper import IDENTITY, OPTIONS

READING = replace(OPTIONS, journal_file_bytes=256 * 1024, checkpoint_journal_bytes=1 << 30)


class Log:
    """Batches of partition 1, with some of another between them, in the journal of a store that is just opened."""

    def __init__(self, batches: int = 30, size: int = 500, origin: Origin | None = None) -> None:
        self.disk = SimulatedDisk(random.Random(1))
        store = Store.open(self.disk, READING, IDENTITY)
        self.places: list[Place] = []
        self.bodies: list[bytes] = []
        for number in range(1, batches + 1):
            for partition in (1, 2):
                body = b"%d-%d" % (partition, number) + bytes(size)
                batch = encode([body])
                record = Sent(number, 1, 0, 0, 0, 0, 0, origin)
                position = store.append(partition, number, encode_record(record), (batch.data,))
                if partition == 1:
                    self.places.append((position, len(batch.data)))
                    self.bodies.append(body)
        while (flush := store.take_flush()) is not None:
            flush.run()
            store.flushed(flush)
        store.close()
        self.disk = self.disk.reopen()
        self.store = Store.open(self.disk, READING, IDENTITY)

    def read(self, places: list[Place] | None = None) -> RangeReadJob:
        job = self.store.range_read_job(1, self.places if places is None else places)
        job.run()
        self.store.job_done(job)
        assert job.error is None
        return job


def bodies_of(job: RangeReadJob) -> list[bytes]:
    return [bytes(Batch(payload).body(0)) for _, payload in job.entries]


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []
    whole = SimulatedFile.read_at

    def read_at(file: SimulatedFile, offset: int, size: int, *, block: bool = True) -> bytes:
        sizes.append(size)
        return whole(file, offset, size, block=block)

    monkeypatch.setattr(SimulatedFile, "read_at", read_at)
    return sizes


def test_neighbours_come_with_one_read_and_stay_out_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    reads = count_reads(monkeypatch)
    job = log.read()
    assert bodies_of(job) == log.bodies
    assert [sent.first for sent, _ in job.entries] == list(range(1, 31))
    assert len(reads) == 1
    assert log.store.statistics().cached_bytes == 0
    assert not log.store.has_cached(log.places[0][0])


def test_a_stretch_is_cut_where_it_gets_long_and_where_others_lie_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log()
    reads = count_reads(monkeypatch)
    monkeypatch.setattr(range_read, "RANGE_BYTES", 10_000)
    assert bodies_of(log.read()) == log.bodies
    assert 3 <= len(reads) <= 5
    reads.clear()
    monkeypatch.setattr(range_read, "_GAP_BYTES", 100)
    assert bodies_of(log.read()) == log.bodies
    assert len(reads) == 30


def test_batches_in_any_order_are_read() -> None:
    log = Log()
    places = list(log.places)
    random.Random(5).shuffle(places)
    expected = [log.bodies[log.places.index(place)] for place in places]
    assert bodies_of(log.read(places)) == expected


def test_a_batch_with_a_long_head_is_read_again_by_itself() -> None:
    origin = Origin(7, "orders", "redrive", [(number, 1) for number in range(1, 1_000, 3)], 0, [1] * 333, 0)
    log = Log(4, origin=origin)
    assert bodies_of(log.read()) == log.bodies


@pytest.mark.parametrize("at", [4, 60, 300])
def test_what_lies_before_damage_is_read_and_the_damage_is_named(at: int) -> None:
    log = Log()
    offset = log.places[10][0] & 0xFFFFFFFF
    log.disk.flip_bit("journal/0000000001.journal", offset + at)
    job = log.read()
    assert bodies_of(job) == log.bodies[:10]
    assert job.damaged is not None
    assert (job.damaged.file, job.damaged.offset) == ("journal/0000000001.journal", offset)


def test_a_place_that_holds_something_else_is_damage() -> None:
    log = Log()
    job = log.read([(log.places[0][0] + 8, 500)])
    assert job.damaged is not None
    assert log.read([(99 << 32, 500)]).damaged is not None
    others = log.store.range_read_job(2, log.places)
    others.run()
    log.store.job_done(others)
    assert others.entries == []


def test_a_sector_that_cannot_be_read_takes_only_its_own_batch_along(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    bad = (log.places[20][0] & 0xFFFFFFFF) + 100
    whole = SimulatedFile.read_at

    def read_at(file: SimulatedFile, offset: int, size: int, *, block: bool = True) -> bytes:
        if offset <= bad < offset + size:
            raise DiskFailedError("a sector is gone")
        return whole(file, offset, size, block=block)

    monkeypatch.setattr(SimulatedFile, "read_at", read_at)
    job = log.read()
    assert bodies_of(job) == log.bodies[:20]
    assert job.damaged is not None
    assert "cannot be read" in job.damaged.reason
