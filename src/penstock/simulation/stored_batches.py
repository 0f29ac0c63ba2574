"""Batches on a simulated disk, read without the node: reading changes nothing and triggers no fault."""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.records import Sent, decode_record
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.inode import SECTOR_BYTES
from penstock.storage.copy import segment_name
from penstock.storage.entry import (
    BATCH,
    HEADER_BYTES,
    OFFSET_MASK,
    POSITION_SHIFT,
    RECORD,
    decode_header,
    payload_is_whole,
)
from penstock.storage.journal_file import journal_name


class StoredBatch(NamedTuple):
    """An entry with a batch."""

    sent: Sent
    payload: bytes


class StoredBatches:
    """Reads the batches at positions; each file is read once."""

    def __init__(self, disk: SimulatedDisk, seed: int) -> None:
        self._disk = disk
        self._seed = seed
        self._names = disk.files()
        self._contents: dict[str, bytes] = {}

    def at(self, partition_id: int, position: int) -> StoredBatch | None:
        """The batch at a position; None if there is no complete batch of the partition."""
        number, offset = position >> POSITION_SHIFT, position & OFFSET_MASK
        name = segment_name(partition_id, number)
        if name not in self._names:
            name = journal_name(number)
        if name not in self._names:
            return None
        data = self._contents.get(name)
        if data is None:
            data = self._contents[name] = readable(self._disk, name)
        header = decode_header(data, offset, self._seed)
        if header is None or header.partition != partition_id or header.kind not in (RECORD, BATCH):
            return None
        if not payload_is_whole(header, data, offset):
            return None
        middle = offset + HEADER_BYTES + header.head_size
        record = decode_record(data[offset + HEADER_BYTES : middle])
        if not isinstance(record, Sent):
            return None
        return StoredBatch(record, data[middle : middle + header.payload_size])


def readable(disk: SimulatedDisk, name: str) -> bytes:
    """The bytes of a file, zeros where the device cannot read."""
    inode = disk.inode(name)
    if not inode.unreadable:
        return bytes(inode.content)
    data = bytearray(inode.content)
    for sector in inode.unreadable:
        start = min(sector * SECTOR_BYTES, len(data))
        end = min(start + SECTOR_BYTES, len(data))
        data[start:end] = bytes(end - start)
    return bytes(data)
