"""The files of spools: mapped into memory, locked by their process, and readable only by the server's own user."""

from __future__ import annotations

import fcntl
import mmap
import os
import stat
from contextlib import suppress
from pathlib import Path

from penstock.usage.spool import LEAST_BYTES

SUFFIX = ".spool"
_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
"""Rows say who did what from where: they are for the server's own user only."""


class MappedFile:
    """See `penstock.usage.spool_files.RingFile`."""

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        """`size` 0: all that is there. Raises `OSError`."""
        self._path = path
        self._descriptor = descriptor
        self._map = mmap.mmap(descriptor, size)
        self.memory = memoryview(self._map)

    def close(self) -> None:
        """The lock goes with the descriptor. Closing again does nothing: the number may be another file's by then."""
        self.memory.release()
        self._map.close()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def remove(self) -> None:
        """Removes it before the lock is released, so that no other process finds it."""
        self._path.unlink(missing_ok=True)
        self.close()


class SpoolDirectory:
    """See `penstock.usage.spool_files.SpoolFiles`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    @property
    def place(self) -> str:
        """Its path."""
        return str(self._path)

    def names(self) -> list[str]:
        """Files that are no spools may be among them, if they are called like one."""
        return sorted(path.name.removesuffix(SUFFIX) for path in self._path.glob(f"*{SUFFIX}"))

    def make(self, name: str, size: int) -> MappedFile:
        """Raises `OSError` where the disk has no room."""
        path = self._path / f"{name}{SUFFIX}"
        make_private(self._path)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
        try:
            _wait_for_lock(descriptor)
            os.posix_fallocate(descriptor, 0, size)
            return MappedFile(path, descriptor, size)
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise

    def take(self, name: str) -> MappedFile | None:
        """None if its writer lives, or if the file is too short for a ring. Raises `OSError`."""
        path = self._path / f"{name}{SUFFIX}"
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if not _lock(descriptor) or os.fstat(descriptor).st_size < LEAST_BYTES:
                os.close(descriptor)
                return None
            _narrow(descriptor, _FILE_MODE)  # earlier versions let the group read it
            return MappedFile(path, descriptor, 0)
        except OSError:
            os.close(descriptor)
            raise


def make_private(directory: Path) -> None:
    """Creates a directory for its owner only; an existing one with wider rights is narrowed."""
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
    _narrow(directory, _DIRECTORY_MODE)


def _narrow(place: Path | int, mode: int) -> None:
    if stat.S_IMODE(os.stat(place).st_mode) & 0o077:
        with suppress(PermissionError):  # another user owns it and decides
            os.chmod(place, mode)


def _wait_for_lock(descriptor: int) -> None:
    """A process that looks for rings of dead ones holds a new file's lock for a moment, until it sees that the file is empty.

    Without the lock the next process would take the ring for a dead writer's.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return  # a file system without locks: other processes have none either


def _lock(descriptor: int) -> bool:
    """False if another process has the file; a file system without locks counts as unlocked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
