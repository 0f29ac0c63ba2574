"""The flush: encodes, writes and syncs everything appended since the last one, outside the owner's thread.

Checksums and headers are made here and not in `append`, so that the thread that serves requests does not pay for them. A
flush owns its entries and never uses the journal while it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.batch import Buffer
from penstock.storage.entry import ALIGNMENT, HEADER_BYTES, PADDING, checksum, encode_header
from penstock.storage.job import Job
from penstock.storage.journal_file import JournalFile

PAGE_BYTES = 4096
JOIN_BELOW_BYTES = 4096
"""Smaller buffers are copied together: below this a copy costs less than one more buffer in a vectored write."""

_ZEROS = bytes(PAGE_BYTES)


Appended = tuple[int, int, int, bytes, Sequence[Buffer], int]
"""An entry that waits to be written: kind, partition, index, head, payload, payload size."""


class Piece:
    """The part of a flush that goes to one file, in one write from `start` on."""

    __slots__ = ("entries", "file", "start")

    def __init__(self, file: JournalFile, start: int) -> None:
        self.file = file
        self.start = start
        self.entries: list[Appended] = []


class Flush(Job):
    """A running group commit."""

    def __init__(self, pieces: Sequence[Piece], end: int, seed: int, *, sync: bool) -> None:
        self._pieces = pieces
        self.end = end
        """The position after the last entry: everything before it is committed when this flush has ended."""
        self._seed = seed
        self._sync = sync
        self.written_bytes = 0
        self.ends: dict[int, int] = {}
        """How far each file it wrote to is good now."""

    def _work(self) -> None:
        last = self._pieces[-1]
        for piece in self._pieces:
            buffers, size = self._encode(piece)
            if size:
                file = piece.file.file
                file.write_at(piece.start, buffers)
                # A file is on disk before the next one is written, in either durability: recovery rests on it.
                if self._sync or piece is not last:
                    file.sync()
                self.written_bytes += size
                self.ends[piece.file.number] = piece.start + size

    def _encode(self, piece: Piece) -> tuple[list[Buffer], int]:
        """The buffers to write and their size, without the zeros up to the end of the page.

        The zeros are there because the kernel must read a page from disk before it can change only a part of
        it, unless it has the page in memory, and a recycled file's next page often is not.
        """
        number, seed = piece.file.number, self._seed
        # One flush at a time: earlier flushes synced everything before this piece.
        synced_through = piece.start if self._sync else 0
        buffers: list[Buffer] = []
        small: list[Buffer] = []
        offset = piece.start
        for kind, partition, index, head, payload, payload_size in piece.entries:
            head_size = len(head)
            small.append(
                encode_header(
                    seed,
                    number,
                    synced_through,
                    kind,
                    partition,
                    index,
                    head_size,
                    payload_size,
                    checksum(head, payload),
                )
            )
            small.append(head)
            for buffer in payload:
                if len(buffer) < JOIN_BELOW_BYTES:
                    small.append(buffer)
                else:
                    buffers.append(b"".join(small))
                    buffers.append(buffer)
                    small = []
            size = HEADER_BYTES + head_size + payload_size
            small.append(PADDING[-size % ALIGNMENT])
            offset += size + -size % ALIGNMENT
        zeros = min(-offset % PAGE_BYTES, piece.file.capacity - offset)
        small.append(_ZEROS[:zeros])
        buffers.append(b"".join(small))
        return buffers, offset - piece.start
