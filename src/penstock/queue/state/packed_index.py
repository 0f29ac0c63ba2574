"""A map from numbers to numbers, packed: 12 bytes an entry and some space, where a dictionary takes 120.

Entries are sorted in blocks. A lookup is two bisections, and adding or removing an entry moves a few kilobytes at most.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

BLOCK_ENTRIES = 512


class PackedIndex:
    """Keys of 64 bits, each with a value of 32 bits that is not 0."""

    __slots__ = ("_count", "_keys", "_lows", "_values")

    def __init__(self) -> None:
        self._lows: list[int] = [0]
        """The lowest key that belongs into each block."""
        self._keys: list[array[int]] = [array("Q")]
        self._values: list[array[int]] = [array("I")]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, key: int) -> int:
        """The value of a key; 0 where it is not there."""
        block = bisect_right(self._lows, key) - 1
        keys = self._keys[block]
        place = bisect_left(keys, key)
        return self._values[block][place] if place < len(keys) and keys[place] == key else 0

    def put(self, key: int, value: int) -> None:
        """Enters a key that is not there."""
        block = bisect_right(self._lows, key) - 1
        keys, values = self._keys[block], self._values[block]
        place = bisect_left(keys, key)
        keys.insert(place, key)
        values.insert(place, value)
        self._count += 1
        if len(keys) > BLOCK_ENTRIES:
            half = len(keys) // 2
            self._lows.insert(block + 1, keys[half])
            self._keys.insert(block + 1, keys[half:])
            self._values.insert(block + 1, values[half:])
            self._keys[block], self._values[block] = keys[:half], values[:half]

    def remove(self, key: int) -> None:
        """Takes out a key that is there."""
        block = bisect_right(self._lows, key) - 1
        keys = self._keys[block]
        place = bisect_left(keys, key)
        del keys[place], self._values[block][place]
        self._count -= 1
        if not keys and len(self._lows) > 1:
            del self._keys[block], self._values[block]
            del self._lows[block if block else 1]  # the first block begins at 0

    # -- the snapshot ----------------------------------------------------------------------------------------

    def columns(self) -> list[array[int]]:
        """For the snapshot: the lowest key and the length of each block, then all keys and all values."""
        keys, values = array("Q"), array("I")
        for block_keys, block_values in zip(self._keys, self._values, strict=True):
            keys += block_keys
            values += block_values
        return [array("Q", self._lows), array("I", map(len, self._keys)), keys, values]

    def load(self, columns: list[array[int]]) -> None:
        """From the snapshot."""
        lows, sizes, keys, values = columns
        if len(lows) != len(sizes) or not len(keys) == len(values) == sum(sizes) or not lows or lows[0]:
            raise ValueError("an index has columns that do not fit together")
        self._lows, self._keys, self._values = list(lows), [], []
        start = 0
        for size in sizes:
            self._keys.append(keys[start : start + size])
            self._values.append(values[start : start + size])
            start += size
        self._count = start
