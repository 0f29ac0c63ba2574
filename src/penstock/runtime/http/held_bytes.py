"""Bytes of a connection that wait, in order, until there is room for their requests."""

from __future__ import annotations

from collections import deque


class HeldBytes:
    """A queue of pieces that knows its size."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self._pieces: deque[bytes | memoryview] = deque()
        self.size = 0

    def __bool__(self) -> bool:
        return self.size > 0

    def add(self, piece: bytes | memoryview) -> None:
        """Waits after all others."""
        self._pieces.append(piece)
        self.size += len(piece)

    def put_back(self, piece: bytes | memoryview) -> None:
        """Waits before all others."""
        self._pieces.appendleft(piece)
        self.size += len(piece)

    def take(self) -> bytes | memoryview:
        """The piece that waited longest."""
        piece = self._pieces.popleft()
        self.size -= len(piece)
        return piece

    def clear(self) -> None:
        """Forgets everything."""
        self._pieces.clear()
        self.size = 0
