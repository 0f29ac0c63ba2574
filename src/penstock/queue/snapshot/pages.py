"""The state of a partition as a sequence of pages: the kinds of pages, and their layout.

    0xDD, pages + 4 as u32 | 3, 0, "", {"needs": 2} | page, page, ...        each page 0xC6, size as u32, msgpack

The whole is one msgpack array. So a program that knows only versions 1 and 2 finds a document that says what it needs, and
refuses it with that reason. A page is small enough to be made or read between two requests. A table has any number of
pages, in order. The first page is the head; chunks come before all pages that refer to messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from penstock.model.document import DocumentReader
from penstock.model.number_gaps import Gap
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.ordering.causal_sorter import Arrival, SessionImage
from penstock.ordering.stamped_run import RunImage
from penstock.ordering.timestamp_id import TimestampId
from penstock.queue.lifecycle_row import LifecycleRow
from penstock.queue.log.index import LogColumns
from penstock.queue.log.reader_groups import GroupImage
from penstock.queue.ready.groups import GroupRow
from penstock.queue.ready.lanes import Ahead
from penstock.queue.ready.sorted_order import LateRow
from penstock.queue.state.leases import LeaseRow
from penstock.queue.state.outgoing_moves import MoveKey
from penstock.queue.state.totals import Totals

VERSION = 3
NEEDS = 2
"""The version of documents that a program must know to read pages."""

Column = tuple[int, bytes]
"""(length, value) of a column with one value throughout, (-1, bytes) of any other."""


class Head(msgspec.Struct, array_like=True, tag=1):
    """All single values."""

    partition_id: int
    name: str
    settings: QueueSettings
    created_ms: int
    index: int
    last_sent_ms: int
    next_sequence: int
    next_lease: int
    totals: Totals
    last_stamp_us: int
    epochs: list[tuple[int, int]]
    sweeps: tuple[int, int, int]
    """When delays, times to live and times of sending are looked through next: of the first two, after so many more timers; of the last,
    from this message on."""
    producers: tuple[int, int, int]
    log_next: int | None
    heads: tuple[int, int] | None
    """Of a best-effort queue with stamps: the newest handed out, and from which message on stamps are looked through next."""
    floor: tuple[TimestampId, list[TimestampId]] | None
    """Of the window of a `clock` queue."""
    lifecycle: tuple[bool, bool, int, int] | None
    """Whether it is followed, whether it has ended, the next number, the rows that were dropped."""
    gaps: list[Gap]
    """Numbers that no message has."""
    row_gaps: list[Gap]
    """Numbers that no row has, among those of the rows that wait."""
    swept: tuple[int, int] = (0, 0)
    """The pages of delays and of times to live that were looked through last."""
    swept_to: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    """Where that goes on in them, if they are not done: (slot, message)."""


class Messages(msgspec.Struct, array_like=True, tag=2):
    """A chunk."""

    number: int
    states: Column
    sizes: Column
    starts: bytes
    positions: bytes
    attempts: Column | None
    first_received_ms: Column | None
    groups: Column | None
    many_attempts: list[tuple[int, int]]
    """(place in the chunk, receives) of messages that were received more often than a byte counts."""


class Leases(msgspec.Struct, array_like=True, tag=3):
    """Leases by number."""

    rows: list[LeaseRow]


class Delays(msgspec.Struct, array_like=True, tag=4):
    """Slots in which delays end."""

    rows: list[tuple[int, Runs]]


class Expiries(msgspec.Struct, array_like=True, tag=5):
    """Slots in which times to live end."""

    rows: list[tuple[int, Runs]]


class SentTimes(msgspec.Struct, array_like=True, tag=6):
    """When messages were sent."""

    times: bytes
    firsts: bytes


class Window(msgspec.Struct, array_like=True, tag=7):
    """Deduplication ids, oldest first: (id, number, until)."""

    rows: list[tuple[bytes, int, int]]


class Claims(msgspec.Struct, array_like=True, tag=8):
    """Claims of deduplication ids, oldest first: (id, owner, version, until)."""

    rows: list[tuple[bytes, int, int, int]]


class Attempts(msgspec.Struct, array_like=True, tag=9):
    """Receive attempts, oldest first: (id, lease, messages, ended, until)."""

    rows: list[tuple[bytes, int, int, int, int]]


class Producers(msgspec.Struct, array_like=True, tag=10):
    """A piece of a column of the table of producers."""

    column: int
    data: bytes


class Duplicates(msgspec.Struct, array_like=True, tag=11):
    """What batches of producers left out: (row, packed)."""

    rows: list[tuple[int, bytes]]


class Origins(msgspec.Struct, array_like=True, tag=12):
    """Messages that moved in from another queue."""

    source_id: int
    runs: Runs


class Groups(msgspec.Struct, array_like=True, tag=13):
    """Names of groups, by number."""

    rows: list[GroupRow]


class FreeGroups(msgspec.Struct, array_like=True, tag=14):
    """Numbers for new groups."""

    numbers: bytes


class Moves(msgspec.Struct, array_like=True, tag=15):
    """Messages on their way to another queue."""

    key: MoveKey
    runs: Runs


class Overdue(msgspec.Struct, array_like=True, tag=16):
    """Moving messages that expire if they come back."""

    runs: Runs


class Log(msgspec.Struct, array_like=True, tag=17):
    """Batches of the retained log."""

    columns: LogColumns


class Readers(msgspec.Struct, array_like=True, tag=18):
    """Groups of readers."""

    rows: list[GroupImage]


class Waiting(msgspec.Struct, array_like=True, tag=19):
    """The contents of the window of a `clock` queue."""

    runs: list[RunImage]


class Sessions(msgspec.Struct, array_like=True, tag=20):
    """Sessions of a `causal` queue, in the order of their last arrival."""

    rows: list[SessionImage]


class Arrivals(msgspec.Struct, array_like=True, tag=21):
    """Batches of a `causal` queue whose window is not over."""

    rows: list[Arrival]


class Late(msgspec.Struct, array_like=True, tag=22):
    """Late messages of a sorted queue that are still here."""

    rows: list[LateRow]


class Order(msgspec.Struct, array_like=True, tag=23):
    """Messages that were released from the window, by group, in the order of release. Some of them may be gone."""

    rows: list[tuple[int, bytes]]


class Stamps(msgspec.Struct, array_like=True, tag=24):
    """The stamps of batches of a best-effort queue."""

    firsts: bytes
    ends: bytes
    stamps: bytes


class AheadOfOthers(msgspec.Struct, array_like=True, tag=25):
    """Late messages of a best-effort queue, which go first, oldest first. Some of them may be gone."""

    rows: list[Ahead]


class Lifecycle(msgspec.Struct, array_like=True, tag=26):
    """Rows about messages that wait to be reported."""

    rows: list[LifecycleRow]


class ForgottenOrigins(msgspec.Struct, array_like=True, tag=27):
    """(source, epoch, number) up to which requests may be about messages whose origins are forgotten."""

    rows: list[tuple[int, int, int]]


Page = (
    Head
    | Messages
    | Leases
    | Delays
    | Expiries
    | SentTimes
    | Window
    | Claims
    | Attempts
    | Producers
    | Duplicates
    | Origins
    | Groups
    | FreeGroups
    | Moves
    | Overdue
    | Log
    | Readers
    | Waiting
    | Sessions
    | Arrivals
    | Late
    | Order
    | Stamps
    | AheadOfOthers
    | Lifecycle
    | ForgottenOrigins
)

_encoder = msgspec.msgpack.Encoder()
_reader: DocumentReader[Page] = DocumentReader(Page, "msgpack", "a page of a state")

_BEFORE_PAGES = 4
_NEEDS = bytes([VERSION, 0, 0xA0]) + msgspec.msgpack.encode({"needs": NEEDS})
_ARRAY = struct.Struct(">BI")
_BINARY = struct.Struct(">BI")
PREFIX_BYTES = _ARRAY.size + len(_NEEDS)
PAGE_HEADER_BYTES = _BINARY.size


def prefix(pages: int) -> bytes:
    """The bytes before so many pages."""
    return _ARRAY.pack(0xDD, pages + _BEFORE_PAGES) + _NEEDS


def encode_page(page: Page) -> bytes:
    """A page with its header."""
    data = _encoder.encode(page)
    return _BINARY.pack(0xC6, len(data)) + data


def decode_page(data: bytes | memoryview) -> Page:
    """A page without its size; raises `msgspec.DecodeError`, which is a `TooOldError` where a newer version wrote it."""
    return _reader.decode(data)


def is_paged(data: bytes | bytearray | memoryview) -> bool:
    """Whether a state begins like one in pages."""
    return len(data) >= PREFIX_BYTES and data[0] == 0xDD and data[_ARRAY.size : PREFIX_BYTES] == _NEEDS


def page_count(data: bytes | bytearray | memoryview) -> int:
    """How many pages a state has that begins like this."""
    return int(_ARRAY.unpack_from(data)[1]) - _BEFORE_PAGES


def page_size(data: bytes | bytearray | memoryview, offset: int) -> int:
    """The size of the page whose header is at `offset`; raises `ValueError` if there is no header."""
    kind, size = _BINARY.unpack_from(data, offset)
    if kind != 0xC6:
        raise ValueError(f"there is no page at offset {offset} of a state")
    return int(size)


def pages_of(data: bytes | memoryview) -> Iterator[Page]:
    """All pages of a state."""
    offset = PREFIX_BYTES
    for _ in range(page_count(data)):
        size = page_size(data, offset)
        offset += PAGE_HEADER_BYTES
        yield decode_page(data[offset : offset + size])
        offset += size
