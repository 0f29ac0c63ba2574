"""Frames: messages in a stream of bytes, with every length checked before it is used.

    size u32 | checksum u32 | request id u32 | head size u32 | head | body

`size` counts everything after itself; the checksum (CRC-32C) covers everything after itself. A client chooses the request
id; every answer repeats it, and it must not be in use.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from crc32c import crc32c

from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError

_PREFIX = struct.Struct("<IIII")
_BEFORE = struct.Struct("<II")
_AFTER_CHECKSUM = struct.Struct("<II")
_unpack_prefix = _PREFIX.unpack_from
PREFIX_BYTES = _PREFIX.size
_SMALLEST = PREFIX_BYTES - 4


class Frame(NamedTuple):
    """One message from the wire."""

    request_id: int
    head: memoryview
    body: memoryview
    request: Any = None
    """The head as decoded by `wire.messages.request_of`, if that was done before in this process."""


def encode_frame(request_id: int, head: bytes, body: Sequence[Buffer] = ()) -> list[Buffer]:
    """The frame in pieces, for `writelines`; the body's buffers are not copied."""
    start = _AFTER_CHECKSUM.pack(request_id, len(head)) + head
    checksum = crc32c(start)
    size = 4 + len(start)
    for piece in body:
        checksum = crc32c(piece, checksum)
        size += len(piece)
    return [_BEFORE.pack(size, checksum) + start, *body]


def frames_in(buffers: Sequence[Buffer]) -> Iterator[tuple[int, memoryview, int]]:
    """Of whole frames that are about to be written: the request id, the head, and how many bytes head and body have."""
    index, count = 0, len(buffers)
    while index < count:
        piece = buffers[index]
        size, _, request_id, head_bytes = _unpack_prefix(piece)
        left = size + 4
        while left > 0:  # the body may consist of several pieces
            left -= len(buffers[index])
            index += 1
        yield request_id, memoryview(piece)[PREFIX_BYTES : PREFIX_BYTES + head_bytes], size + 4 - PREFIX_BYTES


def whole_frames(buffers: Sequence[Buffer]) -> Iterator[tuple[int, memoryview, Sequence[Buffer]]]:
    """The same frames one by one: the request id, the head, and the buffers that the frame is made of."""
    index = 0
    while index < len(buffers):
        begin, piece = index, buffers[index]
        size, _, request_id, head_bytes = _unpack_prefix(piece)
        left = size + 4
        while left > 0:
            left -= len(buffers[index])
            index += 1
        yield request_id, memoryview(piece)[PREFIX_BYTES : PREFIX_BYTES + head_bytes], buffers[begin:index]


class FrameReader:
    """Collects bytes and returns complete frames; raises if the bytes cannot be the protocol."""

    def __init__(self, frame_bytes: int = limits.FRAME_BYTES) -> None:
        self._frame_bytes = frame_bytes
        self._pieces: list[bytes] = []
        self._have = 0
        self._need = 0
        """The size of the frame that has begun, once it is known."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return self._have

    def allow(self, frame_bytes: int) -> None:
        """From now on no frame may be longer than this."""
        self._frame_bytes = frame_bytes

    def feed(self, data: bytes) -> Sequence[Frame]:
        """Takes what arrived and returns the frames that are complete."""
        frames: list[Frame] = []
        start = 0
        if self._have:
            start = self._need - self._have
            self._have += len(data)
            if self._have < self._need:
                self._pieces.append(data)
                return frames
            if self._need:  # only the frame that has begun is put together: copying all of `data` costs more
                self._take(b"".join([*self._pieces, memoryview(data)[:start]]), 0, frames)
            else:
                data, start = b"".join([*self._pieces, data]), 0
            self._pieces.clear()
        end = self._take(data, start, frames)
        self._have = len(data) - end
        if self._have:
            self._pieces.append(data[end:])
        return frames

    def _take(self, data: bytes, offset: int, frames: list[Frame]) -> int:
        """Adds the whole frames from `offset` on; returns where the next one begins."""
        view = memoryview(data)
        end = len(data)
        while end - offset >= PREFIX_BYTES:
            size, checksum, request_id, head_bytes = _unpack_prefix(view, offset)
            stop = offset + 4 + size
            if not _SMALLEST <= size <= self._frame_bytes:
                raise _bad_size(size, self._frame_bytes)
            if stop > end:
                self._need = 4 + size
                return offset
            body = offset + PREFIX_BYTES + head_bytes
            if crc32c(view[offset + 8 : stop]) != checksum:
                raise _bad("the checksum of a frame does not match its bytes")
            if head_bytes > limits.FRAME_HEAD_BYTES or body > stop:
                raise _bad(f"a head of {head_bytes} bytes does not fit its frame")
            frames.append(Frame(request_id, view[offset + PREFIX_BYTES : body], view[body:stop]))
            offset = stop
        self._need = 0
        if end - offset >= 4:  # bytes that are no frame are refused at the fourth
            size = int.from_bytes(view[offset : offset + 4], "little")
            if not _SMALLEST <= size <= self._frame_bytes:
                raise _bad_size(size, self._frame_bytes)
        return offset


def _bad_size(size: int, most: int) -> PenstockError:
    return _bad(f"a frame of {size} bytes; it must have {_SMALLEST} to {most}")


def _bad(message: str) -> PenstockError:
    return PenstockError(ErrorCode.BAD_FRAME, f"not Penstock's protocol: {message}")


LONE_TURNS = 8
"""After so many turns with one frame each, the next frame is taken to be a lone one too."""


class FrameGathering:
    """Which frames of one connection are written at once, and which together when the turn of the event loop ends.

    Frames of one turn are written together: a burst then costs one system call, and the server finds it whole and
    writes it to disk once. While turns have one frame only, it is written at once, for latency; while some have more,
    when the turn ends. (uvloop gathers writes too, yet 16 batches of 10 kB a turn cost 62 µs each that way, and 38 µs
    this way.) A lone frame between two bursts, say the one that deletes all that was received, must not tear the next
    one apart: the server would sync it twice.
    """

    __slots__ = ("_frames", "_gathered", "_gathers", "_lone_turns")

    def __init__(self, *, gathers: bool = False) -> None:
        """`gathers`: a frame waits for the end of the turn even where turns have one frame only."""
        self._gathers = gathers
        self._gathered: list[Buffer] = []
        self._frames = 0
        """So many in this turn."""
        self._lone_turns = LONE_TURNS
        """How many turns with one frame were the last; few: there are bursts."""

    @property
    def is_between_turns(self) -> bool:
        """Whether the next frame is the first of a turn."""
        return not self._frames

    def add(self, frame: list[Buffer]) -> bool:
        """Takes a frame; True: it is not kept, and to be written now."""
        self._frames += 1
        if self._frames == 1 and self._lone_turns >= LONE_TURNS and not self._gathers:
            return True
        self._gathered += frame
        return False

    def end_turn(self) -> list[Buffer]:
        """The turn ends: what is to be written now."""
        self._lone_turns = 0 if self._frames > 1 else self._lone_turns + 1
        self._frames = 0
        gathered, self._gathered = self._gathered, []
        return gathered

    def clear(self) -> None:
        """The connection is gone."""
        self._gathered.clear()
