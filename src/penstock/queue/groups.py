"""Groups: their names, and strict order inside each (FIFO).

The rule of a FIFO group in one sentence: what may be delivered is the longest ready prefix of its messages
that are not gone. So nothing is ever delivered past a predecessor that is out, delayed or on its way to a
dead-letter queue, and one stuck group holds up nobody but itself.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Sequence

from penstock.model.runs import Run, Runs
from penstock.queue import states
from penstock.queue.chunk import CHUNK_BITS, CHUNK_MASK
from penstock.queue.lanes import Budget
from penstock.queue.table import MessageTable


class GroupNames:
    """Numbers for group names, for as long as a message of the group lives. 0 is "no group"."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}
        self._living: dict[int, int] = {}
        self._free: list[int] = []

    def enter(self, names: Iterable[bytes]) -> array[int]:
        """The group numbers of new messages, in order."""
        column = array("I")
        numbers, living = self._numbers, self._living
        for name in names:
            if not name:
                column.append(0)
                continue
            number = numbers.get(name)
            if number is None:
                number = self._free.pop() if self._free else len(numbers) + 1
                numbers[name] = number
                self._names[number] = name
                living[number] = 0
            living[number] += 1
            column.append(number)
        return column

    def leave(self, column: Iterable[int]) -> None:
        """Messages of these groups are gone; a group without any is forgotten and its number free."""
        living = self._living
        for number in column:
            if not number:
                continue
            if living[number] > 1:
                living[number] -= 1
            else:
                del living[number]
                del self._numbers[self._names.pop(number)]
                self._free.append(number)

    def __len__(self) -> int:
        return len(self._numbers)

    def dump(self) -> tuple[list[tuple[bytes, int, int]], list[int]]:
        """For the snapshot."""
        return [(name, number, self._living[number]) for name, number in self._numbers.items()], self._free

    def load(self, dumped: tuple[list[tuple[bytes, int, int]], list[int]]) -> None:
        """From the snapshot."""
        groups, self._free = dumped
        self._numbers = {name: number for name, number, _ in groups}
        self._names = {number: name for name, number, _ in groups}
        self._living = {number: living for _, number, living in groups}


class _Group:
    """The messages of one group that may not be gone yet, lowest first."""

    __slots__ = ("head", "queued", "sequences")

    def __init__(self) -> None:
        self.sequences = array("Q")
        self.head = 0
        self.queued = False

    def trim(self, table: MessageTable) -> None:
        """Passes over what is gone at the front."""
        sequences, head = self.sequences, self.head
        while head < len(sequences) and table.state(sequences[head]) == states.GONE:
            head += 1
        if head > 64 and head * 2 > len(sequences):
            del sequences[:head]
            head = 0
        self.head = head


class FifoGroups:
    """The ready order of a FIFO queue: groups take turns, each gives its ready prefix."""

    def __init__(self, table: MessageTable) -> None:
        self._table = table
        self._groups: dict[int, _Group] = {}
        self._turns: deque[int] = deque()

    def sent(self, first: int, groups: Sequence[int]) -> None:
        """New messages join the end of their groups, ready or not."""
        known = self._groups
        for sequence, number in enumerate(groups, first):
            group = known.get(number)
            if group is None:
                group = known[number] = _Group()
            group.sequences.append(sequence)

    def add(self, run: Run) -> None:
        """Messages of the run became ready."""
        for chunk, start, stop in self._table.pieces(run):
            if chunk.groups is None:
                self._check(0)
            else:
                for number in chunk.groups[start:stop]:
                    self._check(number)

    def departed(self, groups: set[int]) -> None:
        """Messages of these groups are gone: those behind them may be next."""
        for number in groups:
            self._check(number)

    def _check(self, number: int) -> None:
        group = self._groups.get(number)
        if group is None or group.queued:
            return
        group.trim(self._table)
        if group.head == len(group.sequences):
            del self._groups[number]
        elif self._table.state(group.sequences[group.head]) & states.STATE_BITS == states.READY:
            group.queued = True
            self._turns.append(number)

    def choose(self, budget: Budget) -> Runs:
        """Ready prefixes, group after group; the groups leave their turn until something of theirs ends."""
        runs: Runs = []
        chunks = self._table.chunks
        while self._turns and not budget.spent():
            number = self._turns.popleft()
            group = self._groups.get(number)
            if group is None:
                continue
            group.trim(self._table)
            sequences = group.sequences
            taken = 0
            for index in range(group.head, len(sequences)):
                sequence = sequences[index]
                chunk = chunks.get(sequence >> CHUNK_BITS)
                state = (
                    chunk.states[sequence & CHUNK_MASK] & states.STATE_BITS
                    if chunk is not None
                    else states.GONE
                )
                if state == states.GONE:
                    continue
                if state != states.READY or budget.spent() or chunk is None:
                    break
                if not budget.take([chunk.sizes[sequence & CHUNK_MASK]]):
                    break
                taken += 1
                if runs and runs[-1][0] + runs[-1][1] == sequence:
                    runs[-1] = (runs[-1][0], runs[-1][1] + 1)
                else:
                    runs.append((sequence, 1))
            if taken or not budget.spent():
                group.queued = False
                if group.head == len(sequences):
                    del self._groups[number]
            else:
                self._turns.appendleft(number)
        return runs
