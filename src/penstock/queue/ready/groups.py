"""Groups: their names, and strict order inside each (FIFO).

The rule of a FIFO group: the longest ready prefix of its remaining messages may be delivered. So no message is delivered
before a predecessor that is leased, delayed or moving to a dead-letter queue, and a blocked group delays only itself.

On queues ordered by time, in addition, none of the group's messages may be leased. So two consumers never have messages of
one group at the same time. On a FIFO queue they may, as with SQS, if a message comes back before those that were received
after it.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from penstock.model import limits
from penstock.model.page_capture import PageCapture
from penstock.model.runs import Run, Runs, runs_in_order
from penstock.model.split_map import NUMBER_BITS, NameMap, NumberMap
from penstock.queue.decisions.budget import Budget
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS, CHUNK_MASK, Chunk
from penstock.queue.state.table import MessageTable

GroupRow = tuple[bytes, int, int]
"""(name, number, messages that live) of a group."""

OrderRow = tuple[int, "array[int]", int, int]
"""(number, sequences, start, stop): the messages of a group in their order. The column may have grown since."""

_COMPACT_AT_LEAST = 64
"""A group forgets messages that are gone when there are more of them than this, and most are."""


class GroupNames:
    """Numbers for group names, kept as long as a message of the group lives. 0 means "no group"."""

    def __init__(self) -> None:
        self._page_rows = limits.PAGE_ROWS
        self._numbers = NameMap()
        self._names: NumberMap[bytes] = NumberMap()
        self._living: NumberMap[int] = NumberMap()
        self._free: array[int] = array("I")
        self.capture: PageCapture[range, list[GroupRow]] | None = None

    def enter(self, names: Sequence[bytes]) -> array[int]:
        """The group numbers of new messages, in order."""
        column: list[int] = []
        numbers, living = self._numbers, self._living.pages
        parts, mask = numbers.parts, numbers.mask
        if self.capture is not None:
            self._announce(names)
        for name in names:
            number = parts[hash(name) & mask].get(name, 0)
            if number:
                living[number >> NUMBER_BITS][number] += 1
            elif name:
                number = self._free.pop() if self._free else len(numbers) + 1
                self._begin(name, number, 1)
                parts, mask = numbers.parts, numbers.mask
            column.append(number)
        return array("I", column)

    def _begin(self, name: bytes, number: int, living: int) -> None:
        self._numbers.put(name, number)
        self._names.put(number, name)
        self._living.put(number, living)

    def _announce(self, names: Sequence[bytes]) -> None:
        """Pages change in which the groups are, or in which there is room for them."""
        free = [
            *range(len(self._numbers) + 1, len(self._numbers) + len(names) + 1),
            *self._free[-len(names) :],
        ]
        self._before([*(number for name in names if (number := self._numbers.get(name))), *free])

    def _before(self, numbers: Iterable[int]) -> None:
        if self.capture is not None:
            for page in {number // self._page_rows for number in numbers}:
                self.capture.before(page)

    def name(self, number: int) -> bytes:
        """The name of a group that lives; empty for none."""
        return self._names.get(number) or b""

    def number(self, name: bytes) -> int:
        """The number of a group that lives; 0 for none."""
        return self._numbers.get(name)

    def living(self, number: int) -> int:
        """How many messages of a group live."""
        return self._living.get(number) or 0

    def leave(self, departures: Mapping[int, int]) -> None:
        """So many messages of each group are gone; a group without any is forgotten and its number free."""
        living = self._living.pages
        if self.capture is not None:
            self._before(departures)
        for number, count in departures.items():
            if not number:
                continue
            page = living[number >> NUMBER_BITS]
            if page[number] > count:
                page[number] -= count
            else:
                self._living.pop(number)
                self._numbers.remove(self._names.pop(number))
                self._free.append(number)

    def __len__(self) -> int:
        return len(self._numbers)

    def rows(self) -> list[GroupRow]:
        """(name, number, messages that live) of all groups, by number."""
        return self._rows(range(1, self.last + 1))

    @property
    def last(self) -> int:
        """The highest number that was ever given."""
        return len(self._numbers) + len(self._free)

    def _rows(self, numbers: range) -> list[GroupRow]:
        found: list[GroupRow] = []
        for page in range(numbers.start >> NUMBER_BITS, (numbers.stop - 1 >> NUMBER_BITS) + 1):
            names, living = self._names.pages.get(page, {}), self._living.pages.get(page, {})
            found += [(names[number], number, living[number]) for number in numbers if number in names]
        return found

    # -- the snapshot ----------------------------------------------------------------------------------------

    def begin_capture(self) -> PageCapture[range, list[GroupRow]]:
        """Captures the names as they are now, until `capture` is None again."""
        pages = pages_up_to(self.last, self._page_rows)
        self.capture = PageCapture(pages, self._rows)
        return self.capture

    def free(self) -> bytes:
        """The numbers that may be given to new groups, the next one last."""
        return self._free.tobytes()

    def load(self, rows: Iterable[GroupRow]) -> None:
        """Some groups from the snapshot."""
        for name, number, living in rows:
            if self._numbers.get(name) or self._names.get(number):
                raise ValueError(f"group {number} is there twice")
            self._begin(name, number, living)

    def load_free(self, numbers: bytes) -> None:
        """Some free numbers from the snapshot, behind those that are there."""
        self._free.frombytes(numbers)


def pages_up_to(last: int, rows: int) -> dict[int, range]:
    """The pages of a table whose rows are numbered from 0 without gaps."""
    return {page: range(page * rows, (page + 1) * rows) for page in range(last // rows + 1)}


class _Group:
    """The messages of one group, lowest first; some of them may be gone."""

    __slots__ = ("gone", "head", "queued", "reach", "sequences")

    def __init__(self) -> None:
        self.sequences = array("Q")
        self.head = 0
        """Everything before it is gone."""
        self.gone = 0
        self.reach = 0
        """All leased messages are before this position; used only when a message comes back before its successors."""
        self.queued = False

    def trim(self, chunks: dict[int, Chunk]) -> int:
        """Passes over what is gone at the front; returns the state of the first that is not, GONE if none."""
        sequences, head = self.sequences, self.head
        state = states.GONE
        while head < len(sequences):
            sequence = sequences[head]
            chunk = chunks.get(sequence >> CHUNK_BITS)
            if chunk is not None and (state := chunk.states[sequence & CHUNK_MASK] & states.STATE_BITS):
                break
            head += 1
        self.head = head
        if head == len(sequences) or (self.gone > _COMPACT_AT_LEAST and self.gone * 2 > len(sequences)):
            self._compact(chunks)
        return state

    def _living(self, chunks: dict[int, Chunk]) -> array[int]:
        sequences = self.sequences[self.head :]
        if self.gone <= self.head:
            return sequences
        return array(  # a first message that is stuck outlived others
            "Q",
            [
                sequence
                for sequence in sequences
                if (chunk := chunks.get(sequence >> CHUNK_BITS)) is not None
                and chunk.states[sequence & CHUNK_MASK]
            ],
        )

    def _compact(self, chunks: dict[int, Chunk]) -> None:
        self.sequences = self._living(chunks)
        self.reach = max(0, self.reach - self.head)
        self.head = self.gone = 0


class FifoGroups:
    """The ready order of a strict queue: groups take turns, and each delivers its ready prefix."""

    def __init__(self, table: MessageTable, *, exclusive: bool = False) -> None:
        self._table = table
        self._exclusive = exclusive
        """Whether a group gives nothing while any of its messages is out."""
        self._groups: NumberMap[_Group] = NumberMap()
        self._turns: deque[int] = deque()
        """Groups that are `queued`: those that may have something to give."""
        self._chosen: Runs = []
        self._page_rows = limits.PAGE_ROWS
        self.capture: PageCapture[range, list[OrderRow]] | None = None

    def sent(self, run: Run, groups: array[int] | None) -> None:
        """New messages join the end of their groups, ready or not."""
        pages = self._groups.pages
        numbers = groups if groups is not None else bytes(run[1])
        if self.capture is not None:
            self._before(numbers)
        for sequence, number in enumerate(numbers, run[0]):
            page = pages.get(number >> NUMBER_BITS)
            if page is None:
                page = pages[number >> NUMBER_BITS] = {}
            group = page.get(number)
            if group is None:
                group = page[number] = _Group()
            group.sequences.append(sequence)
        self._check(numbers)

    def add(self, run: Run) -> None:
        """Messages of the run became ready."""
        self._check(self._table.count_groups((run,)))

    def departed(self, departures: Mapping[int, int]) -> None:
        """So many messages of each group are gone: those behind them may be next."""
        for number, count in departures.items():
            group = self._groups.get(number)
            if group is not None:
                group.gone += count
        self._check(departures)

    def _check(self, numbers: Iterable[int]) -> None:
        """Gives a turn to each group whose first message is ready; forgets empty groups."""
        chunks, pages = self._table.chunks, self._groups.pages
        if self.capture is not None:
            numbers = list(numbers)
            self._before(numbers)
        for number in numbers:
            page = pages.get(number >> NUMBER_BITS)
            if page is None or (group := page.get(number)) is None:
                continue
            if group.queued:  # it keeps its turn; an empty one goes when its turn comes
                if group.gone * 2 > len(group.sequences):
                    group.trim(chunks)
                continue
            state = group.trim(chunks)
            if state == states.READY:
                group.queued = True
                self._turns.append(number)
            elif state == states.GONE:
                self._groups.pop(number)

    def may_give(self) -> bool:
        """Whether any group has its turn; if none has, ready messages wait for their predecessors."""
        return bool(self._turns or self._chosen)

    def choose(self, budget: Budget) -> Runs:
        """Ready prefixes, group after group; the groups leave their turn until something of theirs ends.

        If what was chosen is not leased after all, the next call may choose it again.
        """
        for run in self._chosen:
            self.add(run)
        runs: Runs = []
        turns = self._turns
        while turns and not budget.spent():
            number = turns.popleft()
            group = self._groups.pages[number >> NUMBER_BITS][number]
            taken = self._take_prefix(group, budget, runs)
            if not taken and budget.spent():  # it was too large for what was left: it is first the next time
                turns.appendleft(number)
                break
            group.queued = False
            if not taken:  # else what was taken is there, so the group is not empty
                group.trim(self._table.chunks)
                if not group.sequences:
                    self._groups.pop(number)
        self._chosen = runs
        return runs

    def _take_prefix(self, group: _Group, budget: Budget, runs: Runs) -> bool:
        """Adds the ready prefix of a group to the runs, as far as the budget goes; False if nothing was taken."""
        chunks = self._table.chunks
        if self._exclusive and group.reach > group.head and self._is_out(group):
            return False
        end, position, taken = -1, 0, False
        sequences = group.sequences
        for position in range(group.head, len(sequences)):
            sequence = sequences[position]
            chunk = chunks.get(sequence >> CHUNK_BITS)
            index = sequence & CHUNK_MASK
            state = chunk.states[index] if chunk is not None else states.GONE
            if state == states.GONE or chunk is None:
                continue
            if state & states.STATE_BITS != states.READY or budget.spent():
                break
            if not budget.take_one(chunk.sizes[index]):
                break
            taken = True
            if sequence == end:
                runs[-1] = (runs[-1][0], runs[-1][1] + 1)
            else:
                runs.append((sequence, 1))
            end = sequence + 1
        if taken and self._exclusive:
            group.reach = position + 1
        return taken

    def _is_out(self, group: _Group) -> bool:
        """Whether a message of the group is leased."""
        state = self._table.state
        for sequence in group.sequences[group.head : group.reach]:
            if state(sequence) & states.STATE_BITS == states.LEASED:
                return True
        group.reach = 0
        return False

    def leased(self, runs: Runs) -> None:
        """Messages are out: those that were chosen, or others where a record says so."""
        if self._exclusive and not self._chosen:
            self.went_out(runs)
        self._chosen = []

    def went_out(self, runs: Runs) -> None:
        """Notes messages that were leased without being chosen here."""
        for number in self._table.count_groups(runs):
            group = self._groups.get(number)
            if group is not None:
                group.reach = len(group.sequences)

    def arranged(self, runs: Runs) -> Runs:
        """Messages in the order of their groups, which is not that of their numbers where they were sorted."""
        wanted = {sequence for first, count in runs for sequence in range(first, first + count)}
        numbers = self._table.count_groups(runs)
        found: list[int] = []
        for number in numbers:
            group = self._groups.get(number)
            if group is not None:
                left = numbers[number]
                for sequence in group.sequences[group.head :]:
                    if sequence in wanted:
                        found.append(sequence)
                        left -= 1
                        if not left:
                            break
        return runs_in_order(found)

    # -- the snapshot of a queue whose order does not follow from its columns ----------------------------------

    def _before(self, numbers: Iterable[int]) -> None:
        if self.capture is not None:
            for page in {number // self._page_rows for number in numbers}:
                self.capture.before(page)

    def begin_capture(self, last: int) -> PageCapture[range, list[OrderRow]]:
        """Captures the order as it is now, until `capture` is None again; no group has a higher number than `last`."""
        self.capture = PageCapture(pages_up_to(last, self._page_rows), self._rows)
        return self.capture

    def _rows(self, numbers: range) -> list[OrderRow]:
        groups = self._groups
        return [
            (number, group.sequences, group.head, len(group.sequences))
            for number in numbers
            if (group := groups.get(number)) is not None
        ]

    def load(self, number: int, sequences: Iterable[int]) -> None:
        """Some messages of a group from the snapshot, behind those that are there; the table has them already."""
        group = self._groups.get(number)
        if group is None:
            group = _Group()
            self._groups.put(number, group)
        group.sequences.extend(sequences)
        self._check((number,))
