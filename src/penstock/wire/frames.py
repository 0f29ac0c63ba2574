"""Frames: how messages are cut out of a stream of bytes, with every length bounded before it is believed.

    size u32 | checksum u32 | request id u32 | head size u32 | head | body

`size` counts everything after itself; the checksum (CRC-32C) covers everything after itself. A request id is
chosen by the client, echoed in every answer to it, and must not be in use.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crc32c import crc32c

from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError

_PREFIX = struct.Struct("<IIII")
_AFTER_CHECKSUM = struct.Struct("<II")
PREFIX_BYTES = _PREFIX.size
_SMALLEST = PREFIX_BYTES - 4


class Frame(NamedTuple):
    """One message as it came off the wire."""

    request_id: int
    head: memoryview
    body: memoryview


def encode_frame(request_id: int, head: bytes, body: Sequence[Buffer] = ()) -> list[Buffer]:
    """The frame in pieces, for `writelines`; the body's buffers are not copied."""
    start = _AFTER_CHECKSUM.pack(request_id, len(head)) + head
    checksum = crc32c(start)
    size = 4 + len(start)
    for piece in body:
        checksum = crc32c(piece, checksum)
        size += len(piece)
    return [_PREFIX.pack(size, checksum, request_id, len(head)) + head, *body]


class FrameReader:
    """Collects bytes and gives back whole frames; raises once the bytes cannot be the protocol."""

    def __init__(self, frame_bytes: int = limits.FRAME_BYTES) -> None:
        self._frame_bytes = frame_bytes
        self._pieces: list[bytes] = []
        self._have = 0
        self._need = 4

    @property
    def buffered_bytes(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return self._have

    def feed(self, data: bytes) -> Iterable[Frame]:
        """Takes what arrived and returns the frames that are complete."""
        self._pieces.append(data)
        self._have += len(data)
        if self._have < self._need:
            return ()
        joined = data if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        view = memoryview(joined)
        frames: list[Frame] = []
        offset, end = 0, len(joined)
        while end - offset >= 4:
            size = int.from_bytes(view[offset : offset + 4], "little")
            if not _SMALLEST <= size <= self._frame_bytes:
                raise _bad(f"a frame of {size} bytes; it must have {_SMALLEST} to {self._frame_bytes}")
            if end - offset < 4 + size:
                self._need = 4 + size
                break
            frames.append(_frame(view[offset : offset + 4 + size]))
            offset += 4 + size
        else:
            self._need = 4
        self._have = end - offset
        if self._have:
            self._pieces.append(joined[offset:])
        return frames


def _frame(view: memoryview) -> Frame:
    _, checksum, request_id, head_bytes = _PREFIX.unpack_from(view)
    if crc32c(view[8:]) != checksum:
        raise _bad("the checksum of a frame does not match its bytes")
    if head_bytes > limits.FRAME_HEAD_BYTES or PREFIX_BYTES + head_bytes > len(view):
        raise _bad(f"a head of {head_bytes} bytes does not fit its frame")
    return Frame(
        request_id, view[PREFIX_BYTES : PREFIX_BYTES + head_bytes], view[PREFIX_BYTES + head_bytes :]
    )


def _bad(message: str) -> PenstockError:
    return PenstockError(ErrorCode.BAD_FRAME, f"not Penstock's protocol: {message}")
