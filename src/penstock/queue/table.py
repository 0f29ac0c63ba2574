"""The message table of a partition: chunks of columns, counts, and the run operations on them.

Nothing here decides; callers say which run moves into which state, and the table keeps the columns, the
counts and the living pieces per file in step.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator

from penstock.model import limits
from penstock.model.runs import Run, Runs
from penstock.queue import states
from penstock.queue.chunk import CHUNK_BITS, CHUNK_MASK, CHUNK_MESSAGES, Chunk

Piece = tuple[Chunk, int, int]


class MessageTable:
    """Messages [1, next) of a partition; those that are gone cost nothing once their chunk is."""

    def __init__(self) -> None:
        self.next = 1
        self.chunks: dict[int, Chunk] = {}
        self.counts = dict.fromkeys((states.READY, states.LEASED, states.DELAYED, states.MOVING), 0)
        self.ready_by_priority = [0] * limits.PRIORITIES
        self.bytes = 0
        self.files: dict[int, int] = {}
        self.emptied: list[int] = []
        """Files in which nothing of this partition lives any more; whoever owns files takes them from here."""
        self.many_attempts: dict[int, int] = {}

    @property
    def messages(self) -> int:
        """All that are not gone."""
        return sum(self.counts.values())

    # -- growing ---------------------------------------------------------------------------------------------

    def append(
        self, state_bytes: bytes, sizes: memoryview | array[int], position: int, groups: array[int] | None
    ) -> None:
        """Adds a batch at `next`."""
        count, done = len(state_bytes), 0
        self.bytes += sum(sizes)
        while done < count:
            number, index = self.next >> CHUNK_BITS, self.next & CHUNK_MASK
            chunk = self.chunks.get(number)
            if chunk is None:
                chunk = self.chunks[number] = Chunk(number)
                if index:  # the chunk starts in the middle: what was before is gone
                    chunk.states += bytes(index)
                    chunk.sizes.frombytes(bytes(4 * index))
            take = min(count - done, CHUNK_MESSAGES - index)
            chunk.append(state_bytes[done : done + take], sizes[done : done + take], position)
            chunk.fill_groups(index, groups[done : done + take] if groups is not None else None, take)
            file = position >> 32
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
        base = chunk.number << CHUNK_BITS
        for match in states.RUNS_LIVING.finditer(chunk.states):
            self.bytes += sum(chunk.sizes[match.start() : match.end()])
        assert base + len(chunk.states) <= self.next

    # -- changing --------------------------------------------------------------------------------------------

    def pieces(self, run: Run) -> Iterator[Piece]:
        """The parts of a run, chunk by chunk; parts whose chunk is gone are left out."""
        first, count = run
        end = first + count
        while first < end:
            number, start = first >> CHUNK_BITS, first & CHUNK_MASK
            stop = min(start + end - first, CHUNK_MESSAGES)
            chunk = self.chunks.get(number)
            if chunk is not None and start < len(chunk.states):
                yield chunk, start, min(stop, len(chunk.states))
            first += stop - start

    def move(self, run: Run, into: int) -> None:
        """Moves the living messages of a run into a state."""
        table = states.INTO[into]
        for chunk, start, stop in self.pieces(run):
            old = chunk.states[start:stop]
            self._count(old, -1)
            new = old.translate(table)
            self._count(new, 1)
            chunk.states[start:stop] = new

    def bury(self, run: Run) -> int:
        """Marks the living messages of a run gone; returns how many there were."""
        buried = 0
        for chunk, start, stop in self.pieces(run):
            old = chunk.states[start:stop]
            self._count(old, -1)
            if 0 in old:
                for match in states.RUNS_LIVING.finditer(old):
                    buried += self._bury(chunk, start + match.start(), start + match.end())
            else:
                buried += self._bury(chunk, start, stop)
        return buried

    def _bury(self, chunk: Chunk, start: int, stop: int) -> int:
        size, files = chunk.bury(start, stop)
        self.bytes -= size
        for file in files:
            self.files[file] -= 1
            if not self.files[file]:
                del self.files[file]
                self.emptied.append(file)
        if not chunk.living and len(chunk.states) == CHUNK_MESSAGES:
            del self.chunks[chunk.number]
        if self.many_attempts:
            base = chunk.number << CHUNK_BITS
            for index in range(start, stop):
                self.many_attempts.pop(base + index, None)
        return stop - start

    def _count(self, state_bytes: bytes | bytearray, sign: int) -> None:
        if state_bytes.count(state_bytes[0]) == len(state_bytes):  # the usual case: one state, one priority
            state = state_bytes[0] & states.STATE_BITS
            if state:
                self.counts[state] += sign * len(state_bytes)
            if state == states.READY:
                self.ready_by_priority[state_bytes[0] & states.PRIORITY_BITS] += sign * len(state_bytes)
            return
        stripped = state_bytes.translate(states.STATE_ONLY)
        for state in self.counts:
            self.counts[state] += sign * stripped.count(state)
        for value in set(state_bytes):
            if value & states.STATE_BITS == states.READY:
                self.ready_by_priority[value & states.PRIORITY_BITS] += sign * state_bytes.count(value)

    # -- receives --------------------------------------------------------------------------------------------

    def count_receive(self, run: Run) -> None:
        """One more receive for each message of the run."""
        for chunk, start, stop in self.pieces(run):
            attempts = chunk.attempts
            if attempts is None:
                attempts = chunk.attempts = bytearray(CHUNK_MESSAGES)
            old = attempts[start:stop]
            attempts[start:stop] = old.translate(states.ONE_MORE)
            if old.count(254) or old.count(255):
                base = chunk.number << CHUNK_BITS
                for index in range(start, stop):
                    if attempts[index] == 255:
                        self.many_attempts[base + index] = self.many_attempts.get(base + index, 254) + 1

    def receive_counts(self, run: Run) -> list[int]:
        """How often each message of the run has been received."""
        counts: list[int] = []
        for chunk, start, stop in self.pieces(run):
            if chunk.attempts is None:
                counts.extend([0] * (stop - start))
                continue
            part = chunk.attempts[start:stop]
            if part.count(255):
                base = chunk.number << CHUNK_BITS
                counts.extend(
                    self.many_attempts.get(base + start + offset, 255) if value == 255 else value
                    for offset, value in enumerate(part)
                )
            else:
                counts.extend(part)
        return counts

    def remember_first_received(self, run: Run, at_ms: int) -> None:
        """Keeps the time of the first receive, once a message comes back from one."""
        for chunk, start, stop in self.pieces(run):
            column = chunk.first_received_ms
            if column is None:
                column = chunk.first_received_ms = array("Q", bytes(8 * CHUNK_MESSAGES))
            for index in range(start, stop):
                if not column[index]:
                    column[index] = at_ms

    def first_received(self, run: Run, default_ms: int) -> list[int]:
        """The time of the first receive of each message of the run."""
        times: list[int] = []
        for chunk, start, stop in self.pieces(run):
            if chunk.first_received_ms is None:
                times.extend([default_ms] * (stop - start))
            else:
                times.extend(value or default_ms for value in chunk.first_received_ms[start:stop])
        return times

    # -- looking ---------------------------------------------------------------------------------------------

    def state(self, sequence: int) -> int:
        """The state byte of one message; GONE for what never was."""
        chunk = self.chunks.get(sequence >> CHUNK_BITS)
        index = sequence & CHUNK_MASK
        return chunk.states[index] if chunk is not None and index < len(chunk.states) else states.GONE

    def runs_in(self, pattern: re.Pattern[bytes], first: int, end: int, most: int) -> Runs:
        """Up to `most` messages in the states of the pattern, lowest first, as runs."""
        runs: Runs = []
        for chunk, start, stop in self.living(first, end):
            base = chunk.number << CHUNK_BITS
            for match in pattern.finditer(chunk.states, start, stop):
                count = min(match.end() - match.start(), most)
                low = base + match.start()
                if runs and runs[-1][0] + runs[-1][1] == low:
                    runs[-1] = (runs[-1][0], runs[-1][1] + count)
                else:
                    runs.append((low, count))
                most -= count
                if not most:
                    return runs
        return runs

    def living(self, first: int, end: int) -> Iterator[Piece]:
        """The chunks between two sequence numbers that still exist, cut to them, in order."""
        low, high = first >> CHUNK_BITS, (end - 1) >> CHUNK_BITS
        numbers = range(low, high + 1) if high - low < len(self.chunks) else list(self.chunks)
        for number in numbers:
            chunk = self.chunks.get(number)
            if chunk is None or not low <= number <= high:
                continue
            start = first & CHUNK_MASK if number == low else 0
            stop = ((end - 1) & CHUNK_MASK) + 1 if number == high else CHUNK_MESSAGES
            yield chunk, start, min(stop, len(chunk.states))

    def first_living(self) -> int:
        """The lowest sequence number that may be living."""
        for number in self.chunks:
            return number << CHUNK_BITS
        return self.next

    def living_positions(self, files: set[int]) -> list[int]:
        """Positions of everything living in the files."""
        return [
            position
            for chunk in self.chunks.values()
            if not files.isdisjoint(chunk.files)
            for _, position in chunk.living_pieces(files)
        ]

    def relocate(self, moved: dict[int, int]) -> None:
        """Whatever still lives at an old position now lies at the new one."""
        files = {position >> 32 for position in moved}
        for chunk in self.chunks.values():
            if files.isdisjoint(chunk.files):
                continue
            for piece, position in chunk.living_pieces(files):
                new = moved.get(position)
                if new is None:
                    continue
                chunk.relocate(piece, new)
                self._recount_file(position >> 32, new >> 32)

    def _recount_file(self, old: int, new: int) -> None:
        self.files[new] = self.files.get(new, 0) + 1
        self.files[old] -= 1
        if not self.files[old]:
            del self.files[old]
            self.emptied.append(old)

    def memory_bytes(self) -> int:
        """What the columns occupy."""
        return sum(chunk.memory_bytes() for chunk in self.chunks.values())
