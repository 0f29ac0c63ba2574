"""The answer to a producer's batch, and the duplicates of a batch packed into bytes."""

from __future__ import annotations

from array import array

import msgspec


class StoredBatch(msgspec.Struct, frozen=True):
    """What is needed to answer a producer's batch again."""

    first: int
    count: int
    sent_ms: int
    duplicates: list[tuple[int, int]]
    stamp_us: int = 0


def packed(duplicates: list[tuple[int, int]]) -> bytes:
    return array("Q", [number for pair in duplicates for number in pair]).tobytes()


def unpacked(pack: bytes) -> list[tuple[int, int]]:
    numbers = array("Q", pack)
    return list(zip(numbers[::2], numbers[1::2], strict=True))
