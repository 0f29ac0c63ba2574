"""What the record of usage keeps on disk is for the server's own user only."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from penstock.runtime.disk.spool_directory import SUFFIX, SpoolDirectory
from penstock.usage.collector import UsageCollector
from penstock.usage.spool import LEAST_BYTES, Spool
from tests.usage.test_usage import event

PERMISSIONS = 0o777


def collector(directory: Path, token: bytes = b"t" * 16) -> UsageCollector:
    return UsageCollector(SpoolDirectory(directory), "front", token=token, spool_bytes=LEAST_BYTES)


def mode(path: Path) -> int:
    return path.stat().st_mode & PERMISSIONS


def test_the_spool_and_its_directories_are_private(tmp_path: Path) -> None:
    usage = collector(tmp_path / "data" / "usage")
    (spool,) = (tmp_path / "data" / "usage").glob(f"*{SUFFIX}")
    assert mode(spool) == 0o600
    assert mode(tmp_path / "data" / "usage") == 0o700
    assert mode(tmp_path / "data") == 0o700
    usage.close()


def test_what_an_earlier_version_left_open_to_others_is_narrowed(tmp_path: Path) -> None:
    place = tmp_path / "usage"
    first = collector(place)
    first.record(event(1))
    first.close()
    (left,) = place.glob(f"*{SUFFIX}")
    left.chmod(0o640)
    place.chmod(0o755)
    second = collector(place, b"u" * 16)
    assert mode(left) == 0o600
    assert mode(place) == 0o700
    batch = second.next_batch()
    assert batch is not None
    assert len(batch.rows) == 1
    second.close()


@pytest.mark.parametrize(("tail", "head"), [(5, 4), (0, 1 << 62), (0, LEAST_BYTES)])
def test_a_ring_whose_places_cannot_be_is_no_ring(tmp_path: Path, tail: int, head: int) -> None:
    path, files = tmp_path / f"one{SUFFIX}", SpoolDirectory(tmp_path)
    spool = Spool.begin(files.make("one", LEAST_BYTES), "front", 7)
    spool.append(1, b"row")
    spool.close()
    with path.open("r+b") as file:
        file.seek(32)
        file.write(struct.pack("<QQ", tail, head))
    left = files.take("one")
    assert left is not None
    assert Spool.adopt(left) is None
