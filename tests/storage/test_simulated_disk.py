"""The simulated disk keeps its promises, and breaks everything that was not promised."""

from __future__ import annotations

import random

import pytest

from penstock.simulation.disk import PowerLoss, SimulatedDisk
from penstock.storage.disk import DiskFailedError, DiskFullError


def with_file(seed: int, size: int = 4096) -> tuple[SimulatedDisk, str]:
    disk = SimulatedDisk(random.Random(seed))
    file = disk.open("file", create=True)
    file.allocate(size)
    disk.sync_directory("")
    return disk, "file"


def test_synced_bytes_survive_and_unsynced_ones_are_lost_kept_or_torn() -> None:
    outcomes = set()
    for seed in range(60):
        disk, name = with_file(seed)
        file = disk.open(name)
        file.write_at(0, [b"s" * 1024])
        file.sync()
        file.write_at(1024, [b"u" * 512, b"u" * 1024])
        data = disk.crash().contents(name)
        assert data[:1024] == b"s" * 1024
        assert data[2560:] == bytes(1536)
        sectors = [data[offset : offset + 512] for offset in (1024, 1536, 2048)]
        assert all(sector in (bytes(512), b"u" * 512) for sector in sectors)
        outcomes.add(tuple(any(sector) for sector in sectors))
    assert {(True, True, True), (False, False, False)} < outcomes
    assert len(outcomes) >= 5


def test_a_sector_never_holds_a_later_write_without_an_earlier_one() -> None:
    for seed in range(60):
        disk, name = with_file(seed)
        file = disk.open(name)
        file.write_at(0, [b"a" * 8])
        file.write_at(8, [b"b" * 8])
        data = disk.crash().contents(name)[:16]
        assert data in (bytes(16), b"a" * 8 + bytes(8), b"a" * 8 + b"b" * 8)


def test_names_are_durable_after_sync_directory_only() -> None:
    seen = set()
    for seed in range(40):
        disk, name = with_file(seed)
        disk.make_folder("folder")
        disk.open("folder/new", create=True).write_at(0, [b"x"])
        disk.rename(name, "renamed")
        seen.add(tuple(disk.crash().files()))
    assert {("file",), ("renamed",), ("folder/new", "renamed")} <= seen
    disk, name = with_file(1)
    disk.rename(name, "renamed")
    disk.sync_directory("")
    assert list(disk.crash().files()) == ["renamed"]


def test_a_kill_keeps_what_was_written_until_the_power_goes_too() -> None:
    lost = 0
    for seed in range(20):
        disk, name = with_file(seed)
        disk.open(name).write_at(0, [b"u"])
        disk.kill()
        disk = disk.reopen()
        assert disk.contents(name)[:1] == b"u"
        lost += disk.crash().contents(name)[:1] != b"u"
    assert 0 < lost < 20


def test_a_dead_machine_does_nothing_more() -> None:
    disk, name = with_file(1)
    file = disk.open(name)
    disk.crash()
    with pytest.raises(PowerLoss):
        file.write_at(0, [b"x"])
    with pytest.raises(PowerLoss):
        disk.open(name)


def test_the_power_goes_after_so_many_operations() -> None:
    disk, name = with_file(1)
    file = disk.open(name)
    disk.power_off_after = disk.operations + 1
    file.write_at(0, [b"x"])
    with pytest.raises(PowerLoss):
        file.sync()
    with pytest.raises(PowerLoss):
        file.read_at(0, 1)


def test_a_full_disk_refuses_growth_and_overwrites_go_on() -> None:
    disk, name = with_file(1)
    disk.capacity = 5000
    file = disk.open(name)
    file.write_at(0, [b"x" * 4096])
    with pytest.raises(DiskFullError):
        file.write_at(4000, [b"x" * 1001])
    assert disk.free_bytes() == 904
    disk.remove(name)
    assert disk.free_bytes() == 5000


def test_what_a_failed_sync_did_not_write_no_later_sync_writes() -> None:
    disk, name = with_file(1)
    file = disk.open(name)
    file.write_at(0, [b"lost"])
    disk.fault = lambda what, _: DiskFailedError("simulated") if what == "sync" else None
    with pytest.raises(DiskFailedError):
        file.sync()
    disk.fault = None
    file.sync()
    assert file.read_at(0, 4) == b"lost"
    assert disk.crash().contents(name)[:4] == bytes(4)


def test_a_copy_is_a_world_of_its_own() -> None:
    disk, name = with_file(1)
    disk.open(name).write_at(0, [b"unsynced"])
    copies = [disk.copy(random.Random(seed)).crash().contents(name)[:8] for seed in range(20)]
    assert set(copies) == {bytes(8), b"unsynced"}
    assert disk.contents(name)[:8] == b"unsynced"


def test_the_same_seed_gives_the_same_run() -> None:
    traces = []
    for _ in range(2):
        disk, name = with_file(7)
        trace: list[str] = []
        disk.trace = trace.append
        for offset in range(0, 4096, 300):
            disk.open(name).write_at(offset, [b"%04d" % offset * 50])
        traces.append((trace, disk.crash().contents(name)))
    assert traces[0] == traces[1]
