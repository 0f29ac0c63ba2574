"""A snapshot holds everything the records made; the records alone make the same snapshot."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from random import Random

import msgspec
import pytest

from penstock.model import document, limits
from penstock.model.batch import encode
from penstock.model.document import DocumentReader, TooOldError
from penstock.queue.decisions import settle as settling
from penstock.queue.snapshot import first_images, pages, snapshot
from penstock.queue.snapshot.building import Builder
from penstock.queue.state.leases import LeaseTable
from penstock.queue.state.producers import ProducerTable
from tests.queue import recount
from tests.queue.rig import START_MS, Rig, expand
from tests.queue.scenes import SCENES, busy


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


@pytest.mark.parametrize("scene", SCENES)
def test_every_part_of_a_state_comes_back(scene: str) -> None:
    rig = SCENES[scene]()
    dumped = snapshot.dump(rig.partition)
    assert snapshot.dump(snapshot.load(dumped)) == dumped
    assert snapshot.dump(rig.replayed()) == dumped
    recount.check(snapshot.load(dumped))


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene not in ("best-effort", "fifo")])
def test_pages_may_be_of_any_size(scene: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    large = snapshot.dump(SCENES[scene]().partition)
    monkeypatch.setattr(limits, "PAGE_ROWS", rows)
    dumped = snapshot.dump(SCENES[scene]().partition)
    assert snapshot.dump(snapshot.load(dumped)) == dumped
    again = snapshot.load(dumped)
    monkeypatch.undo()
    assert snapshot.dump(snapshot.load(snapshot.dump(again))) == large


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_a_state_may_come_in_pieces_of_any_size(size: int) -> None:
    dumped = snapshot.dump(SCENES["log"]().partition)
    builder = Builder()
    for start in range(0, len(dumped), size):
        builder.feed(dumped[start : start + size])
        while not builder.build(1):
            pass
    assert snapshot.dump(builder.finish()) == dumped
    builder = Builder()
    builder.feed(dumped[:-1])
    with pytest.raises(ValueError, match="ends before its last page"):
        builder.finish()


# -- versions ------------------------------------------------------------------------------------------------

FIRST = json.loads((Path(__file__).parent / "states_of_version_1.json").read_text())
"""What version 1 wrote of the scenes."""


def of_version_1(scene: str) -> bytes:
    return zlib.decompress(base64.b64decode(FIRST[scene]))


@pytest.mark.parametrize("scene", FIRST)
def test_a_state_of_version_1_is_the_same_state(scene: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaseTable, "begin_epoch", lambda *_: None)  # it had no epochs in numbers of leases
    loaded, expected = snapshot.load(of_version_1(scene)), SCENES[scene]().partition
    recount.check(loaded)
    assert list(loaded.producers.producers()) == list(expected.producers.producers())
    loaded.producers, expected.producers = ProducerTable(), ProducerTable()  # rows may lie elsewhere in it
    assert snapshot.dump(loaded) == snapshot.dump(expected)


def test_a_state_of_version_1_from_another_node_has_marked_positions() -> None:
    loaded = snapshot.load(of_version_1("log"), elsewhere=True)
    assert loaded.log is not None
    assert all(file >> 31 for file in (*loaded.table.files, *loaded.log.files))


def test_a_state_from_before_there_were_attempts_can_be_read() -> None:
    image = msgspec.msgpack.decode(of_version_1("log"))
    names = first_images.PartitionImage.__struct_fields__
    image[3]["consumption"] = "queue"
    loaded = snapshot.load(msgspec.msgpack.encode(image[: names.index("attempts")]))
    assert len(loaded.attempts) == 0
    assert loaded.table.messages == 213


def test_another_version_is_refused_with_its_number() -> None:
    image = msgspec.msgpack.decode(of_version_1("empty"))
    for version in (0, 99):
        image[0] = version
        with pytest.raises((ValueError, msgspec.DecodeError), match=f"version {version}"):
            snapshot.load(msgspec.msgpack.encode(image))


def test_a_page_of_a_newer_version_says_so() -> None:
    newer = msgspec.msgpack.encode([99, 1])
    state = pages.prefix(1) + b"\xc6" + len(newer).to_bytes(4, "big") + newer
    with pytest.raises(TooOldError, match="a page of a state of kind 99"):
        snapshot.load(state)


def test_a_program_of_version_1_is_told_that_it_is_too_old() -> None:
    """It reads a state as one document of its own, in which the settings say what they need."""
    state = snapshot.dump(SCENES["log"]().partition)
    reader: DocumentReader[first_images.PartitionImage] = DocumentReader(
        first_images.PartitionImage, "msgpack"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "DOCUMENTS", 1)
        with pytest.raises(TooOldError, match="it needs version 2 of the documents, this one knows 1"):
            reader.decode(state)


# -- damage --------------------------------------------------------------------------------------------------


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
