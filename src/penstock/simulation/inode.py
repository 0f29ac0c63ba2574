"""The bytes of one simulated file: what a read sees, what would survive a power cut, and the difference."""

from __future__ import annotations

from collections import deque
from random import Random

SECTOR_BYTES = 512
"""The unit that a disk writes whole or not at all."""


class Inode:
    """One file, whatever its name."""

    def __init__(self) -> None:
        self.content = bytearray()
        self._durable = bytearray()
        self._unsynced: list[tuple[int, bytes]] = []
        self.unreadable: set[int] = set()
        """Sectors that the device cannot read until they are written again."""
        self.overwritten: deque[tuple[int, bytes]] | None = None
        """If it is remembered: the bytes before each write, the newest last."""

    def write(self, offset: int, data: bytes) -> None:
        """Seen by reads at once, durable after `sync`."""
        if self.unreadable:
            self.unreadable.difference_update(_sectors(offset, len(data)))
        if self.overwritten is not None:
            self.overwritten.append((offset, bytes(self.content[offset : offset + len(data)])))
        _put(self.content, offset, data)
        self._unsynced.append((offset, data))

    def truncate(self, size: int) -> None:
        """Taken for durable at once: nothing in storage may rest on it being either."""
        del self.content[size:]
        del self._durable[size:]
        self._unsynced = [(offset, data[: size - offset]) for offset, data in self._unsynced if offset < size]
        if size > len(self.content):
            _put(self.content, size, b"")
            _put(self._durable, size, b"")

    def sync(self) -> None:
        """Makes everything written durable."""
        for offset, data in self._unsynced:
            _put(self._durable, offset, data)
        self._unsynced.clear()

    def forget_unsynced(self) -> None:
        """The state after a failed sync: reads still see the bytes, no later sync will write them."""
        self._unsynced.clear()

    def flip(self, offset: int, mask: int) -> None:
        """Changes a stored byte without a trace."""
        self.content[offset] ^= mask
        if offset < len(self._durable):
            self._durable[offset] ^= mask

    def can_read(self, offset: int, size: int) -> bool:
        """Whether the device gives these bytes."""
        return not self.unreadable or self.unreadable.isdisjoint(_sectors(offset, size))

    def before(self, sector: int) -> bytes:
        """A sector's contents before its last write, if they are remembered; else zeros."""
        start, end = sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES
        found = self.content[start:end]
        for offset, old in reversed(self.overwritten or ()):
            low, high = max(start, offset), min(end, offset + len(old))
            if low < high:
                found[low - start : high - start] = old[low - offset : high - offset]
                return bytes(found)
        return bytes(len(found))

    def damage(self, offset: int, data: bytes) -> None:
        """Replaces bytes on the medium without a write."""
        _put(self.content, offset, data)
        if offset < len(self._durable):
            _put(self._durable, offset, data)

    def copy(self) -> Inode:
        """The same file in another world."""
        inode = Inode()
        inode.content = self.content.copy()
        inode._durable = self._durable.copy()
        inode._unsynced = self._unsynced.copy()
        inode.unreadable = self.unreadable.copy()
        return inode

    def crash(self, random: Random, style: str) -> None:
        """Leaves what the disk happened to hold when the power went."""
        if style == "kept":
            self.sync()
        elif style == "mixed" and self._unsynced:
            self._tear(random)
        self._unsynced.clear()
        self.content = self._durable.copy()

    def _tear(self, random: Random) -> None:
        """A sector holds what it held after some number of the writes to it: none, all, or anything between."""
        newest: dict[int, int] = {}
        for number, (offset, data) in enumerate(self._unsynced):
            fate = random.choice(("lost", "kept", "torn"))
            for sector in _sectors(offset, len(data)):
                if fate == "kept" or (fate == "torn" and random.random() < 0.5):
                    newest[sector] = number
        for number, (offset, data) in enumerate(self._unsynced):
            end = offset + len(data)
            for sector in range(offset // SECTOR_BYTES, -(-end // SECTOR_BYTES)):
                if newest.get(sector, -1) >= number:
                    start = max(offset, sector * SECTOR_BYTES)
                    stop = min(end, (sector + 1) * SECTOR_BYTES)
                    _put(self._durable, start, data[start - offset : stop - offset])


def _sectors(offset: int, size: int) -> range:
    return range(offset // SECTOR_BYTES, -(-(offset + size) // SECTOR_BYTES))


def _put(target: bytearray, offset: int, data: bytes) -> None:
    if offset > len(target):
        target.extend(bytes(offset - len(target)))
    target[offset : offset + len(data)] = data
