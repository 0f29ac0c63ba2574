"""Reads states of versions 1 and 2, one document each, and turns them into pages. No version writes them any more."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.model.document import DocumentReader, TooOldError
from penstock.model.number_gaps import Gap
from penstock.model.origin import Lateness
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.ordering.causal_sorter import CausalImage
from penstock.ordering.window_sorter import SorterImage
from penstock.queue.lifecycle_row import LifecycleRow
from penstock.queue.log.reader_groups import GroupImage
from penstock.queue.ready.lanes import Ahead
from penstock.queue.snapshot import pages
from penstock.queue.snapshot.pages import Column, Page
from penstock.queue.state.chunk import CHUNK_BITS, CHUNK_MASK
from penstock.queue.state.lease import Part
from penstock.queue.state.outgoing_moves import MoveKey
from penstock.queue.state.producers import HAS_DUPLICATES, Batch
from penstock.queue.state.stored_batch import packed
from penstock.queue.state.totals import Totals

VERSION = 2
"""The last of this form. From version 2 on numbers may have gaps."""


class ChunkImage(msgspec.Struct, array_like=True):
    """The columns of a chunk."""

    number: int
    states: Column
    sizes: Column
    starts: bytes
    positions: bytes
    attempts: Column | None
    first_received_ms: Column | None
    groups: Column | None


class StoredImage(msgspec.Struct, frozen=True, array_like=True):
    """A batch of a producer."""

    number: int
    first: int
    count: int
    sent_ms: int
    duplicates: list[tuple[int, int]]
    stamp_us: int = 0


class HeadsImage(msgspec.Struct, frozen=True, array_like=True):
    """The stamps of a best-effort queue."""

    newest_us: int
    firsts: bytes
    ends: bytes
    stamps: bytes
    sweep_at: int
    ahead: list[Ahead]


class SortedImage(msgspec.Struct, frozen=True, array_like=True):
    """The window of a sorted queue."""

    window: SorterImage | None
    causal: CausalImage | None
    late: list[tuple[int, Runs, Lateness]]
    order: list[tuple[int, bytes]]


class PartitionImage(msgspec.Struct, array_like=True):
    """The whole partition."""

    version: int
    partition_id: int
    name: str
    settings: QueueSettings
    created_ms: int
    index: int
    last_sent_ms: int
    next_sequence: int
    next_lease: int
    totals: Totals
    chunks: list[ChunkImage]
    many_attempts: dict[int, int]
    leases: list[tuple[int, int, list[Part]]]
    delays: tuple[int, list[tuple[int, Runs]]]
    expiries: tuple[int, list[tuple[int, Runs]]]
    sent_times: tuple[int, bytes, bytes]
    window: list[tuple[bytes, int, int]]
    producers: list[tuple[int, int, int, list[StoredImage]]]
    origins: list[tuple[int, Runs]]
    groups: tuple[list[tuple[bytes, int, int]], list[int]]
    moves: list[tuple[MoveKey, Runs]]
    overdue: Runs
    attempts: list[tuple[bytes, int, int, int, int]] = []
    log: tuple[int, bytes, bytes, bytes, bytes, bytes] | None = None
    readers: list[GroupImage] = []
    last_stamp_us: int = 0
    sorting: SortedImage | None = None
    late_heads: HeadsImage | None = None
    epochs: list[tuple[int, int]] = []
    lifecycle: tuple[bool, bool, int, int, list[LifecycleRow]] | None = None
    claims: list[tuple[bytes, int, int, int]] = []
    gaps: list[Gap] = []
    row_gaps: list[Gap] = []


class FirstProducers(msgspec.Struct):
    """Producers, in place of the columns of pages: (producer, last use, forgotten, batches)."""

    rows: list[tuple[int, int, int, list[Batch]]]


_reader: DocumentReader[PartitionImage] = DocumentReader(PartitionImage, "msgpack")


def pages_of(data: bytes) -> Iterator[Page | FirstProducers]:
    """The state in pages; raises `msgspec.DecodeError` or `ValueError` where it is none of this version."""
    image = _reader.decode(data)
    if image.version > VERSION:
        raise TooOldError(
            f"a partition as of version {image.version} of its image, this one knows {pages.VERSION}"
        )
    if image.version < 1:
        raise ValueError(
            f"a partition of snapshot version {image.version}; this program reads 1 to {pages.VERSION}"
        )
    yield _head(image)
    for chunk in image.chunks:
        many = [
            (sequence & CHUNK_MASK, receives)
            for sequence, receives in image.many_attempts.items()
            if sequence >> CHUNK_BITS == chunk.number
        ]
        yield pages.Messages(
            *(chunk.number, chunk.states, chunk.sizes, chunk.starts, chunk.positions),
            *(chunk.attempts, chunk.first_received_ms, chunk.groups, many),
        )
    if image.sorting is not None:
        yield from _sorted(image.sorting)
    yield pages.Leases(image.leases)
    yield pages.Delays(image.delays[1])
    yield pages.Expiries(image.expiries[1])
    yield pages.SentTimes(*image.sent_times[1:])
    yield pages.Window(image.window)
    yield pages.Claims(image.claims)
    yield pages.Attempts(image.attempts)
    yield FirstProducers(
        [
            (producer, last_ms, forgotten, [_batch(stored) for stored in batches])
            for producer, last_ms, forgotten, batches in image.producers
        ]
    )
    for source_id, runs in image.origins:
        yield pages.Origins(source_id, runs)
    yield pages.Groups(image.groups[0])
    yield pages.FreeGroups(b"".join(number.to_bytes(4, "little") for number in image.groups[1]))
    for key, runs in image.moves:
        yield pages.Moves(key, runs)
    yield pages.Overdue(image.overdue)
    if image.log is not None:
        yield pages.Log(image.log[1:])
    yield pages.Readers(image.readers)
    if image.late_heads is not None:
        heads = image.late_heads
        yield pages.Stamps(heads.firsts, heads.ends, heads.stamps)
        yield pages.AheadOfOthers(heads.ahead)
    if image.lifecycle is not None:
        yield pages.Lifecycle(image.lifecycle[4])


def _head(image: PartitionImage) -> pages.Head:
    window = image.sorting.window if image.sorting is not None else None
    return pages.Head(
        partition_id=image.partition_id,
        name=image.name,
        settings=image.settings,
        created_ms=image.created_ms,
        index=image.index,
        last_sent_ms=image.last_sent_ms,
        next_sequence=image.next_sequence,
        next_lease=image.next_lease,
        totals=image.totals,
        last_stamp_us=image.last_stamp_us,
        epochs=image.epochs,
        sweeps=(0, 0, 0),
        producers=(0, 0, 0),
        log_next=image.log[0] if image.log is not None else None,
        heads=(image.late_heads.newest_us, 0) if image.late_heads is not None else None,
        floor=(window.floor, window.heads) if window is not None else None,
        lifecycle=image.lifecycle[:4] if image.lifecycle is not None else None,
        gaps=image.gaps,
        row_gaps=image.row_gaps,
    )


def _sorted(image: SortedImage) -> Iterator[Page]:
    yield pages.Order(image.order)
    if image.window is not None:
        yield pages.Waiting(image.window.runs)
    if image.causal is not None:
        yield pages.Sessions(image.causal.sessions)
        yield pages.Arrivals(image.causal.arrivals)
    yield pages.Late(image.late)


def _batch(stored: StoredImage) -> Batch:
    duplicates = packed(stored.duplicates) if stored.duplicates else None
    count = stored.count | HAS_DUPLICATES if stored.duplicates else stored.count
    return stored.number, stored.first, count, stored.sent_ms, stored.stamp_us, duplicates
