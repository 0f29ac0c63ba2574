"""The message table of a partition: counts, and the operations on runs in its chunks. Reading is in `message_view`.

Nothing here decides. Callers say which runs change into which state, and the table updates the columns, the counts and the
living pieces of each file. Runs of one message, which FIFO queues have many of, take a separate path in every loop:
without slices and calls a lease takes 0.3 µs instead of 1.4, a burial 1.1 instead of 3.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import compress

from penstock.model import limits
from penstock.model.page_capture import PageCapture
from penstock.model.runs import Run
from penstock.queue.message_view import MessageView
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS, CHUNK_MASK, CHUNK_MESSAGES, FILE_SHIFT, Chunk
from penstock.queue.state.states import LEASED, MANY, PRIORITY_BITS, READY, STATE_BITS

Place = tuple[int, int, int]
"""(position, chunk, piece) of a piece of a batch; of a batch in the retained log (position, its number, -1)."""
PAUSE: Place = (-1, 0, -1)
"""The search found nothing for a while: the caller may do something else first."""
CHUNKS_AT_ONCE = 4_096


class MessageTable(MessageView):
    """The messages [1, next) of a partition; removed messages cost nothing once their chunk is removed.

    Numbers may have gaps of any size: there are no chunks in them, and no code visits numbers one by one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts = dict.fromkeys(states.NAMES, 0)
        self.ready_by_priority = [0] * limits.PRIORITIES
        self.bytes = 0
        self.files: dict[int, int] = {}
        self.emptied: list[int] = []
        """Files in which nothing of this partition lives any more; the owner of the files takes them from here."""
        self.many_attempts: dict[int, int] = {}
        self.capture: PageCapture[Chunk, bytes] | None = None

    @property
    def messages(self) -> int:
        """All that are not gone."""
        return sum(self.counts.values())

    # -- growing ---------------------------------------------------------------------------------------------

    def append(
        self,
        state_bytes: bytes,
        sizes: array[int],
        size: int,
        position: int,
        groups: array[int] | None,
    ) -> None:
        """Adds a batch, of `size` bytes in all, at `next`."""
        count, done = len(state_bytes), 0
        self.bytes += size
        file = position >> FILE_SHIFT
        while done < count:
            number, index = self.next >> CHUNK_BITS, self.next & CHUNK_MASK
            chunk = self.chunks.get(number)
            if self.capture is not None:
                self.capture.before(number)
            if chunk is None:
                chunk = self.chunks[number] = Chunk(number)
                if index:  # the chunk starts in the middle: its earlier messages are gone
                    chunk.states += bytes(index)
                    chunk.sizes.frombytes(bytes(4 * index))
            take = min(count - done, CHUNK_MESSAGES - index)
            if take == count:
                chunk.append(state_bytes, sizes, position)
                if groups is not None or chunk.groups is not None:
                    chunk.fill_groups(index, groups, take)
            else:
                part = slice(done, done + take)
                chunk.append(state_bytes[part], sizes[part], position)
                chunk.fill_groups(index, groups[part] if groups is not None else None, take)
            self.files[file] = self.files.get(file, 0) + 1
            self.next += take
            done += take
        self._count(state_bytes, 1)

    def adopt(self, chunk: Chunk) -> None:
        """Takes a chunk from a snapshot; chunks come in rising order."""
        self.chunks[chunk.number] = chunk
        for file, pieces in chunk.files.items():
            self.files[file] = self.files.get(file, 0) + pieces
        if chunk.states:
            self._count(chunk.states, 1)
        for match in states.RUNS_LIVING.finditer(chunk.states):
            self.bytes += sum(chunk.sizes[match.start() : match.end()])

    # -- changing --------------------------------------------------------------------------------------------

    def _before(self, runs: Iterable[Run]) -> None:
        """The chunks of the runs are about to change."""
        if self.capture is not None:
            for first, count in runs:
                for number in range(first >> CHUNK_BITS, (first + count - 1 >> CHUNK_BITS) + 1):
                    self.capture.before(number)

    def move(self, runs: Sequence[Run], into: int) -> None:
        """Moves the living messages of the runs into a state."""
        if self.capture is not None:
            self._before(runs)
        table, counts, ready = states.INTO[into], self.counts, self.ready_by_priority
        for run in runs:
            first, count = run
            if count == 1:
                chunk = self.chunks.get(first >> CHUNK_BITS)
                index = first & CHUNK_MASK
                if chunk is None or index >= len(chunk.states) or not (old := chunk.states[index]):
                    continue
                chunk.states[index] = table[old]
                counts[old & STATE_BITS] -= 1
                counts[into] += 1
                if old & STATE_BITS == READY:
                    ready[old & PRIORITY_BITS] -= 1
                if into == READY:
                    ready[old & PRIORITY_BITS] += 1
                continue
            for chunk, start, stop in self.pieces(run):
                part = chunk.states[start:stop]
                self._count(part, -1)
                part = part.translate(table)
                self._count(part, 1)
                chunk.states[start:stop] = part

    def lease(self, runs: Sequence[Run], number: int) -> None:
        """Moves the messages of the runs, all ready, out under a lease, and counts one more receive for each."""
        if self.capture is not None:
            self._before(runs)
        table, more = states.INTO[LEASED], states.ONE_MORE
        leased = 0
        for run in runs:
            first, count = run
            leased += count
            if count == 1:
                chunk = self.chunks[first >> CHUNK_BITS]
                index = first & CHUNK_MASK
                old = chunk.states[index]
                self.ready_by_priority[old & PRIORITY_BITS] -= 1
                chunk.states[index] = table[old]
                attempts = chunk.attempts or chunk.make_attempts()
                attempts[index] = received = more[attempts[index]]
                if chunk.leases is not None:
                    chunk.leases[index] = number
                else:
                    chunk.note_lease(index, index + 1, number)
                if received == MANY:
                    self._count_many(chunk, index, index + 1)
                continue
            for chunk, start, stop in self.pieces(run):
                part = chunk.states[start:stop]
                value = part[0]
                if part.count(value) == stop - start:
                    self.ready_by_priority[value & PRIORITY_BITS] -= stop - start
                else:
                    for value in set(part):
                        self.ready_by_priority[value & PRIORITY_BITS] -= part.count(value)
                chunk.states[start:stop] = part.translate(table)
                attempts = chunk.attempts or chunk.make_attempts()
                attempts[start:stop] = part = attempts[start:stop].translate(more)
                chunk.note_lease(start, stop, number)
                if MANY in part:
                    self._count_many(chunk, start, stop)
        self.counts[READY] -= leased
        self.counts[LEASED] += leased

    def note_lease(self, runs: Iterable[Run], number: int) -> None:
        """Notes that the messages are leased, from a snapshot or newly."""
        for run in runs:
            for chunk, start, stop in self.pieces(run):
                chunk.note_lease(start, stop, number)

    def _count_many(self, chunk: Chunk, start: int, stop: int) -> None:
        """A byte does not count to MANY; from there on a table does."""
        assert chunk.attempts is not None
        base = chunk.number << CHUNK_BITS
        for index in range(start, stop):
            if chunk.attempts[index] == MANY:
                self.many_attempts[base + index] = self.many_attempts.get(base + index, MANY - 1) + 1

    def mark_gone(self, runs: Sequence[Run]) -> int:
        """Marks the living messages of the runs gone; returns how many there were."""
        if self.capture is not None:
            self._before(runs)
        gone = 0
        for run in runs:
            first, count = run
            if count == 1:
                chunk = self.chunks.get(first >> CHUNK_BITS)
                index = first & CHUNK_MASK
                if chunk is None or index >= len(chunk.states) or not (old := chunk.states[index]):
                    continue
                self.counts[old & STATE_BITS] -= 1
                if old & STATE_BITS == READY:
                    self.ready_by_priority[old & PRIORITY_BITS] -= 1
                self.bytes -= chunk.sizes[index]
                file = chunk.mark_one_gone(index)
                if file is not None:
                    self._lose_piece(file)
                if not chunk.living or self.many_attempts:
                    self._went(chunk, index, index + 1)
                gone += 1
                continue
            for chunk, start, stop in self.pieces(run):
                part = chunk.states[start:stop]
                self._count(part, -1)
                if 0 not in part:
                    gone += self._mark_gone(chunk, start, stop)
                    continue
                for match in states.RUNS_LIVING.finditer(part):
                    gone += self._mark_gone(chunk, start + match.start(), start + match.end())
        return gone

    def _mark_gone(self, chunk: Chunk, start: int, stop: int) -> int:
        size, files = chunk.mark_gone(start, stop)
        self.bytes -= size
        for file in files:
            self._lose_piece(file)
        if not chunk.living or self.many_attempts:
            self._went(chunk, start, stop)
        return stop - start

    def _went(self, chunk: Chunk, start: int, stop: int) -> None:
        """What else messages leave behind when they go."""
        if not chunk.living and chunk.number < self.next >> CHUNK_BITS:  # nothing more comes into it
            del self.chunks[chunk.number]
        if self.many_attempts:
            base = chunk.number << CHUNK_BITS
            for index in range(start, stop):
                self.many_attempts.pop(base + index, None)

    def _lose_piece(self, file: int, pieces: int = 1) -> None:
        if self.files[file] == pieces:
            del self.files[file]
            self.emptied.append(file)
        else:
            self.files[file] -= pieces

    def purge(self, kept: Collection[int]) -> tuple[int, dict[int, Chunk]]:
        """Removes all messages except the moving ones, which are all in the chunks `kept`.

        Returns their number, and the old chunks. Chunks that are not kept go without a visit to their messages.
        """
        before, chunks, self.chunks = self.messages, self.chunks, {}
        last = self.next >> CHUNK_BITS  # more may come into it
        for number, chunk in chunks.items():
            if number in kept or number == last:
                self.chunks[number] = chunk
                continue
            for file, pieces in chunk.files.items():
                self._lose_piece(file, pieces)
        left = self.counts[states.MOVING]
        self.counts = {**dict.fromkeys(states.NAMES, 0), states.MOVING: left}
        self.ready_by_priority = [0] * limits.PRIORITIES
        self.bytes = 0
        for chunk in [*self.chunks.values()]:
            if self.capture is not None:
                self.capture.before(chunk.number)
            for file in chunk.keep_moving():
                self._lose_piece(file)
            self.bytes += sum(compress(chunk.sizes, chunk.states))
            if not chunk.living and chunk.number < last:
                del self.chunks[chunk.number]
        if self.many_attempts:
            many = self.many_attempts.items()
            self.many_attempts = {sequence: count for sequence, count in many if self.state(sequence)}
        return before - left, chunks

    def _count(self, state_bytes: bytes | bytearray, sign: int) -> None:
        value = state_bytes[0]
        if state_bytes.count(value) == len(state_bytes):  # the usual case: one state, one priority
            state = value & STATE_BITS
            if state:
                self.counts[state] += sign * len(state_bytes)
            if state == READY:
                self.ready_by_priority[value & PRIORITY_BITS] += sign * len(state_bytes)
            return
        for value in set(state_bytes):
            state, count = value & STATE_BITS, sign * state_bytes.count(value)
            if state:
                self.counts[state] += count
            if state == READY:
                self.ready_by_priority[value & PRIORITY_BITS] += count

    # -- receives --------------------------------------------------------------------------------------------

    def receive_counts(self, run: Run) -> list[int]:
        """How often each message of the run has been received."""
        counts: list[int] = []
        for chunk, start, stop in self.pieces(run):
            part = chunk.attempts[start:stop] if chunk.attempts is not None else bytes(stop - start)
            if MANY in part:
                base, many = (chunk.number << CHUNK_BITS) + start, self.many_attempts
                counts += [many.get(base + i, MANY) if n == MANY else n for i, n in enumerate(part)]
            else:
                counts += part
        return counts

    def uncount(self, runs: Sequence[Run]) -> None:
        """Takes the last receive of each message of the runs away."""
        if self.capture is not None:
            self._before(runs)
        for run in runs:
            for chunk, start, stop in self.pieces(run):
                assert chunk.attempts is not None, "what was leased was counted"
                part = chunk.attempts[start:stop]
                chunk.attempts[start:stop] = part.translate(states.ONE_LESS)
                base = chunk.number << CHUNK_BITS
                for index in (start + i for i, times in enumerate(part) if times == MANY):
                    left = self.many_attempts.pop(base + index) - 1
                    if left >= MANY:
                        self.many_attempts[base + index] = left
                        chunk.attempts[index] = MANY

    def remember_first_received(self, runs: Sequence[Run], at_ms: int) -> None:
        """Keeps the time of the first receive, once a message comes back from one."""
        if self.capture is not None:
            self._before(runs)
        for run in runs:
            for chunk, start, stop in self.pieces(run):
                chunk.remember_first_received(start, stop, at_ms)

    def first_received(self, run: Run, default_ms: int) -> list[int]:
        """The time of the first receive of each message of the run."""
        times: list[int] = []
        for chunk, start, stop in self.pieces(run):
            if chunk.first_received_ms is None:
                times += [default_ms] * (stop - start)
            else:
                times += [value or default_ms for value in chunk.first_received_ms[start:stop]]
        return times

    # -- files -----------------------------------------------------------------------------------------------

    def living_places(self, files: set[int]) -> Iterator[Place]:
        """(position, chunk, piece) of everything living in the files. The table may change meanwhile."""
        for passed, number in enumerate(list(self.chunks), 1):
            chunk = self.chunks.get(number)
            if chunk is not None and not files.isdisjoint(chunk.files):
                for piece, position in chunk.living_pieces(files):
                    yield position, number, piece
            elif passed % CHUNKS_AT_ONCE == 0:
                yield PAUSE

    def relocate(self, number: int, piece: int, old: int, new: int) -> None:
        """Changes the position of a piece of a chunk if it is still the old one."""
        chunk = self.chunks.get(number)
        if chunk is None or piece >= len(chunk.positions) or chunk.positions[piece] != old:
            return
        if not chunk.is_living(piece):
            return
        if self.capture is not None:
            self.capture.before(number)
        chunk.relocate(piece, new)
        file = new >> FILE_SHIFT
        self.files[file] = self.files.get(file, 0) + 1
        self._lose_piece(old >> FILE_SHIFT)

    def begin_capture(self, image: Callable[[Chunk], bytes]) -> PageCapture[Chunk, bytes]:
        """Captures the chunks as they are now, until `capture` is None again."""
        self.capture = PageCapture(self.chunks, image)
        return self.capture

    def memory_bytes(self) -> int:
        """The memory that the columns use."""
        return sum(chunk.memory_bytes() for chunk in self.chunks.values())
