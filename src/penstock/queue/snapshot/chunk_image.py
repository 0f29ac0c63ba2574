"""Encodes a chunk as a page of a snapshot, and decodes it.

A column with one value throughout is written as that value, so a long backlog of equal messages costs a few bytes for each
chunk.
"""

from __future__ import annotations

from array import array

from penstock.queue.snapshot.pages import Column, Messages
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS, CHUNK_MESSAGES, Chunk

ELSEWHERE = 1 << 63
"""Set in the position of a batch that this node does not have yet."""


def messages_of(chunk: Chunk, many_attempts: dict[int, int]) -> Messages:
    """The page of a chunk."""
    many: list[tuple[int, int]] = []
    if many_attempts and chunk.attempts is not None and states.MANY in chunk.attempts:
        base = chunk.number << CHUNK_BITS
        many = [
            (place, many_attempts[base + place])
            for place, receives in enumerate(chunk.attempts)
            if receives == states.MANY and base + place in many_attempts
        ]
    return Messages(
        number=chunk.number,
        states=_column(chunk.states, 1),
        sizes=_column(chunk.sizes.tobytes(), 4),
        starts=chunk.starts.tobytes(),
        positions=chunk.positions.tobytes(),
        attempts=_column(chunk.attempts, 1) if chunk.attempts is not None else None,
        first_received_ms=_column(chunk.first_received_ms.tobytes(), 8) if chunk.first_received_ms else None,
        groups=_column(chunk.groups.tobytes(), 4) if chunk.groups is not None else None,
        many_attempts=many,
    )


def chunk_of(page: Messages) -> Chunk:
    """The chunk of a page; raises `ValueError` where it is none."""
    chunk = Chunk(page.number)
    chunk.states = bytearray(_bytes(page.states))
    chunk.sizes = array("I", _bytes(page.sizes))
    chunk.starts = array("H", page.starts)
    chunk.positions = array("Q", page.positions)
    if page.attempts is not None:
        chunk.attempts = bytearray(_bytes(page.attempts))
    if page.first_received_ms is not None:
        chunk.first_received_ms = array("Q", _bytes(page.first_received_ms))
    if page.groups is not None:
        chunk.groups = array("I", _bytes(page.groups))
    _check(chunk)
    chunk.living = len(chunk.states) - chunk.states.count(0)
    chunk.count_files()
    return chunk


def marked(positions: bytes) -> bytes:
    """Positions of another node's."""
    return array("Q", [position | ELSEWHERE for position in array("Q", positions)]).tobytes()


def _check(chunk: Chunk) -> None:
    """A snapshot is checksummed, so this is about programs that disagree, not about disks."""
    length, starts = len(chunk.states), list(chunk.starts)
    if (
        not 0 < length <= CHUNK_MESSAGES
        or len(chunk.sizes) != length
        or len(chunk.positions) != len(starts)
        or (chunk.groups is not None and len(chunk.groups) != length)
        or any(
            column is not None and len(column) != CHUNK_MESSAGES
            for column in (chunk.attempts, chunk.first_received_ms)
        )
    ):
        raise ValueError(f"chunk {chunk.number} has columns of different lengths")
    if starts != sorted(set(starts)) or not starts or starts[-1] >= length or any(chunk.states[: starts[0]]):
        raise ValueError(f"chunk {chunk.number} has batches that do not follow each other")
    if chunk.groups is None and chunk.states.translate(None, states.WITHOUT_GROUP):
        raise ValueError(f"chunk {chunk.number} has messages with a group, and no groups")
    if chunk.states.translate(None, states.KNOWN):
        raise ValueError(f"chunk {chunk.number} has messages in states that do not exist")


def _column(data: bytes | bytearray, width: int) -> Column:
    value = bytes(data[:width])
    if data == value * (len(data) // width):
        return len(data) // width, value
    return -1, bytes(data)


def _bytes(column: Column) -> bytes:
    length, value = column
    return value if length < 0 else value * length
