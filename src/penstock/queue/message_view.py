"""A read-only view of the messages of a partition: their states, run by run, through the chunks of columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from penstock.model.runs import Run, Runs
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS, CHUNK_MASK, CHUNK_MESSAGES, Chunk

Piece = tuple[Chunk, int, int]


class MessageView:
    """The messages [1, next), in chunks. Nothing here changes them."""

    def __init__(self) -> None:
        self.next = 1
        self.chunks: dict[int, Chunk] = {}

    def pieces(self, run: Run) -> list[Piece]:
        """The parts of a run, chunk by chunk, without parts whose chunk no longer exists."""
        first, count = run
        start = first & CHUNK_MASK
        if start + count <= CHUNK_MESSAGES:  # the usual case: one piece
            chunk = self.chunks.get(first >> CHUNK_BITS)
            if chunk is None or start >= len(chunk.states):
                return []
            return [(chunk, start, min(start + count, len(chunk.states)))]
        end = first + count
        found: list[Piece] = []
        while first < end:
            start = first & CHUNK_MASK
            stop = min(start + end - first, CHUNK_MESSAGES)
            chunk = self.chunks.get(first >> CHUNK_BITS)
            if chunk is not None and start < len(chunk.states):
                found.append((chunk, start, min(stop, len(chunk.states))))
            first += stop - start
        return found

    def state(self, sequence: int) -> int:
        """The state byte of one message; GONE for what never was."""
        chunk = self.chunks.get(sequence >> CHUNK_BITS)
        index = sequence & CHUNK_MASK
        return chunk.states[index] if chunk is not None and index < len(chunk.states) else states.GONE

    def count_groups(self, runs: Iterable[Run]) -> Counter[int]:
        """How many messages of the runs are in each group, in the order in which groups appear; 0 is none."""
        found: Counter[int] = Counter()
        for run in runs:
            first, count = run
            if count == 1:
                chunk = self.chunks.get(first >> CHUNK_BITS)
                if chunk is not None:
                    found[chunk.groups[first & CHUNK_MASK] if chunk.groups is not None else 0] += 1
                continue
            for chunk, start, stop in self.pieces(run):
                if chunk.groups is None:
                    found[0] += stop - start
                else:
                    found.update(chunk.groups[start:stop])
        return found

    def size_of(self, runs: Iterable[Run]) -> int:
        """The bytes of all messages of the runs."""
        return sum(sum(chunk.sizes[start:stop]) for run in runs for chunk, start, stop in self.pieces(run))

    def is_alive(self, run: Run) -> bool:
        """Whether any message of the run is not gone."""
        first, count = run
        if count == 1:
            return bool(self.state(first))
        return any(
            chunk.states.count(0, start, stop) != stop - start
            for chunk, start, stop in self.living(first, first + count)
        )

    def runs_in(
        self, pattern: re.Pattern[bytes], first: int, end: int, most: int, most_runs: int = 1 << 64
    ) -> Runs:
        """Up to `most` messages in the states of the pattern, lowest first, as runs; of these up to `most_runs`."""
        runs: Runs = []
        for chunk, start, stop in self.living(first, end):
            base = chunk.number << CHUNK_BITS
            for match in pattern.finditer(chunk.states, start, stop):
                count = min(match.end() - match.start(), most)
                low = base + match.start()
                if runs and runs[-1][0] + runs[-1][1] == low:
                    runs[-1] = (runs[-1][0], runs[-1][1] + count)
                elif len(runs) < most_runs:
                    runs.append((low, count))
                else:
                    return runs
                most -= count
                if not most:
                    return runs
        return runs

    def among(self, pattern: re.Pattern[bytes], runs: Iterable[Run]) -> Runs:
        """Those messages of the runs that are in the states of the pattern."""
        return [
            found for first, count in runs for found in self.runs_in(pattern, first, first + count, count)
        ]

    def leases_of(self, runs: Iterable[Run]) -> Iterator[tuple[int, Run]]:
        """(lease, run) of the messages of the runs, all of them out, in order."""
        for run in runs:
            for chunk, start, stop in self.pieces(run):
                column = chunk.leases
                assert column is not None, "what is out has its lease noted"
                base = chunk.number << CHUNK_BITS
                while start < stop:
                    lease, following = column[start], start + 1
                    while following < stop and column[following] == lease:
                        following += 1
                    yield lease, (base + start, following - start)
                    start = following

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
