"""A ring of numbered entries in memory that outlives the process: the memory of a mapped file.

Writing an entry is a copy within memory. It waits for no disk, and a process that is killed in the next moment loses
nothing, because the kernel has it. (A power cut may lose the last seconds.) The space is reserved when the file is
created, so that a full disk is noticed then. Layout, little-endian:

    magic 8 | producer u64 | batch u64 | through u64 | tail u64 | head u64 | name length u16 | name
    entries, from byte 4096 on: checksum u32 | size u32 | number u64 | the bytes      a size of all ones: on at the beginning

The checksum (CRC-32C) includes the position, counted over all laps, and everything after the checksum. After a power cut
pages of the file may have different ages: without it an entry of the previous lap could pass for a current one.

The collector knows what the bytes mean. An entry may have several rows: its number is that of the first, and the next
entry's is higher than that of the last. `spool_files` defines the files, this module their contents.

`tail` and `head` only ever rise; their remainders are positions in the ring.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from penstock.usage.spool_files import RingFile

HEADER_BYTES = 4096
LEAST_BYTES = 64 << 10
_MAGIC = b"PSPOOL2\n"
_HEADER = struct.Struct("<8sQQQQQH")
_BATCH = struct.Struct("<QQ")
_PLACE = struct.Struct("<Q")
_ENTRY = struct.Struct("<IIQ")
_MARKED = struct.Struct("<QIQ")
_BATCH_AT, _TAIL_AT, _HEAD_AT = 16, 32, 40
_WRAPPED = 0xFFFF_FFFF
NO_ROOM = -1


class SpoolEntry(NamedTuple):
    """What stands in the ring, and where the next begins."""

    number: int
    end: int
    data: bytes


class Spool:
    """One writer's ring. The process that opens the file of a dead writer reads it to its end and removes it."""

    def __init__(self, file: RingFile) -> None:
        self._file = file
        self._memory = memory = file.memory
        self.producer: int
        self.batch: int
        self.through: int
        self.tail: int
        self.head: int
        self.is_damaged = False
        """Whether `entries` has ended at something that was not written there."""
        _, self.producer, self.batch, self.through, self.tail, self.head, size = _HEADER.unpack_from(memory)
        self.name = bytes(memory[_HEADER.size : _HEADER.size + size]).decode(errors="replace")
        self._capacity = len(memory) - HEADER_BYTES

    @classmethod
    def begin(cls, file: RingFile, name: str, producer: int) -> Spool:
        """A new ring in a new file, of at least `LEAST_BYTES`."""
        text = name.encode()
        _HEADER.pack_into(file.memory, 0, _MAGIC, producer, 0, 0, 0, 0, len(text))
        file.memory[_HEADER.size : _HEADER.size + len(text)] = text
        return cls(file)

    @classmethod
    def adopt(cls, file: RingFile) -> Spool | None:
        """The ring of a dead writer; None if the file contains none, and then it is closed."""
        if not _is_ring(file.memory):
            file.close()
            return None
        return cls(file)

    # -- writing ---------------------------------------------------------------------------------------------

    def append(self, number: int, data: bytes) -> int:
        """Appends an entry; returns the beginning of the next, or `NO_ROOM`."""
        size = _ENTRY.size + len(data)
        head = self.head
        place = head % self._capacity
        left = self._capacity - place
        if left < size:
            if head + left + size - self.tail > self._capacity:
                return NO_ROOM
            if left >= _ENTRY.size:
                _ENTRY.pack_into(
                    self._memory, HEADER_BYTES + place, _checksum(head, _WRAPPED, 0), _WRAPPED, 0
                )
            head, place = head + left, 0
        elif head + size - self.tail > self._capacity:
            return NO_ROOM
        at = HEADER_BYTES + place
        _ENTRY.pack_into(self._memory, at, _checksum(head, len(data), number, data), len(data), number)
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

    def entries(self) -> Iterator[SpoolEntry]:
        """What was not released, in order; ends early where the file is damaged."""
        at = self.tail
        while at < self.head:
            place = at % self._capacity
            left = self._capacity - place
            if left < _ENTRY.size:
                at += left
                continue
            checksum, size, number = _ENTRY.unpack_from(self._memory, HEADER_BYTES + place)
            begin = HEADER_BYTES + place + _ENTRY.size
            length = 0 if size == _WRAPPED else size
            fits = length <= left - _ENTRY.size
            data = bytes(self._memory[begin : begin + length]) if fits else b""
            if not fits or checksum != _checksum(at, size, number, data):
                self.is_damaged = True
                return
            if size == _WRAPPED:
                at += left
                continue
            at += _ENTRY.size + size
            yield SpoolEntry(number, at, data)

    @property
    def is_empty(self) -> bool:
        """Whether everything was released."""
        return self.tail == self.head

    def close(self) -> None:
        """Closes the file, and removes it if it is empty."""
        done = self.is_empty
        self._memory.release()
        if done:
            self._file.remove()
        else:
            self._file.close()

    def give_up(self) -> None:
        """It cannot be read any further: the rest is dropped."""
        self.release(self.head)
        self.close()


def _checksum(place: int, size: int, number: int, data: bytes = b"") -> int:
    checksum: int = crc32c(data, crc32c(_MARKED.pack(place, size, number)))
    return checksum


def _is_ring(memory: memoryview) -> bool:
    """Whether there is a header, and its places can be those of this ring."""
    if len(memory) < LEAST_BYTES:
        return False
    magic: bytes
    tail: int
    head: int
    size: int
    magic, _, _, _, tail, head, size = _HEADER.unpack_from(memory)
    capacity = len(memory) - HEADER_BYTES
    return magic == _MAGIC and tail <= head <= tail + capacity and size <= HEADER_BYTES - _HEADER.size
