"""Files of lines that are closed by size and by the hour, so that a reader only ever sees whole ones.

A file that is being written is called `….jsonl.open` and loses the ending when it is closed. It is locked
meanwhile: what has the ending and no lock was left by a crash. Nothing here waits for the disk: a power cut may
take the last seconds of usage, and never slows the journal down.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from datetime import UTC, datetime
from pathlib import Path

from penstock.model.limits import HOUR_MS

OPEN = ".open"
_CLOSED = re.compile(r"usage-(\d{8}T\d{6}Z)-(\d+)\.jsonl")
_COPY_BYTES = 1 << 16


class RollingFile:
    """Takes lines; raises `OSError` where the disk does not, and then has taken nothing."""

    def __init__(self, directory: str, file_bytes: int, keep_files: int) -> None:
        self._directory = Path(directory)
        self._file_bytes = file_bytes
        self._keep_files = keep_files
        self._descriptor: int | None = None
        self._path = self._directory
        self._moment = ""
        self._number = 0
        self._hour = 0
        self._size = 0

    def recover(self) -> int:
        """Closes what a crash has left open, without the line it tore; how many files that were."""
        self._directory.mkdir(parents=True, exist_ok=True)
        found = 0
        for path in sorted(self._directory.glob(f"usage-*.jsonl{OPEN}")):
            descriptor = os.open(path, os.O_RDWR)
            try:
                if _lock(descriptor):
                    found += 1
                    size = _whole_lines(descriptor)
                    os.ftruncate(descriptor, size)
                    _finish(path, size)
            finally:
                os.close(descriptor)
        return found

    def write(self, data: bytes, now_ms: int) -> None:
        """Appends whole lines."""
        self.roll_if_due(now_ms)
        if self._descriptor is None:
            self._open(now_ms)
        descriptor, offset = self._descriptor, self._size
        assert descriptor is not None
        view = memoryview(data)
        # At its place, not at the end: what a failed attempt has left there is written over.
        while view:
            written = os.pwrite(descriptor, view, offset)
            offset += written
            view = view[written:]
        self._size = offset

    def roll_if_due(self, now_ms: int) -> None:
        """Closes the file if it is large enough or of another hour."""
        if self._descriptor is not None and (
            self._size >= self._file_bytes or now_ms // HOUR_MS != self._hour
        ):
            self.close()

    def close(self) -> None:
        """Lets a reader have what was written; the next line begins a new file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            os.ftruncate(descriptor, self._size)
            _finish(self._path, self._size)
        finally:
            os.close(descriptor)
        self._drop_oldest()

    def _open(self, now_ms: int) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        moment = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        if moment != self._moment:
            self._moment, self._number = moment, 0
        while True:
            self._number += (
                1  # goes on within a second though the first files may be gone: names give the order
            )
            closed = self._directory / f"usage-{moment}-{self._number:04d}.jsonl"
            path = closed.with_name(closed.name + OPEN)
            if closed.exists():
                continue
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
            except FileExistsError:
                continue
            break
        _lock(descriptor)
        self._descriptor, self._path = descriptor, path
        self._hour, self._size = now_ms // HOUR_MS, 0

    def _drop_oldest(self) -> None:
        found = sorted(
            (name[1], int(name[2]), path)
            for path in self._directory.iterdir()
            if (name := _CLOSED.fullmatch(path.name))
        )
        for _, _, path in found[: max(0, len(found) - self._keep_files)]:
            path.unlink(missing_ok=True)


def _lock(descriptor: int) -> bool:
    """False if another process writes the file; a file system without locks counts as nobody."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _finish(path: Path, size: int) -> None:
    """A file of lines gets its name; one without any goes."""
    if size:
        path.rename(path.with_name(path.name.removesuffix(OPEN)))
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _whole_lines(descriptor: int) -> int:
    """How much of a file is whole lines: up to the last line's end."""
    end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - _COPY_BYTES)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
