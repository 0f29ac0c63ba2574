"""The batch: messages as columns and one block of bytes, on the wire and on disk alike.

A producer builds it once; the server checks it, appends it verbatim, and delivers slices of it. No code makes an object
for each message unless a person looks at one. Layout, little-endian:

    version u8 | columns u8 | reserved u16 | count u32 | body bytes u32
    sizes        u32 × count                          the body size of each message
    priorities   u8  × count                          if PRIORITIES
    delays       u64 × count, UNSET = queue's         if DELAYS          milliseconds
    ttls         u64 × count, UNSET = queue's         if TTLS            milliseconds
    groups       u8 length × count, then the bytes    if GROUPS          length 0 = none
    dedup. ids   u8 length × count, then the bytes    if DEDUPLICATION   length 0 = none
    attributes   u32 size × count, then the bytes     if ATTRIBUTES      msgpack maps, size 0 = none
    stamps       u64 × count                          if STAMPS          the producer's times, microseconds
    bodies       the bytes of all bodies, in order
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError

if sys.byteorder != "little":  # columns are read in place, so the host must agree with the layout
    raise ImportError("Penstock's columns are little-endian; this machine is not")

Buffer = bytes | bytearray | memoryview
if TYPE_CHECKING:
    Layout = tuple[array[int], list[tuple[int, int, array[int] | None]]]
    """Where each body begins and the last ends; for each column: offset, width, and where each message's bytes begin."""

VERSION = 1
PRIORITIES, DELAYS, TTLS, GROUPS, DEDUPLICATION, ATTRIBUTES, STAMPS = 1, 2, 4, 8, 16, 32, 64
ALL_COLUMNS = 127
UNSET = 2**64 - 1

_WIDTHS = {PRIORITIES: 1, DELAYS: 8, TTLS: 8, GROUPS: 1, DEDUPLICATION: 1, ATTRIBUTES: 4, STAMPS: 8}
_WITH_BYTES = frozenset({GROUPS, DEDUPLICATION, ATTRIBUTES})
_COPIED_BYTES = 1024
"""Slices with smaller bodies are copied into one buffer: cheaper than handling several."""
_HEADER = struct.Struct("<BBHII")
_ONE = struct.Struct("<BBHIII")
"""The header and the sizes of a batch of one message."""
HEADER_BYTES = _HEADER.size


def _refuse(message: str) -> PenstockError:
    return PenstockError(ErrorCode.BAD_REQUEST, f"bad batch: {message}")


