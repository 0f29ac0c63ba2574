"""The directory as a whole: new, known, of another version, in use, damaged."""

from __future__ import annotations

import json
import random

import pytest

from penstock.simulation.disk import SimulatedDisk
from penstock.storage.disk import DirectoryBusyError, DiskFullError
from penstock.storage.errors import StorageDamagedError, StorageVersionError
from penstock.storage.identity import Identity
from penstock.storage.store import Store
from tests.storage.keeper import IDENTITY, OPTIONS, Keeper


def rewrite(disk: SimulatedDisk, name: str, data: bytes) -> SimulatedDisk:
    file = disk.open(name)
    file.truncate(0)
    file.write_at(0, [data])
    file.sync()
    return disk.crash()


def test_a_new_directory_takes_the_identity_and_a_known_one_keeps_it() -> None:
    disk = SimulatedDisk(random.Random(1))
    store = Store.open(disk, OPTIONS, IDENTITY)
    assert store.identity == IDENTITY
    assert (store.recovery.snapshots, store.recovery.damages, store.recovery.torn) == ({}, [], None)
    assert list(store.recovery.entries()) == []
    fields = json.loads(disk.contents("node.json"))
    assert (fields["format"], fields["node"], fields["secret"]) == (1, IDENTITY.node, IDENTITY.secret.hex())
    again = Store.open(disk.crash(), OPTIONS, Identity("someone else", b"other"))
    assert again.identity == IDENTITY


def test_a_second_owner_is_refused() -> None:
    disk = SimulatedDisk(random.Random(1))
    Store.open(disk, OPTIONS, IDENTITY)
    with pytest.raises(DirectoryBusyError):
        Store.open(disk, OPTIONS, IDENTITY)


def test_another_format_of_the_directory_is_refused_by_name() -> None:
    disk = SimulatedDisk(random.Random(1))
    Store.open(disk, OPTIONS, IDENTITY)
    disk = rewrite(disk, "node.json", disk.contents("node.json").replace(b'"format": 1', b'"format": 7'))
    with pytest.raises(StorageVersionError, match=r"node.json has format 7, this version .* reads format 1"):
        Store.open(disk, OPTIONS, IDENTITY)


def test_another_format_of_the_snapshot_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk(random.Random(1))
    with monkeypatch.context() as patch:
        patch.setattr("penstock.storage.snapshot.FORMAT", 9)
        keeper = Keeper.__new__(Keeper)
        with pytest.raises(StorageVersionError):
            Keeper.__init__(keeper, disk)
    with pytest.raises(
        StorageVersionError, match=r"snapshots/.* has format 9, this version .* reads format 1"
    ):
        Store.open(disk.crash(), OPTIONS, IDENTITY)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"format": 1}', b'{"format": 1, "node": "a"}'])
def test_a_damaged_node_file_is_refused(data: bytes) -> None:
    disk = SimulatedDisk(random.Random(1))
    Store.open(disk, OPTIONS, IDENTITY)
    with pytest.raises(StorageDamagedError, match=r"node\.json is damaged"):
        Store.open(rewrite(disk, "node.json", data), OPTIONS, IDENTITY)


def test_a_changed_secret_is_refused() -> None:
    """With another seed every entry would look foreign and the journal empty."""
    disk = SimulatedDisk(random.Random(1))
    Store.open(disk, OPTIONS, IDENTITY)
    other = disk.contents("node.json").replace(IDENTITY.secret.hex().encode(), b"00" * 32)
    with pytest.raises(StorageDamagedError, match="checksum"):
        Store.open(rewrite(disk, "node.json", other), OPTIONS, IDENTITY)


@pytest.mark.parametrize(
    ("lost", "sentence"), [("node.json", "node.json is missing"), ("snapshots", "empty")]
)
def test_a_directory_that_lost_a_part_is_not_taken_for_a_new_one(lost: str, sentence: str) -> None:
    disk = SimulatedDisk(random.Random(1))
    keeper = Keeper(disk)
    keeper.put(1, b"body")
    keeper.flush()
    for name in [lost] if lost == "node.json" else [f"{lost}/{name}" for name in disk.list(lost)]:
        disk.remove(name)
    disk.sync_directory("")
    disk.sync_directory("snapshots")
    with pytest.raises(StorageDamagedError, match=sentence):
        Store.open(disk.crash(), OPTIONS, IDENTITY)


def test_no_room_to_begin_is_said() -> None:
    disk = SimulatedDisk(random.Random(1), capacity=10_000)
    with pytest.raises(DiskFullError):
        Store.open(disk, OPTIONS, IDENTITY)
    disk.kill()
    disk = disk.reopen()
    disk.capacity = None
    Keeper(disk).put(1, b"now there is")
