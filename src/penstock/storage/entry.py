"""The entry: the layout of one record, byte for byte the same in a journal file and in a segment.

    payload_size u32 | file_number u32 | synced_through u32 | head_size u24, kind u8
    partition u64 | index u64 | payload_crc u32 | header_crc u32
    head, payload, zeros up to a multiple of 8

`file_number` is the journal file to which the entry was first written, so that bytes from an earlier use of a recycled
file are never taken for current ones. `synced_through` is the offset in that file below which everything was on disk
before this entry was written: a later valid entry proves that an earlier bad one is damage, not a torn write. Checksums
are CRC-32C. The checksum of the header starts from a seed that only this directory knows, so that no message body can look
like an entry.

Nothing here touches a file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import msgspec
from crc32c import crc32c

from penstock.model.batch import Buffer

RECORD, END, CLOSED, CUT, IMAGE, BATCH = range(6)
"""Kinds: a record; the end of a journal file (`index` = the number of the next file); a clean stop. On replicas also: a cut,
after which records of the partition after `index` no longer count; a part of its state as of `index`; a batch that belongs
to it.
"""

HEADER_BYTES = 40
ALIGNMENT = 8
HEAD_BYTES_MAX = 2**24 - 1
_HEAD_SIZE_MASK = 2**24 - 1
PADDING = tuple(bytes(count) for count in range(ALIGNMENT))

_CHECKED = struct.Struct("<IIIIQQI")
_CHECKSUM = struct.Struct("<I")
_HEADER = struct.Struct("<IIIIQQII")
_PAIR = struct.Struct("<QQ")

POSITION_SHIFT = 32
OFFSET_MASK = 2**POSITION_SHIFT - 1


def position_of(file_number: int, offset: int) -> int:
    """The position of an entry as one number, which rises with time within the journal."""
    return file_number << POSITION_SHIFT | offset


class Header(msgspec.Struct, frozen=True, gc=False):
    """A header with a valid checksum."""

    payload_size: int
    file_number: int
    synced_through: int
    head_size: int
    kind: int
    partition: int
    index: int
    payload_crc: int
    size: int
    """Bytes of the whole entry, padding included."""


def entry_bytes(head_size: int, payload_size: int) -> int:
    """Bytes an entry takes, padding included."""
    return (HEADER_BYTES + head_size + payload_size + ALIGNMENT - 1) & -ALIGNMENT


def checksum(head: Buffer, payload: Iterable[Buffer]) -> int:
    """CRC-32C over the head and all payload buffers, without joining them."""
    value = crc32c(head)
    for buffer in payload:
        value = crc32c(buffer, value)
    return value


def encode_header(
    seed: int,
    file_number: int,
    synced_through: int,
    kind: int,
    partition: int,
    index: int,
    head_size: int,
    payload_size: int,
    payload_crc: int,
) -> bytes:
    """The 40 bytes in front of an entry."""
    checked = _CHECKED.pack(
        payload_size, file_number, synced_through, head_size | kind << 24, partition, index, payload_crc
    )
    return checked + _CHECKSUM.pack(crc32c(checked, seed))


def decode_header(data: Buffer, offset: int, seed: int) -> Header | None:
    """The header at `offset`, or None where there is none (or a damaged one)."""
    if offset + HEADER_BYTES > len(data):
        return None
    size, file_number, synced, packed, partition, index, payload_crc, header_crc = _HEADER.unpack_from(
        data, offset
    )
    if crc32c(data[offset : offset + HEADER_BYTES - 4], seed) != header_crc:
        return None
    head_size = packed & _HEAD_SIZE_MASK
    whole = (HEADER_BYTES + head_size + size + ALIGNMENT - 1) & -ALIGNMENT
    return Header(size, file_number, synced, head_size, packed >> 24, partition, index, payload_crc, whole)


def payload_is_whole(header: Header, data: Buffer, offset: int) -> bool:
    """Whether the head and payload behind the header at `offset` are what was written."""
    start = offset + HEADER_BYTES
    end = start + header.head_size + header.payload_size
    return end <= len(data) and crc32c(memoryview(data)[start:end]) == header.payload_crc


def encode_part(part: int, parts: int) -> bytes:
    """The head of IMAGE: which part it is, counted from 0, and of how many."""
    return _PAIR.pack(part, parts)


def decode_part(head: Buffer) -> tuple[int, int]:
    """Decodes the result of `encode_part`."""
    part, parts = _PAIR.unpack(head)
    return part, parts


def encode_table(indexes: Iterable[tuple[int, int]]) -> bytes:
    """The payload of END and CLOSED: the last index of every partition that the file holds a record of."""
    return b"".join(_PAIR.pack(partition, index) for partition, index in indexes)


def decode_table(payload: Buffer) -> list[tuple[int, int]]:
    """Decodes the result of `encode_table`."""
    return list(_PAIR.iter_unpack(payload))
