"""Files that are on disk and nowhere else: dropped from the page cache, looked for there, and read plainly.

A server may run over them meanwhile: what it removes or renames in between is left out.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

_CHUNK_BYTES = 1024 * 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SAMPLES_PER_FILE = 32


def _opened(directory: Path) -> Iterator[tuple[int, int]]:
    """Descriptor and size of every file that is not empty, one after the other."""
    for path in sorted(directory.rglob("*")):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            if path.is_file() and (size := os.fstat(descriptor).st_size):
                yield descriptor, size
        finally:
            os.close(descriptor)


def drop_from_cache(directory: Path) -> None:
    """Writes what is not on disk yet, and lets the kernel forget every page."""
    for descriptor, _ in _opened(directory):
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def cached_share(directory: Path, written_before: float) -> float:
    """The share of pages that could be read without the disk, judged by a few of each large file written before then."""
    cached = asked = 0
    page = bytearray(1)
    for descriptor, size in _opened(directory):
        if size < _CHUNK_BYTES or os.fstat(descriptor).st_mtime >= written_before:
            continue
        step = max(_PAGE_BYTES, size // _SAMPLES_PER_FILE)
        for offset in range(0, size, step):
            asked += 1
            cached += _is_cached(descriptor, offset, page)
    return cached / asked if asked else 0.0


def _is_cached(descriptor: int, offset: int, page: bytearray) -> bool:
    try:
        return os.preadv(descriptor, [page], offset, os.RWF_NOWAIT) > 0
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EOPNOTSUPP):
            return False
        raise


def read_rate(directory: Path, size_bytes: int) -> float:
    """Megabytes a second of reading so many bytes of the files from end to end, one after the other."""
    buffer = bytearray(_CHUNK_BYTES)
    read = 0
    started = time.perf_counter()
    for descriptor, size in _opened(directory):
        offset = 0
        while offset < size and read < size_bytes:
            got = os.preadv(descriptor, [buffer], offset)
            offset += got
            read += got
    return read / (time.perf_counter() - started) / 1e6
