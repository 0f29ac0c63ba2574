"""A ring belongs to its writer from the moment it is made, whoever looks at the file meanwhile."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from penstock.runtime.disk.spool_directory import SpoolDirectory
from penstock.usage.spool import LEAST_BYTES, Spool


def test_somebody_who_looks_at_a_new_file_does_not_keep_its_writer_from_locking_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, files = tmp_path / "front-1.spool", SpoolDirectory(tmp_path)
    honest_open, honest_flock = os.open, fcntl.flock
    looking: list[int] = []

    def open_and_be_looked_at(*values: object) -> int:
        descriptor: int = honest_open(*values)  # type: ignore[arg-type]  # as they are given
        looking.append(honest_open(path, os.O_RDWR))
        honest_flock(looking[0], fcntl.LOCK_EX)
        return descriptor

    def flock(descriptor: int, operation: int) -> None:
        if not operation & fcntl.LOCK_NB and looking:
            os.close(looking.pop())  # who looks lets go while the writer waits
        honest_flock(descriptor, operation)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_and_be_looked_at)
        patch.setattr(fcntl, "flock", flock)
        made = Spool.begin(files.make("front-1", LEAST_BYTES), "front-1", 7)
    for descriptor in looking:
        os.close(descriptor)
    assert files.take("front-1") is None  # it lives
    made.close()
