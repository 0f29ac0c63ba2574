"""A snapshot holds everything the records made; the records alone make the same snapshot."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from penstock.model.batch import encode
from penstock.model.records import SettingsChanged
from penstock.model.settings import QueueSettings
from penstock.queue import moving, settling, snapshot
from penstock.queue.decision import Written
from tests.queue import recount
from tests.queue.rig import START_MS, Rig, expand


def busy(ordering: str = "best-effort") -> Rig:
    """A queue that uses everything at once."""
    rig = Rig(
        QueueSettings(
            ordering="fifo" if ordering == "fifo" else "best-effort",
            visibility_timeout_ms=500,
            max_receives=300,
            dead_letter_queue="dead",
            default_ttl_ms=9_000,
        )
    )
    groups = [b"a", b"", b"b", b"c"] * 5
    for number in range(1, 5):
        rig.send(
            encode(
                [b"body"] * 20,
                groups=groups,
                delays_ms=[0, 0, 700, 0] * 5,
                ttls_ms=[5_000] * 20,
                deduplication_ids=[b"%d" % (i % 7) for i in range(20)] if number == 1 else None,
                attributes=[b"\x80"] * 20,
            ),
            START_MS + number,
            producer=5,
            number=number,
        )
    rig.send_plain(5_000, START_MS + 150)
    for _ in range(260):
        granted = rig.receive(200, START_MS + 200)
        assert granted is not None
        rig.release(granted.lease, sorted(granted.runs), START_MS + 200)
    granted = rig.receive(30, START_MS + 250)
    assert granted is not None
    held = sorted(granted.runs)
    rig.delete(granted.lease, held[:1], START_MS + 260)
    rig.extend(granted.lease, held[1:2], 77, START_MS + 260)
    rig.release(granted.lease, held[2:3], START_MS + 270, delay_ms=40)
    rig.carry_out(moving.start_move(rig.partition, [(3_000, 5)], "other", START_MS + 280))
    rig.write([Written(SettingsChanged(rig.partition.settings, START_MS + 290))])
    return rig


@pytest.mark.parametrize("ordering", ["best-effort", "fifo"])
def test_a_snapshot_comes_back_whole(ordering: str) -> None:
    rig = busy(ordering)
    recount.check(rig.partition)
    dumped = snapshot.dump(rig.partition)
    loaded = snapshot.load(dumped)
    recount.check(loaded)
    assert snapshot.dump(loaded) == dumped
    assert loaded.index == len(rig.log)
    assert loaded.table.counts == rig.partition.table.counts
    assert loaded.table.bytes == rig.partition.table.bytes
    assert loaded.table.files == rig.partition.table.files
    assert loaded.table.many_attempts == rig.partition.table.many_attempts != {}
    assert loaded.totals == rig.partition.totals
    assert loaded.settings == rig.partition.settings


@pytest.mark.parametrize("ordering", ["best-effort", "fifo"])
def test_the_records_alone_make_the_same_snapshot(ordering: str) -> None:
    rig = busy(ordering)
    rig.upkeep(START_MS + 10_000)
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)


def test_a_snapshot_and_the_records_after_it_make_the_same_as_all_records() -> None:
    rig = busy("fifo")
    half = len(rig.log) // 2
    early = rig.replayed(rig.log[:half])
    later = rig.replayed(rig.log[half:], snapshot.load(snapshot.dump(early)))
    assert snapshot.dump(later) == snapshot.dump(rig.partition)


def test_what_was_loaded_delivers_the_same() -> None:
    rig = busy("fifo")
    rig.upkeep(START_MS + 1_000)
    loaded = snapshot.load(snapshot.dump(rig.partition))
    twin = Rig()
    twin.partition = loaded
    left, right = drain(rig), drain(twin)
    assert sorted(left) == sorted(right)
    assert len(left) > 2_900


def drain(rig: Rig) -> list[int]:
    """Deletes everything; returns the sequence numbers as they came."""
    found: list[int] = []
    now_ms = START_MS + 2_000
    while granted := rig.receive(100, now_ms):
        found += expand(granted.runs)
        rig.delete(granted.lease, sorted(granted.runs), now_ms)
    return found


def test_a_long_backlog_is_a_small_snapshot() -> None:
    rig = Rig()
    for _ in range(100):
        rig.send_plain(1_000)
    assert len(snapshot.dump(rig.partition)) < 30_000


def test_an_empty_queue_and_a_purged_one_come_back() -> None:
    rig = Rig()
    rig.reload()
    rig.send_plain(5_000)
    rig.receive(10)
    rig.carry_out(settling.purge(rig.partition, START_MS))
    rig.reload()
    assert rig.send_plain(1) == [5_001]
    assert rig.take() == [5_001]
    granted = rig.receive()
    assert granted is None
    assert rig.partition.leases.next == 3


def test_another_version_is_refused_with_its_number() -> None:
    image = msgspec.msgpack.decode(snapshot.dump(Rig().partition))
    image[0] = 99
    with pytest.raises(ValueError, match="version 99"):
        snapshot.load(msgspec.msgpack.encode(image))


def test_a_damaged_snapshot_is_refused_or_loads_but_never_breaks() -> None:
    """Snapshots are checksummed; this is the second line: whoever loads one only has two errors to expect."""
    dice = Random(3)
    rig = Rig()
    rig.send(encode([b"x"] * 5, groups=[b"a"] * 5, delays_ms=[0, 5, 0, 5, 0], ttls_ms=[9] * 5), producer=1)
    rig.receive(2)
    whole = snapshot.dump(rig.partition)
    for _ in range(3_000):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 3)):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        try:
            snapshot.load(bytes(damaged))
        except (msgspec.DecodeError, ValueError):
            continue
