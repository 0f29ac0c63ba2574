"""A ring of numbered entries in a file that is mapped into memory: what was put there outlives the process.

Writing an entry is a copy within memory: it waits for no disk, and a process that is killed in the next moment loses
nothing, because the kernel has it. (A power cut may take the last seconds.) The room is reserved when the file is
made, so that a full disk is found out then. Layout, little-endian:

    magic 8 | producer u64 | batch u64 | through u64 | tail u64 | head u64 | name length u16 | name
    entries, from byte 4096 on: size u32 | number u64 | the bytes      a size of all ones: on at the beginning

What the bytes mean is the collector's. An entry may hold several rows: its number is that of the first, and the next
entry's is higher than that of the last.

`tail` and `head` only ever rise; where they point to in the ring is their remainder.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SUFFIX = ".spool"
HEADER_BYTES = 4096
LEAST_BYTES = 64 << 10
_MAGIC = b"PSPOOL1\n"
_HEADER = struct.Struct("<8sQQQQQH")
_BATCH = struct.Struct("<QQ")
_PLACE = struct.Struct("<Q")
_ENTRY = struct.Struct("<IQ")
_BATCH_AT, _TAIL_AT, _HEAD_AT = 16, 32, 40
_WRAPPED = 0xFFFF_FFFF
NO_ROOM = -1
_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
"""Rows say who did what from where: they are for the server's own user only."""


class Entry(NamedTuple):
    """What stands in the ring, and where the next begins."""

    number: int
    end: int
    data: bytes


class Spool:
    """One writer's ring. Whoever opens the file of a dead writer reads it to its end and removes it."""

    def __init__(self, memory: mmap.mmap, path: Path | None, descriptor: int | None) -> None:
        self._memory = memory
        self._path = path
        self._descriptor = descriptor
        self.producer: int
        self.batch: int
        self.through: int
        self.tail: int
        self.head: int
        _, self.producer, self.batch, self.through, self.tail, self.head, size = _HEADER.unpack_from(memory)
        self.name = bytes(memory[_HEADER.size : _HEADER.size + size]).decode(errors="replace")
        self._capacity = len(memory) - HEADER_BYTES

    @classmethod
    def make(cls, path: Path | None, size: int, name: str, producer: int) -> Spool:
        """A new ring; without a path it lives in memory alone. Raises `OSError` where the disk has no room."""
        size = max(size, LEAST_BYTES)
        descriptor: int | None = None
        if path is None:
            memory = mmap.mmap(-1, size)
        else:
            make_private(path.parent)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
            try:
                _wait_for_lock(descriptor)
                os.posix_fallocate(descriptor, 0, size)
                memory = mmap.mmap(descriptor, size)
            except OSError:
                os.close(descriptor)
                path.unlink(missing_ok=True)
                raise
        text = name.encode()
        _HEADER.pack_into(memory, 0, _MAGIC, producer, 0, 0, 0, 0, len(text))
        memory[_HEADER.size : _HEADER.size + len(text)] = text
        return cls(memory, path, descriptor)

    @classmethod
    def adopt(cls, path: Path) -> Spool | None:
        """The ring of a writer that is no more; None if it lives, or if the file is none. Raises `OSError`."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if not lock(descriptor) or os.fstat(descriptor).st_size < LEAST_BYTES:
                os.close(descriptor)
                return None
            _narrow(descriptor, _FILE_MODE)  # earlier versions let the group read it
            memory = mmap.mmap(descriptor, 0)
        except OSError:
            os.close(descriptor)
            raise
        if memory[: len(_MAGIC)] != _MAGIC or not _is_consistent(memory):
            memory.close()
            os.close(descriptor)
            return None
        return cls(memory, path, descriptor)

    # -- writing ---------------------------------------------------------------------------------------------

    def append(self, number: int, data: bytes) -> int:
        """Puts an entry at the end; where the next begins, or `NO_ROOM`."""
        size = _ENTRY.size + len(data)
        head = self.head
        place = head % self._capacity
        left = self._capacity - place
        if left < size:
            if head + left + size - self.tail > self._capacity:
                return NO_ROOM
            if left >= _ENTRY.size:
                _ENTRY.pack_into(self._memory, HEADER_BYTES + place, _WRAPPED, 0)
            head, place = head + left, 0
        elif head + size - self.tail > self._capacity:
            return NO_ROOM
        at = HEADER_BYTES + place
        _ENTRY.pack_into(self._memory, at, len(data), number)
        self._memory[at + _ENTRY.size : at + size] = data
        self.head = head + size
        _PLACE.pack_into(self._memory, _HEAD_AT, self.head)  # the last step: before it the entry is not there
        return self.head

    def begin_batch(self, batch: int, through: int) -> None:
        """Entries up to number `through` are about to be handed on as that batch: the same ones, if it has to be again."""
        self.batch, self.through = batch, through
        _BATCH.pack_into(self._memory, _BATCH_AT, batch, through)

    def release(self, end: int) -> None:
        """Everything before `end` is safe elsewhere, and its room is free."""
        self.tail = end
        _PLACE.pack_into(self._memory, _TAIL_AT, end)

    # -- reading ---------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """What was not released, in order; ends early where the file is damaged."""
        at = self.tail
        while at < self.head:
            place = at % self._capacity
            left = self._capacity - place
            if left < _ENTRY.size:
                at += left
                continue
            size, number = _ENTRY.unpack_from(self._memory, HEADER_BYTES + place)
            if size == _WRAPPED:
                at += left
                continue
            if size > left - _ENTRY.size:
                return
            begin = HEADER_BYTES + place + _ENTRY.size
            at += _ENTRY.size + size
            yield Entry(number, at, bytes(self._memory[begin : begin + size]))

    @property
    def is_empty(self) -> bool:
        """Whether everything was released."""
        return self.tail == self.head

    def close(self) -> None:
        """Lets go of the file, and removes it if there is nothing in it."""
        done = self.is_empty
        self._memory.close()
        if self._path is not None and done:
            self._path.unlink(missing_ok=True)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def remove(self) -> None:
        """It can be read no further: whatever is left in it is given up."""
        self.release(self.head)
        self.close()


def make_private(directory: Path) -> None:
    """Makes a directory that only its owner may look into; one that was made for others too is narrowed."""
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
    _narrow(directory, _DIRECTORY_MODE)


def _narrow(place: Path | int, mode: int) -> None:
    if stat.S_IMODE(os.stat(place).st_mode) & 0o077:
        with suppress(PermissionError):  # it is somebody else's, who decides
            os.chmod(place, mode)


def _is_consistent(memory: mmap.mmap) -> bool:
    """Whether the places in the header can be those of this ring."""
    tail: int
    head: int
    size: int
    _, _, _, _, tail, head, size = _HEADER.unpack_from(memory)
    return tail <= head <= tail + len(memory) - HEADER_BYTES and size <= HEADER_BYTES - _HEADER.size


def _wait_for_lock(descriptor: int) -> None:
    """Whoever looks for rings of the dead has a new file for the moment it takes to see that it is empty, and then lets go.

    Without the lock the next one who looks would take the ring for a dead writer's.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return  # a file system without locks: nobody else can have one either


def lock(descriptor: int) -> bool:
    """False if another process has the file; a file system without locks counts as nobody."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
