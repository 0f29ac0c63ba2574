"""A partition as bytes and back: everything that records made, nothing that can be derived.

Columns that hold one value throughout are written as that value, so a long backlog of equal messages costs
a few bytes a chunk.
"""

from __future__ import annotations

from array import array

import msgspec

from penstock.model.document import DocumentReader, TooOldError
from penstock.model.number_gaps import Gap, NumberGaps
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.queue import states
from penstock.queue.attempts import AttemptImage
from penstock.queue.chunk import CHUNK_BITS, CHUNK_MESSAGES, Chunk
from penstock.queue.deduplication import ProducerImage
from penstock.queue.groups import FifoGroups
from penstock.queue.late_heads import HeadsImage
from penstock.queue.leases import Part
from penstock.queue.lifecycle import Lifecycle, LifecycleImage
from penstock.queue.log_index import LogImage
from penstock.queue.outgoing_moves import MoveKey, OutgoingMoves
from penstock.queue.partition import Partition
from penstock.queue.reader_groups import GroupImage
from penstock.queue.sorted_order import SortedImage
from penstock.queue.totals import Totals
from penstock.replication.primary_secondary.epochs import EpochHistory

VERSION = 2
"""The newest that is read. What fits into version 1 is written as that, so that replicas of earlier versions can take it."""
WITH_GAPS = 2
"""A log with gaps in its numbers: earlier versions would take a batch before a gap for as long as to the next. So it is with rows
about messages that wait."""
ELSEWHERE = 1 << 63
"""Set in the position of a batch that this node does not have yet."""

Column = tuple[int, bytes]
"""(length, value) of a column with one value, (-1, bytes) of any other."""


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


class PartitionImage(msgspec.Struct, array_like=True):
    """Everything of a partition."""

    version: int
    queue_id: int
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
    producers: list[ProducerImage]
    origins: list[tuple[int, Runs]]
    groups: tuple[list[tuple[bytes, int, int]], list[int]]
    moves: list[tuple[MoveKey, Runs]]
    overdue: Runs
    attempts: list[AttemptImage] = []
    log: LogImage | None = None
    readers: list[GroupImage] = []
    last_stamp_us: int = 0
    sorting: SortedImage | None = None
    late_heads: HeadsImage | None = None
    epochs: list[tuple[int, int]] = []
    lifecycle: LifecycleImage | None = None
    claims: list[tuple[bytes, int, int, int]] = []
    gaps: list[Gap] = []
    row_gaps: list[Gap] = []


_encoder = msgspec.msgpack.Encoder()
_reader: DocumentReader[PartitionImage] = DocumentReader(PartitionImage, "msgpack")


def dump(partition: Partition) -> bytes:
    """The partition as bytes."""
    table = partition.table
    return _encoder.encode(
        PartitionImage(
            version=WITH_GAPS
            if (partition.gaps and partition.log is not None) or _row_gaps(partition)
            else 1,
            queue_id=partition.queue_id,
            name=partition.name,
            settings=partition.settings,
            created_ms=partition.created_ms,
            index=partition.index,
            last_sent_ms=partition.last_sent_ms,
            next_sequence=table.next,
            next_lease=partition.leases.next,
            totals=partition.totals,
            chunks=[_chunk_image(chunk) for chunk in table.chunks.values()],
            many_attempts=table.many_attempts,
            leases=partition.leases.dump(),
            delays=partition.delays.dump(),
            expiries=partition.expiries.dump(),
            sent_times=partition.sent_times.dump(),
            window=partition.window.dump(),
            claims=partition.window.claims.dump(),
            producers=partition.producers.dump(),
            origins=partition.origins.dump(),
            groups=partition.groups.dump(),
            moves=list(partition.moves.items()),
            overdue=partition.overdue,
            attempts=partition.attempts.dump(),
            log=partition.log.dump() if partition.log is not None else None,
            readers=partition.readers.dump(),
            last_stamp_us=partition.commit_wait.last_us,
            sorting=_sorted_image(partition),
            late_heads=partition.late_heads.dump() if partition.late_heads is not None else None,
            epochs=partition.epochs.pairs(),
            lifecycle=partition.lifecycle.dump() if partition.lifecycle is not None else None,
            gaps=partition.gaps.pairs(),
            row_gaps=_row_gaps(partition),
        )
    )


def _row_gaps(partition: Partition) -> list[Gap]:
    return partition.lifecycle.gaps.pairs() if partition.lifecycle is not None else []


def load(data: bytes | memoryview) -> Partition:
    """The partition from bytes; raises `msgspec.DecodeError` or `ValueError` on anything else."""
    return _build(_reader.decode(data))