class Batch:
    """A checked view of encoded messages; holds the bytes, copies nothing."""

    __slots__ = ("_layout", "body_bytes", "body_offset", "columns", "count", "data", "offsets", "sizes")

    def __init__(self, data: Buffer) -> None:
        view = memoryview(data)
        total = len(view)
        if total < HEADER_BYTES:
            raise _refuse(f"{total} bytes are too short for a header")
        version: int
        columns: int
        count: int
        body_bytes: int
        version, columns, _, count, body_bytes = _HEADER.unpack_from(view)
        if version != VERSION:
            raise _refuse(f"version {version} is not {VERSION}")
        if columns & ~ALL_COLUMNS:
            raise _refuse(f"unknown columns {columns:#x}")
        if not 1 <= count <= limits.BATCH_MESSAGES:
            raise _refuse(f"{count} messages; a batch has 1 to {limits.BATCH_MESSAGES}")
        offset = HEADER_BYTES + 4 * count
        if offset > total:
            raise _refuse("it ends inside its sizes")
        self.data = view
        self.columns = columns
        self.count = count
        self.sizes = array("I")  # a copy: summing an array takes 0.6 of the time of a cast view
        self.sizes.frombytes(view[HEADER_BYTES:offset])
        self.offsets: dict[int, tuple[int, int]] = {}
        self._layout: Layout | None = None
        if columns:
            offset = self._find_columns(offset, total)
        self.body_offset = offset
        self.body_bytes = body_bytes
        if offset + body_bytes != total or sum(self.sizes) != body_bytes:
            raise _refuse("its sizes do not add up to its length")

    def _find_columns(self, offset: int, total: int) -> int:
        """Where each optional column starts, and where its variable part starts, if it has one."""
        for column, width in _WIDTHS.items():
            if not self.columns & column:
                continue
            block = offset + width * self.count
            if block > total:
                raise _refuse("it ends inside a column")
            self.offsets[column] = (offset, block)
            if column in (GROUPS, DEDUPLICATION):
                offset = block + sum(self.data[offset:block])
            elif column == ATTRIBUTES:
                offset = block + sum(self.data[offset:block].cast("I"))
            else:
                offset = block
            if offset > total:
                raise _refuse("it ends inside a column")
        return offset

    def check(self) -> None:
        """Raises unless every value is one a producer may send (structure is checked on construction)."""
        if self.columns & PRIORITIES and max(self.priorities()) >= limits.PRIORITIES:
            raise _refuse(f"a priority is over {limits.PRIORITIES - 1}")
        for column in (DELAYS, TTLS):
            for value in self.integers(column) or ():
                if value != UNSET and value > limits.RETENTION_MS_MAX:
                    raise _refuse(f"a delay or time to live is over {limits.RETENTION_MS_MAX} ms")
        for column, most in ((GROUPS, limits.GROUP_BYTES), (DEDUPLICATION, limits.DEDUPLICATION_ID_BYTES)):
            if self.columns & column:
                offset, block = self.offsets[column]
                if max(self.data[offset:block]) > most:
                    raise _refuse(f"a group or deduplication id is over {most} bytes")
        if self.columns & ATTRIBUTES and max(self._attribute_sizes()) > limits.ATTRIBUTES_BYTES:
            raise _refuse(f"the attributes of a message are over {limits.ATTRIBUTES_BYTES} bytes")

    # -- columns ---------------------------------------------------------------------------------------------

    def message_sizes(self) -> array[int]:
        """Bytes of each message: body and attributes."""
        if not self.columns & ATTRIBUTES:
            return self.sizes
        return array("I", map(add, self.sizes, self._attribute_sizes()))

    def message_bytes(self) -> int:
        """Bytes of all messages: bodies and attributes."""
        if not self.columns & ATTRIBUTES:
            return self.body_bytes
        return self.body_bytes + sum(self._attribute_sizes())

    def priorities(self) -> memoryview:
        """One byte a message; empty where the batch has no such column."""
        offset, block = self.offsets.get(PRIORITIES, (0, 0))
        return self.data[offset:block]

    def integers(self, column: int) -> memoryview | None:
        """The DELAYS, TTLS or STAMPS column."""
        if not self.columns & column:
            return None
        offset, block = self.offsets[column]
        return self.data[offset:block].cast("Q")

    def names(self, column: int) -> list[bytes] | None:
        """The GROUPS or DEDUPLICATION column, as one byte string a message (empty = none)."""
        if not self.columns & column:
            return None
        offset, block = self.offsets[column]
        lengths = bytes(self.data[offset:block])
        data = bytes(self.data[block : block + sum(lengths)])
        names, start = [], 0
        for length in lengths:
            names.append(data[start : start + length])
            start += length
        return names

    def attributes(self, index: int) -> bytes:
        """The encoded attributes of one message; empty = none."""
        if not self.columns & ATTRIBUTES:
            return b""
        _, columns = self._layout or self._lay_out()
        offset, _ = self.offsets[ATTRIBUTES]
        starts = next(starts for column, _, starts in columns if column == offset)
        return bytes(self.data[starts[index] : starts[index + 1]]) if starts is not None else b""

    def body(self, index: int) -> memoryview:
        """The body of one message."""
        starts, _ = self._layout or self._lay_out()
        return self.data[starts[index] : starts[index + 1]]

    def bodies(self) -> list[bytes]:
        """All bodies, copied out."""
        block = bytes(self.data[self.body_offset :])
        bodies, start = [], 0
        for size in self.sizes:
            bodies.append(block[start : start + size])
            start += size
        return bodies

    def _attribute_sizes(self) -> memoryview:
        offset, block = self.offsets[ATTRIBUTES]
        return self.data[offset:block].cast("I")

    # -- slices ----------------------------------------------------------------------------------------------

    def slice(self, start: int, stop: int) -> list[Buffer]:
        """Messages [start, stop) as a separate encoded batch, in buffers that may alias this one."""
        if start == 0 and stop == self.count:
            return [self.data]
        data = self.data
        bodies, columns = self._layout or self._lay_out()
        first, end = bodies[start], bodies[stop]
        if stop == start + 1:  # the usual case of FIFO groups
            size = end - first
            parts: list[Buffer] = [_ONE.pack(VERSION, self.columns, 0, 1, size, size)]
        else:
            parts = [
                _HEADER.pack(VERSION, self.columns, 0, stop - start, end - first),
                data[HEADER_BYTES + 4 * start : HEADER_BYTES + 4 * stop],
            ]
        for offset, width, starts in columns:
            parts.append(data[offset + width * start : offset + width * stop])
            if starts is not None:
                parts.append(data[starts[start] : starts[stop]])
        if end - first > _COPIED_BYTES:
            return [b"".join(parts), data[first:end]]
        parts.append(data[first:end])
        return [b"".join(parts)]

    def _lay_out(self) -> Layout:
        """The positions for each message; kept, because a caller that slices once usually does so again."""
        columns: list[tuple[int, int, array[int] | None]] = []
        for column, (offset, block) in self.offsets.items():
            starts: array[int] | None = None
            if column in _WITH_BYTES:
                lengths = self.data[offset:block]
                starts = array(
                    "I", accumulate(lengths.cast("I") if column == ATTRIBUTES else lengths, initial=block)
                )
            columns.append((offset, _WIDTHS[column], starts))
        self._layout = (array("I", accumulate(self.sizes, initial=self.body_offset)), columns)
        return self._layout

    def select(self, indexes: Sequence[int]) -> Batch:
        """A new batch of the chosen messages, in the order given."""
        bodies = self.bodies()
        delays, ttls, stamps = self.integers(DELAYS), self.integers(TTLS), self.integers(STAMPS)
        groups, identifiers, priorities = self.names(GROUPS), self.names(DEDUPLICATION), self.priorities()
        return encode(
            [bodies[i] for i in indexes],
            priorities=[priorities[i] for i in indexes] if self.columns & PRIORITIES else None,
            delays_ms=[delays[i] for i in indexes] if delays is not None else None,
            ttls_ms=[ttls[i] for i in indexes] if ttls is not None else None,
            groups=[groups[i] for i in indexes] if groups is not None else None,
            deduplication_ids=[identifiers[i] for i in indexes] if identifiers is not None else None,
            attributes=[self.attributes(i) for i in indexes] if self.columns & ATTRIBUTES else None,
            stamps_us=[stamps[i] for i in indexes] if stamps is not None else None,
        )

    def without_stamps(self) -> Batch:
        """The same messages without their producers' times."""
        start, end = self.offsets[STAMPS]
        header = _HEADER.pack(VERSION, self.columns & ~STAMPS, 0, self.count, self.body_bytes)
        return Batch(b"".join((header, self.data[HEADER_BYTES:start], self.data[end:])))


