"""The real disk: a directory of this machine behind the `Disk` interface, with the errors that storage knows.

It decides nothing: it writes, reads and syncs as requested, and reports what went wrong. Several threads may read and
write an open file at once; only a caller that knows that they are done may close it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from penstock.model.batch import Buffer
from penstock.model.limits import MEBIBYTE
from penstock.storage.disk import DirectoryBusyError, DiskFailedError, DiskFullError, WouldBlockError

Result = TypeVar("Result")

BUFFERS_PER_CALL = 1024
"""IOV_MAX on Linux."""
LOCK_FILE = "lock"
SPARE_FILES = 32
"""Kept open for nothing, so that clients who use up the files of the process leave some to the disk."""

_ZEROS = bytes(MEBIBYTE)
_kept = threading.local()
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_MORE_FILES = frozenset({errno.EMFILE, errno.ENFILE})
_NOT_SUPPORTED = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


@contextmanager
def _said_plainly(what: str) -> Iterator[None]:
    """Turns what the operating system says into what storage knows; a missing file stays what it is."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        kind = DiskFullError if error.errno in _FULL else DiskFailedError
        raise kind(f"{what}: {error.strerror or error}") from error


def _kept_buffer(size: int) -> bytearray:
    """At least `size` bytes of this thread's own, with anything in them."""
    buffer: bytearray | None = getattr(_kept, "buffer", None)
    if buffer is not None and len(buffer) >= size:
        return buffer
    buffer = bytearray(size)
    if size <= MEBIBYTE:
        _kept.buffer = buffer
    return buffer


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SpareFiles:
    """File descriptors that are closed if the process can open no more. A disk that cannot open a file has failed
    permanently, and every connection can be made again.
    """

    def __init__(self, count: int = SPARE_FILES) -> None:
        self._most = count
        self._count = 0
        self._held: list[int] = []

    def hold(self) -> None:
        """Opens them; before this there are none."""
        self._count = self._most
        self._fill()

    def run(self, opens: Callable[[], Result]) -> Result:
        """Calls what opens a file, again with one of these less where there are none left; several threads may do so."""
        while True:
            try:
                result = opens()
            except OSError as error:
                if error.errno not in _NO_MORE_FILES or not self._give_up_one():
                    raise
            else:
                if len(self._held) < self._count:
                    self._fill()
                return result

    def close(self) -> None:
        """Gives all of them up."""
        self._count = 0
        while self._give_up_one():
            pass

    def _give_up_one(self) -> bool:
        try:
            descriptor = self._held.pop()
        except IndexError:
            return False
        os.close(descriptor)
        return True

    def _fill(self) -> None:
        """As far as there are files; the next one that is opened looks again."""
        try:
            while len(self._held) < self._count:
                self._held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            return


