"""A partition sent as a whole: its state as bytes, then its living batches; and a state rebuilt from records.

A state from another replica refers to batches by the other's positions, which are marked. Each batch that arrives replaces
its marks by its position here; messages that end meanwhile remove theirs. The replica is complete when no living message
has a marked position, which also works after a restart.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence

from penstock.model.batch import Batch, Buffer
from penstock.model.document import TooOldError
from penstock.model.records import QueueCreated, QueueDeleted, QueueRemoved, Sent, decode_record
from penstock.queue import living_files
from penstock.queue.decisions.receive import stored_runs
from penstock.queue.partition import Partition
from penstock.queue.snapshot import snapshot
from penstock.queue.snapshot.chunk_image import ELSEWHERE
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS, FILE_SHIFT
from penstock.queue.state.table import Place
from penstock.storage.entry_read import ReadEntry
from penstock.storage.replica_log import IMAGE_PART_BYTES

_MARKED_FILES = ELSEWHERE >> FILE_SHIFT
_WALK_MESSAGES = 4_096
_WALK_BYTES = 2**20
_WALK_BATCHES = 256


class StateParts:
    """A state in parts that fit into journal entries; each is cut when it is taken."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self._buffers = deque(memoryview(buffer) for buffer in buffers)
        size = sum(buffer.nbytes for buffer in self._buffers)
        self.count = -(-size // IMAGE_PART_BYTES)
        self.taken = 0

    def take(self) -> list[Buffer]:
        """The next part."""
        room = IMAGE_PART_BYTES
        part: list[Buffer] = []
        while room and self._buffers:
            buffer = self._buffers.popleft()
            if buffer.nbytes > room:
                self._buffers.appendleft(buffer[room:])
                buffer = buffer[:room]
            part.append(buffer)
            room -= buffer.nbytes
        self.taken += 1
        return part

    def __bool__(self) -> bool:
        return bool(self._buffers)


def is_missing_batches(partition: Partition) -> bool:
    """Whether something lives in a batch that is not here yet."""
    return any(file >= _MARKED_FILES for file in living_files.files_of(partition))


def place_batches(partition: Partition, stored: Sequence[tuple[Sent, int]]) -> None:
    """Batches arrived, and are at these positions now."""
    for sent, position in stored:
        for place in list(_marked_places(partition, sent)):
            living_files.relocate(partition, (place,), {place[0]: position})


def is_wanted(partition: Partition, sent: Sent) -> bool:
    """Whether something lives in a batch that is not here yet."""
    return any(living_files.is_there(partition, place) for place in _marked_places(partition, sent))


def _marked_places(partition: Partition, sent: Sent) -> Iterator[Place]:
    """Places of a batch that are another node's."""
    first, end = sent.first, sent.first + sent.count
    for number in range(first >> CHUNK_BITS, (end - 1 >> CHUNK_BITS) + 1):
        chunk = partition.table.chunks.get(number)
        if chunk is None:
            continue
        base = number << CHUNK_BITS
        piece = bisect_left(chunk.starts, max(0, first - base))
        while piece < len(chunk.starts) and base + chunk.starts[piece] < end:
            if chunk.positions[piece] >= ELSEWHERE:
                yield chunk.positions[piece], number, piece
            piece += 1
    log = partition.log
    logged = log.number_of(first) if log is not None else None
    position = log.position_of(logged) if log is not None and logged is not None else None
    if logged is not None and position is not None and position >= ELSEWHERE:
        yield position, logged, -1


class Walk:
    """Visits the living batches of a partition, in the order of their messages, while batches come and go."""

    def __init__(self, partition: Partition, needs_position: int) -> None:
        self.index = partition.index
        """The state that the batches belong to."""
        self.needs_position = needs_position
        """The journal must be on disk up to here before the batches can be read back."""
        self._end = partition.table.next
        log = partition.log
        self._logged = log.begin if log is not None else self._end
        self._next = 1
        self._log_from = self._logged
        self._last_position = -1
        self._taken: list[int] = []
        """The first message of each batch that was taken last."""
        self._from_log = False

    def take(self, partition: Partition) -> list[int]:
        """The positions of the next batches; nothing at the end of the walk."""
        self._from_log = False
        while self._next < self._end:
            found = self._take_from_table(partition)
            if found:
                return found
        self._from_log = True
        log = partition.log
        if log is not None:
            start = max(self._log_from, log.begin)
            runs = log.batches(start, _WALK_MESSAGES, _WALK_BYTES, _WALK_BATCHES) if start < self._end else []
            runs = [run for run in runs if run.first < self._end]
            if runs:
                self._log_from = runs[-1].first + runs[-1].messages
                self._taken = [run.first for run in runs]
                return [run.position for run in runs]
        return []

    def first_wrong(self, entries: Sequence[ReadEntry]) -> int | None:
        """Which of the entries that were read is not the batch that was taken; None where all are."""
        for place, (first, entry) in enumerate(zip(self._taken, entries, strict=False)):
            record = decode_record(entry.head)
            if not isinstance(record, Sent) or not record.first <= first < record.first + record.count:
                return place
        return None

    def read(self, count: int) -> None:
        """So many of the batches that were taken last were read; the others are to be taken again."""
        if count < len(self._taken):
            if self._from_log:
                self._log_from = self._taken[count]
            else:
                self._next = self._taken[count]
            self._last_position = -1

    def _take_from_table(self, partition: Partition) -> list[int]:
        table = partition.table
        runs = table.runs_in(states.RUNS_LIVING, self._next, self._end, _WALK_MESSAGES)
        if not runs:
            self._next = self._end
            return []
        found: list[int] = []
        self._taken = []
        size = 0
        for position, first, messages in stored_runs(partition, runs):
            self._next = first + messages
            if position != self._last_position:
                if size >= _WALK_BYTES:
                    self._next = first
                    break
                found.append(position)
                self._taken.append(first)
                self._last_position = position
            size += table.size_of([(first, messages)])
        return found


def build(initial: Partition, state: bytes | None, entries: Sequence[ReadEntry]) -> Partition:
    """The partition as a snapshot and the records after it make it; without a snapshot it begins as `initial`."""
    partition = snapshot.load(state) if state is not None else initial
    for entry in entries:
        record = decode_record(entry.head)
        if isinstance(record, QueueCreated | QueueDeleted | QueueRemoved):
            raise TooOldError(f"a record {type(record).__name__} in the log of a partition")
        batch = Batch(entry.payload) if isinstance(record, Sent) else None
        partition.apply(record, batch, entry.position)
    return partition
