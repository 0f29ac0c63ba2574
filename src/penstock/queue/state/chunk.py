"""A chunk: the columns of 4,096 neighbouring messages.

A waiting message costs 1 byte of state, 4 of size and its share of 10 bytes a batch for the position. The other columns
are created when they are first needed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

from penstock.queue.state.states import GONE, MOVING_ALONE

CHUNK_BITS = 12
CHUNK_MESSAGES = 1 << CHUNK_BITS
CHUNK_MASK = CHUNK_MESSAGES - 1

FILE_SHIFT = 32
"""A position is file number << 32 | offset."""


class Chunk:
    """The columns, indexed by sequence number & CHUNK_MASK. A piece is the part of a batch that lies in the chunk."""

    __slots__ = (
        "attempts",
        "files",
        "first_received_ms",
        "groups",
        "leases",
        "living",
        "number",
        "positions",
        "sizes",
        "starts",
        "states",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.states = bytearray()
        self.sizes = array("I")
        self.living = 0
        self.starts = array("H")
        self.positions = array("Q")
        self.files: dict[int, int] = {}
        """Living pieces per file."""
        self.attempts: bytearray | None = None
        self.first_received_ms: array[int] | None = None
        self.groups: array[int] | None = None
        self.leases: array[int] | None = None
        """The lease that holds each message that is out; of all others what once was. Derived, so no snapshot has it."""

    def append(self, states: bytes, sizes: array[int], position: int) -> None:
        """Adds the next messages: one piece of one batch."""
        self.starts.append(len(self.states))
        self.positions.append(position)
        file = position >> FILE_SHIFT
        self.files[file] = self.files.get(file, 0) + 1
        self.living += len(states)
        self.states += states
        self.sizes += sizes

    def leave_out(self, count: int) -> None:
        """So many numbers are no message's: they count as gone."""
        self.fill_groups(len(self.states), None, count)
        self.states += bytes(count)
        self.sizes.frombytes(bytes(4 * count))

    def fill_groups(self, start: int, groups: array[int] | None, count: int) -> None:
        """Keeps the group column, if there is one, as long as the others."""
        if groups is None and self.groups is None:
            return
        if self.groups is None:
            self.groups = array("I", bytes(4 * start))
        self.groups.extend(groups if groups is not None else array("I", bytes(4 * count)))

    def make_attempts(self) -> bytearray:
        """The column of receives, made when the first message is received."""
        self.attempts = bytearray(CHUNK_MESSAGES)
        return self.attempts

    def note_lease(self, start: int, stop: int, lease: int) -> None:
        """The messages are out under a lease."""
        if self.leases is None:
            self.leases = array("Q", bytes(8 * CHUNK_MESSAGES))
        if stop - start == 1:
            self.leases[start] = lease
        else:
            self.leases[start:stop] = array("Q", (lease,)) * (stop - start)

    def remember_first_received(self, start: int, stop: int, at_ms: int) -> None:
        """Keeps the time for those of the messages that have none yet."""
        if self.first_received_ms is None:
            self.first_received_ms = array("Q", bytes(8 * CHUNK_MESSAGES))
        column = self.first_received_ms
        for index in range(start, stop):
            if not column[index]:
                column[index] = at_ms

    def mark_gone(self, start: int, stop: int) -> tuple[int, list[int]]:
        """Marks living messages gone; returns their bytes, and the files that lost a piece by it."""
        starts, states = self.starts, self.states
        states[start:stop] = bytes(stop - start)
        self.living -= stop - start
        emptied: list[int] = []
        piece = bisect_right(starts, start) - 1
        low = starts[piece]
        while low < stop:
            following = piece + 1
            high = starts[following] if following < len(starts) else len(states)
            if (start <= low and high <= stop) or states.count(0, low, high) == high - low:
                emptied.append(self._lose_piece(piece))
            piece, low = following, high
        return sum(self.sizes[start:stop]), emptied

    def keep_moving(self) -> list[int]:
        """All other messages are gone; returns the files that lost pieces by it, one for each."""
        before = self.files
        self.states[:] = self.states.translate(MOVING_ALONE)
        self.living = len(self.states) - self.states.count(GONE)
        self.count_files()
        return [file for file, pieces in before.items() for _ in range(pieces - self.files.get(file, 0))]

    def mark_one_gone(self, index: int) -> int | None:
        """Marks one living message gone; returns the file that lost a piece by it, if one did."""
        starts, states = self.starts, self.states
        states[index] = 0
        self.living -= 1
        following = bisect_right(starts, index)
        low = starts[following - 1]
        high = starts[following] if following < len(starts) else len(states)
        if states.count(0, low, high) == high - low:
            return self._lose_piece(following - 1)
        return None

    def _lose_piece(self, piece: int) -> int:
        file = self.positions[piece] >> FILE_SHIFT
        if self.files[file] == 1:
            del self.files[file]
        else:
            self.files[file] -= 1
        return file

    def count_files(self) -> None:
        """Counts the living pieces of each file again."""
        self.files = {}
        for _, position in self.living_pieces(None):
            file = position >> FILE_SHIFT
            self.files[file] = self.files.get(file, 0) + 1

    def living_pieces(self, files: set[int] | None) -> list[tuple[int, int]]:
        """(piece, position) of every living piece in one of the files (None: in any)."""
        found = []
        starts, states = self.starts, self.states
        for piece, position in enumerate(self.positions):
            if files is None or position >> FILE_SHIFT in files:
                low = starts[piece]
                high = starts[piece + 1] if piece + 1 < len(starts) else len(states)
                if states.count(0, low, high) != high - low:
                    found.append((piece, position))
        return found

    def is_living(self, piece: int) -> bool:
        """Whether something of the piece lives."""
        low = self.starts[piece]
        high = self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.states)
        return self.states.count(0, low, high) != high - low

    def relocate(self, piece: int, new: int) -> None:
        """Changes the position of a living piece."""
        self._lose_piece(piece)
        file = new >> FILE_SHIFT
        self.files[file] = self.files.get(file, 0) + 1
        self.positions[piece] = new

    def piece_of(self, index: int) -> tuple[int, int]:
        """(position, end) of the piece that holds the message: `end` is where the next piece starts."""
        piece = bisect_right(self.starts, index) - 1
        end = self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.states)
        return self.positions[piece], end

    def memory_bytes(self) -> int:
        """The memory that the columns use."""
        size = 600 + len(self.states) + 4 * len(self.sizes) + 2 * len(self.starts) + 8 * len(self.positions)
        if self.attempts is not None:
            size += len(self.attempts)
        if self.first_received_ms is not None:
            size += 8 * len(self.first_received_ms)
        if self.groups is not None:
            size += 4 * len(self.groups)
        if self.leases is not None:
            size += 8 * len(self.leases)
        return size