class RealFile:
    """An open file of the data directory."""

    def __init__(self, name: str, descriptor: int) -> None:
        self._name = name
        self._descriptor = descriptor
        self._may_refuse_to_wait = True

    @property
    def name(self) -> str:
        return self._name

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """Writes all buffers; continues after a partial write."""
        try:
            for first in range(0, len(buffers), BUFFERS_PER_CALL):
                part = (
                    buffers[first : first + BUFFERS_PER_CALL] if len(buffers) > BUFFERS_PER_CALL else buffers
                )
                size = sum(map(len, part))
                written = os.pwritev(self._descriptor, part, offset)
                offset += written
                if written != size:
                    offset = self._write_rest(offset, b"".join(part)[written:])
        except OSError as error:
            kind = DiskFullError if error.errno in _FULL else DiskFailedError
            raise kind(f"writing {self._name}: {error.strerror or error}") from error

    def _write_rest(self, offset: int, rest: bytes) -> int:
        view = memoryview(rest)
        while view:
            written = os.pwrite(self._descriptor, view, offset)
            if not written:
                raise OSError(errno.EIO, "no more bytes can be written to the file")
            offset += written
            view = view[written:]
        return offset

    def read_at(self, offset: int, size: int, *, block: bool = True) -> bytes:
        """Reads; without `block` only from memory, as far as the file system can tell the difference."""
        with _said_plainly(f"reading {self._name}"):
            if not block and self._may_refuse_to_wait:
                data = self._read_from_memory(offset, size)
                if data is not None:
                    return data
            data = os.pread(self._descriptor, size, offset)
            if len(data) == size:
                return data
            parts = [data]
            while data and (size := size - len(data)):
                offset += len(data)
                data = os.pread(self._descriptor, size, offset)
                parts.append(data)
            return b"".join(parts)

    def _read_from_memory(self, offset: int, size: int) -> bytes | None:
        """None where this file system cannot read without waiting, so that the caller must wait."""
        # A buffer that is kept saves clearing a new one: as much work as the copy out of it.
        buffer = memoryview(_kept_buffer(size))[:size]
        try:
            count = os.preadv(self._descriptor, [buffer], offset, os.RWF_NOWAIT)
        except BlockingIOError:
            raise WouldBlockError(self._name) from None
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            self._may_refuse_to_wait = False
            return None
        if count < size and offset + count < self.size():
            raise WouldBlockError(self._name)
        return bytes(buffer[:count])

    def allocate(self, size: int) -> None:
        """Zeros written for real: overwriting blocks that were written before syncs twice as fast as new ones."""
        with _said_plainly(f"allocating {size} bytes for {self._name}"):
            os.posix_fallocate(self._descriptor, 0, size)
            for offset in range(0, size, MEBIBYTE):
                self._write_rest(offset, _ZEROS[: size - offset])
            os.fsync(self._descriptor)

    def truncate(self, size: int) -> None:
        with _said_plainly(f"truncating {self._name}"):
            os.ftruncate(self._descriptor, size)

    def size(self) -> int:
        with _said_plainly(f"measuring {self._name}"):
            return os.fstat(self._descriptor).st_size

    def sync(self) -> None:
        with _said_plainly(f"syncing {self._name}"):
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class RealDisk:
    """The data directory; created if it does not exist, readable by its owner alone."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory).absolute()
        self._lock: int | None = None
        self._spare = SpareFiles()
        with _said_plainly(f"making {self.directory}"):
            if not self.directory.is_dir():
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                _sync_folder(self.directory.parent)

    def lock(self) -> None:
        """Holds until `close` or the end of the process, when the kernel releases it."""
        if self._lock is not None:
            return
        with _said_plainly(f"locking {self.directory}"):
            descriptor = os.open(self.directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                os.close(descriptor)
                raise DirectoryBusyError(
                    f"{self.directory} is in use by another process" + (f" ({owner})" if owner else "")
                ) from None
            except OSError:
                os.close(descriptor)
                raise
            self._lock = descriptor
            self._spare.hold()
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"process %d\n" % os.getpid(), 0)

    def close(self) -> None:
        """Gives the directory up."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self._spare.close()

    def open(self, name: str, *, create: bool = False) -> RealFile:
        with _said_plainly(f"opening {name}"):
            flags = os.O_RDWR | (os.O_CREAT if create else 0)
            return RealFile(name, self._spare.run(lambda: os.open(self.directory / name, flags, 0o600)))

    def list(self, folder: str) -> list[str]:
        with _said_plainly(f"listing {folder or self.directory}"):
            try:
                return sorted(self._spare.run(lambda: os.listdir(self.directory / folder)))
            except FileNotFoundError:
                return []

    def rename(self, old: str, new: str) -> None:
        with _said_plainly(f"renaming {old} to {new}"):
            os.rename(self.directory / old, self.directory / new)

    def remove(self, name: str) -> None:
        with _said_plainly(f"removing {name}"):
            try:
                os.unlink(self.directory / name)
            except IsADirectoryError:
                os.rmdir(self.directory / name)

    def make_folder(self, name: str) -> None:
        with _said_plainly(f"making {name}"):
            os.makedirs(self.directory / name, mode=0o700, exist_ok=True)

    def sync_directory(self, folder: str) -> None:
        with _said_plainly(f"syncing {folder or self.directory}"):
            self._spare.run(lambda: _sync_folder(self.directory / folder))

    def free_bytes(self) -> int:
        with _said_plainly(f"measuring {self.directory}"):
            status = os.statvfs(self.directory)
            return status.f_bavail * status.f_frsize
