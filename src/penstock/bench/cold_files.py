"""Files that are on disk and nowhere else: dropped from the page cache, looked for there, and read plainly."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

_CHUNK_BYTES = 1024 * 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SAMPLES_PER_FILE = 32


def files_below(directory: Path) -> list[Path]:
    """All files, the oldest first."""
    found = [path for path in directory.rglob("*") if path.is_file() and path.stat().st_size]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def drop_from_cache(directory: Path) -> None:
    """Writes what is not on disk yet, and lets the kernel forget every page."""
    for path in files_below(directory):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cached_share(directory: Path) -> float:
    """The share of pages that could be read without the disk, judged by a few of each file."""
    cached = asked = 0
    page = bytearray(1)
    for path in files_below(directory):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            # Reading a page makes the kernel read its neighbours, so these are asked for from the end.
            step = max(_PAGE_BYTES, path.stat().st_size // _SAMPLES_PER_FILE)
            for offset in reversed(range(0, path.stat().st_size, step)):
                asked += 1
                cached += _is_cached(descriptor, offset, page)
        finally:
            os.close(descriptor)
    return cached / asked if asked else 0.0


def _is_cached(descriptor: int, offset: int, page: bytearray) -> bool:
    try:
        os.preadv(descriptor, [page], offset, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EOPNOTSUPP):
            return False
        raise
    return True


def read_rate(directory: Path, size_bytes: int) -> float:
    """Megabytes a second of reading so many bytes of the files from end to end, one after the other."""
    buffer = bytearray(_CHUNK_BYTES)
    read = 0
    started = time.perf_counter()
    for path in files_below(directory):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            offset = 0
            while read < size_bytes and (got := os.preadv(descriptor, [buffer], offset)):
                offset += got
                read += got
        finally:
            os.close(descriptor)
    return read / (time.perf_counter() - started) / 1e6
