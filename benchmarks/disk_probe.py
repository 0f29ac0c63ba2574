"""What the disk can do by itself: the same system calls that a journal makes, without a journal."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.figures import Latency, latency

BLOCK_BYTES = 4096
_CHUNK_BYTES = 1024 * 1024


def append_and_sync(directory: Path, rounds: int) -> Latency:
    """4 KiB at the end of a growing file, then fdatasync, again and again."""
    return _sync_often(directory / "append.probe", rounds, preallocated=False)


def overwrite_and_sync(directory: Path, rounds: int) -> Latency:
    """4 KiB over bytes that were written before, then fdatasync: what a preallocated journal does."""
    return _sync_often(directory / "overwrite.probe", rounds, preallocated=True)


def _sync_often(path: Path, rounds: int, *, preallocated: bool) -> Latency:
    block = os.urandom(BLOCK_BYTES)
    samples: list[int] = []
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        if preallocated:
            os.pwrite(descriptor, bytes(rounds * BLOCK_BYTES), 0)
        os.fsync(descriptor)
        for index in range(rounds):
            started = time.perf_counter_ns()
            os.pwrite(descriptor, block, index * BLOCK_BYTES)
            os.fdatasync(descriptor)
            samples.append(time.perf_counter_ns() - started)
    finally:
        os.close(descriptor)
        path.unlink()
    return latency(samples)


def sequential_write(directory: Path, size_bytes: int) -> float:
    """Megabytes a second of a plain sequential write, its one sync at the end included."""
    path = directory / "sequential.probe"
    chunk = os.urandom(_CHUNK_BYTES)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        started = time.perf_counter()
        for offset in range(0, size_bytes, _CHUNK_BYTES):
            os.pwrite(descriptor, chunk, offset)
        os.fdatasync(descriptor)
        seconds = time.perf_counter() - started
    finally:
        os.close(descriptor)
        path.unlink()
    return size_bytes / seconds / 1e6