def load_from_elsewhere(data: bytes | memoryview) -> Partition:
    """The partition from another replica's bytes: every position in it is marked as one of the other's (`ELSEWHERE`)."""
    image = _reader.decode(data)
    for chunk in image.chunks:
        chunk.positions = _marked(chunk.positions)
    if image.log is not None:
        following, firsts, positions, stored, sizes, sent_ms = image.log
        image.log = (following, firsts, _marked(positions), stored, sizes, sent_ms)
    return _build(image)


def _marked(positions: bytes) -> bytes:
    return array("Q", [position | ELSEWHERE for position in array("Q", positions)]).tobytes()


def _build(image: PartitionImage) -> Partition:
    if image.version > VERSION:
        raise TooOldError(f"a partition as of version {image.version} of its image, this one knows {VERSION}")
    if image.version < 1:
        raise ValueError(
            f"a partition of snapshot version {image.version}; this program reads 1 to {VERSION}"
        )
    partition = Partition(image.queue_id, image.name, image.settings, image.created_ms)
    partition.index = image.index
    partition.last_sent_ms = image.last_sent_ms
    partition.totals = image.totals
    table = partition.table
    table.next = image.next_sequence
    table.many_attempts = image.many_attempts
    for chunk_image in image.chunks:
        chunk = _chunk(chunk_image)
        table.adopt(chunk)
    partition.leases.load(image.leases)
    partition.leases.next = image.next_lease
    partition.delays.load(image.delays)
    partition.expiries.load(image.expiries)
    partition.sent_times.load(image.sent_times)
    partition.window.load(image.window)
    partition.window.claims.load(image.claims)
    partition.producers.load(image.producers)
    partition.origins.load(image.origins)
    partition.groups.load(image.groups)
    partition.moves = OutgoingMoves(image.moves)
    partition.overdue = image.overdue
    partition.attempts.load(image.attempts)
    for start, end in image.gaps:
        partition.gaps.add(start, end)
    if partition.log is not None:
        if image.log is None or image.log[0] != table.next:
            raise ValueError("the log does not end where the queue does")
        partition.log.load(image.log)
    partition.readers.load(image.readers)
    partition.epochs = EpochHistory(image.epochs)
    partition.lifecycle = Lifecycle.load(image.lifecycle) if image.lifecycle is not None else None
    if partition.lifecycle is not None:
        partition.lifecycle.gaps = NumberGaps(image.row_gaps)
    partition.commit_wait.observe(image.last_stamp_us)
    _derive_order(partition, image)
    partition.order.went_out([run for lease in partition.leases.leases.values() for run in lease.runs()])
    return partition


def _sorted_image(partition: Partition) -> SortedImage | None:
    if partition.sorting is None:
        return None
    assert isinstance(partition.order, FifoGroups)
    return partition.sorting.dump(partition.order)


def _derive_order(partition: Partition, image: PartitionImage) -> None:
    """Who is next follows from the columns, but for what the stamps of producers say."""
    partition.order = order = partition.new_order()
    if image.late_heads is not None:
        partition.know_stamps().load(image.late_heads)
    if partition.sorting is not None:
        if image.sorting is None or not isinstance(order, FifoGroups):
            raise ValueError("the order of a sorted queue is missing")
        partition.sorting.load(image.sorting, order)
        return
    table = partition.table
    living = table.runs_in(states.RUNS_LIVING, 1, table.next, table.messages) if table.messages else []
    for run in living:
        for chunk, start, stop in table.pieces(run):
            groups = chunk.groups[start:stop] if chunk.groups is not None else None
            partition.order.sent(((chunk.number << CHUNK_BITS) + start, stop - start), groups)


def _chunk_image(chunk: Chunk) -> ChunkImage:
    return ChunkImage(
        number=chunk.number,
        states=_column(chunk.states, 1),
        sizes=_column(chunk.sizes.tobytes(), 4),
        starts=chunk.starts.tobytes(),
        positions=chunk.positions.tobytes(),
        attempts=_column(chunk.attempts, 1) if chunk.attempts is not None else None,
        first_received_ms=_column(chunk.first_received_ms.tobytes(), 8) if chunk.first_received_ms else None,
        groups=_column(chunk.groups.tobytes(), 4) if chunk.groups is not None else None,
    )


def _chunk(image: ChunkImage) -> Chunk:
    chunk = Chunk(image.number)
    chunk.states = bytearray(_bytes(image.states))
    chunk.sizes = array("I", _bytes(image.sizes))
    chunk.starts = array("H", image.starts)
    chunk.positions = array("Q", image.positions)
    if image.attempts is not None:
        chunk.attempts = bytearray(_bytes(image.attempts))
    if image.first_received_ms is not None:
        chunk.first_received_ms = array("Q", _bytes(image.first_received_ms))
    if image.groups is not None:
        chunk.groups = array("I", _bytes(image.groups))
    _check(chunk)
    chunk.living = len(chunk.states) - chunk.states.count(0)
    chunk.count_files()
    return chunk


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