def count_of(data: Buffer) -> int:
    """The number of messages in an unchecked batch, which has at least a header."""
    return int(_HEADER.unpack_from(data)[3])


def encode_one(body: bytes) -> bytes:
    """Encodes one message that is nothing but a body."""
    size = len(body)
    return _ONE.pack(VERSION, 0, 0, 1, size, size) + body


def encode_parts(
    bodies: Sequence[Buffer],
    *,
    priorities: Iterable[int] | None = None,
    delays_ms: Iterable[int] | None = None,
    ttls_ms: Iterable[int] | None = None,
    groups: Sequence[bytes] | None = None,
    deduplication_ids: Sequence[bytes] | None = None,
    attributes: Sequence[bytes] | None = None,
    stamps_us: Iterable[int] | None = None,
) -> bytes:
    """Encodes bodies and whichever columns are given; the result is what travels and what is stored."""
    sizes = array("I", map(len, bodies))
    columns = 0
    parts: list[Buffer] = [b"", memoryview(sizes)]
    if priorities is not None:
        columns |= PRIORITIES
        parts.append(bytes(priorities))
    if delays_ms is not None:
        columns |= DELAYS
        parts.append(memoryview(array("Q", delays_ms)))
    if ttls_ms is not None:
        columns |= TTLS
        parts.append(memoryview(array("Q", ttls_ms)))
    for column, names in ((GROUPS, groups), (DEDUPLICATION, deduplication_ids)):
        if names is not None:
            columns |= column
            parts.append(bytes(map(len, names)))
            parts.extend(names)
    if attributes is not None:
        columns |= ATTRIBUTES
        parts.append(memoryview(array("I", map(len, attributes))))
        parts.extend(attributes)
    if stamps_us is not None:
        columns |= STAMPS
        parts.append(memoryview(array("Q", stamps_us)))
    parts[0] = _HEADER.pack(VERSION, columns, 0, len(sizes), sum(sizes))
    parts.extend(bodies)
    return b"".join(parts)


def encode(
    bodies: Sequence[Buffer],
    *,
    priorities: Iterable[int] | None = None,
    delays_ms: Iterable[int] | None = None,
    ttls_ms: Iterable[int] | None = None,
    groups: Sequence[bytes] | None = None,
    deduplication_ids: Sequence[bytes] | None = None,
    attributes: Sequence[bytes] | None = None,
    stamps_us: Iterable[int] | None = None,
) -> Batch:
    """Like `encode_parts`, as a checked batch."""
    return Batch(
        encode_parts(
            bodies,
            priorities=priorities,
            delays_ms=delays_ms,
            ttls_ms=ttls_ms,
            groups=groups,
            deduplication_ids=deduplication_ids,
            attributes=attributes,
            stamps_us=stamps_us,
        )
    )
