"""The recent batches of producers, so that a repeated batch is answered and not stored again (I3).

Packed columns with three limits: the number of producers, of batches of one producer, and of all batches. When the total
is too large, the producer with the most batches loses its lowest number: each producer keeps its newest batches, however
many the others send. A number that is no longer remembered is refused, because it may have been stored or not. So the
highest forgotten number of every producer is kept.

Producers that are idle for long are forgotten. Only the first minute of a long pause between two batches of the partition
counts: otherwise all would be idle when a clock is set forward. A full table goes by the clock, so that it can accept new
producers.

It changes only when a record is applied, so all replicas have the same columns. A *row* is a batch, a *slot* is a producer. Rows of
a producer are chained by rising numbers, and 0 ends a chain. Slots are in rings, by their last use and by their number of rows.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterator
from typing import Literal

from penstock.model import limits
from penstock.queue.snapshot.producers_image import ProducersImage
from penstock.queue.state.packed_index import PackedIndex
from penstock.queue.state.rings import link, unlink
from penstock.queue.state.stored_batch import StoredBatch, packed, unpacked

_MASK = 2**64 - 1
_MOST = _MASK - 1
_LEVELS = limits.PRODUCER_BATCHES_REMEMBERED.bit_length()
"""Producers with 1 row are on level 1, with 2 or 3 on level 2, with 4 to 7 on level 3, and so on."""
_FIRST_SLOT = _LEVELS + 1
"""Slot 0 begins the ring of all producers by last use, slot n the ring of level n."""
HAS_DUPLICATES = 1 << 31
_RECENT = 1_024
_FORGOTTEN_AT_ONCE = 16
_COMPACT_AT_LEAST = 4_096
_COMPACT_SHARE = 32
_PACK_BYTES = 320  # what the duplicates of a batch take besides their numbers
_KINDS = "QQQQIIQQQIIHIIIIQIQI"  # of the columns, in the order of the snapshot
COLUMNS = len(_KINDS)

Batch = tuple[int, int, int, int, int, bytes | None]
"""(number, first, count, sent, stamp, duplicates) of a row."""


class ProducerTable:
    """The producers of a partition."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._numbers = array("Q", (0,))
        self._firsts = array("Q", (0,))
        self._sent_ms = array("Q", (0,))
        self._stamps = array("Q")
        """Made when the first stamp comes: most queues have none."""
        self._counts = array("I", (0,))
        self._following = array("I", (0,))
        """The next row of the producer, or the next free one."""
        self._free_row = 0
        self.batches = 0
        """How many are remembered."""
        self._ids = array("Q", bytes(8 * _FIRST_SLOT))
        self._forgotten = array("Q", bytes(8 * _FIRST_SLOT))
        """One more than the highest number that is no longer remembered."""
        self._last_ms = array("Q", bytes(8 * _FIRST_SLOT))
        """When it was last used, later by what did not count of long pauses since."""
        self._lowest = array("I", bytes(4 * _FIRST_SLOT))
        self._highest = array("I", bytes(4 * _FIRST_SLOT))
        """The last row; of a free slot the next free one."""
        self._held = array("H", bytes(2 * _FIRST_SLOT))
        self._earlier = array("I", range(_FIRST_SLOT))
        self._later = array("I", range(_FIRST_SLOT))
        self._before = array("I", range(_FIRST_SLOT))
        self._behind = array("I", range(_FIRST_SLOT))
        self._free_slot = 0
        self._top = 0
        """The highest level on which there is a producer."""
        self._index = PackedIndex()
        self._recent: dict[int, int] = {}
        """Slots of producers that sent lately: most lookups end here."""
        self._duplicates: OrderedDict[int, bytes] = OrderedDict()
        """By row: the duplicates that were left out of the batch, oldest first."""
        self._duplicates_bytes = 0

    def __len__(self) -> int:
        return len(self._index)

    # -- asking ----------------------------------------------------------------------------------------------

    def find(self, producer: int, number: int) -> StoredBatch | Literal["new", "unknown", "nothing"]:
        """The batch as it was stored; `new` if it was not stored, `unknown` if that is no longer known.

        `nothing`: every message of it had been sent before, and it is no longer known which messages those were.
        """
        slot = self._recent.get(producer) or self._find(producer)
        if not slot or number > self._numbers[self._highest[slot]]:
            return "new"
        if number < self._forgotten[slot]:
            return "unknown"
        row = self._row(slot, number)
        if not row:
            return "new"
        count, duplicates = self._counts[row], list[tuple[int, int]]()
        if count & HAS_DUPLICATES:
            pack = self._duplicates.get(row)
            if pack is None:
                return "unknown" if count & ~HAS_DUPLICATES else "nothing"
            duplicates = unpacked(pack)
            if not count & ~HAS_DUPLICATES:  # they are runs there
                duplicates = list(enumerate(s for first, n in duplicates for s in range(first, first + n)))
        stamp_us = self._stamps[row] if self._stamps else 0
        count &= ~HAS_DUPLICATES
        return StoredBatch(self._firsts[row], count, self._sent_ms[row], duplicates, stamp_us)

    def has_room(self, producer: int, now_ms: int) -> bool:
        """Whether the producer is known, or can be without one being forgotten that may still send a batch again."""
        if len(self._index) < limits.PRODUCERS_PER_QUEUE or self._find(producer):
            return True
        return self._last_ms[self._later[0]] <= now_ms - limits.PRODUCER_CROWDED_IDLE_MS

    def _find(self, producer: int) -> int:
        slot = self._index.get(producer) if 0 <= producer <= _MASK else 0
        if slot:
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            self._recent[producer] = slot
        return slot

    def _row(self, slot: int, number: int) -> int:
        """The row of a number of a producer; 0 where there is none."""
        numbers = self._numbers
        row = self._highest[slot]
        if numbers[row] <= number:
            return row if numbers[row] == number else 0
        row = self._lowest[slot]
        while numbers[row] < number:
            row = self._following[row]
        return row if numbers[row] == number else 0

    def _chain(self, slot: int) -> Iterator[int]:
        row = self._lowest[slot]
        for _ in range(self._held[slot]):
            yield row
            row = self._following[row]

    # -- remembering -----------------------------------------------------------------------------------------

    def add(
        self,
        producer: int,
        number: int,
        first: int,
        count: int,
        sent_ms: int,
        duplicates: list[tuple[int, int]] | None = None,
        stamp_us: int = 0,
    ) -> None:
        """The batch is stored; forgets batches and producers of which there are too many, and producers idle for long."""
        skipped_ms = sent_ms - self._last_ms[self._earlier[0]] - limits.PRODUCER_IDLE_STEP_MS
        if skipped_ms > 0 and 0 < len(self._index) < limits.PRODUCERS_PER_QUEUE:  # 15 ms for 100,000 of them
            self._last_ms[_FIRST_SLOT:] = array("Q", map(skipped_ms.__add__, self._last_ms[_FIRST_SLOT:]))
        slot = self._recent.get(producer) or self._find(producer & _MASK)
        if not slot:
            while len(self._index) >= limits.PRODUCERS_PER_QUEUE:
                self._leave(self._later[0])
            slot = self._enter(producer & _MASK, 0)
        elif self._earlier[0] != slot:
            unlink(self._earlier, self._later, slot)
            link(self._earlier, self._later, slot, 0)
        self._last_ms[slot] = sent_ms
        if duplicates or stamp_us or self._stamps or self._duplicates or not 0 <= number <= _MOST:
            pack = packed(duplicates) if duplicates else None
            count = count | HAS_DUPLICATES if duplicates else count
            self._keep(slot, (min(number & _MASK, _MOST), first, count, sent_ms, stamp_us, pack))
        else:
            self._keep_plain(slot, number, first, count, sent_ms)
        if self._last_ms[self._later[0]] <= sent_ms - limits.PRODUCER_IDLE_MS:
            self._forget_idle(sent_ms - limits.PRODUCER_IDLE_MS)

    def _keep_plain(self, slot: int, number: int, first: int, count: int, sent_ms: int) -> None:
        """`_keep` for a batch with nothing special about it: a third of the time, and almost every send."""
        numbers, following = self._numbers, self._following
        highest, row = self._highest[slot], self._lowest[slot]
        if numbers[highest] < number and row != highest and self._must_give_up(self._held[slot]):
            # The row of its lowest number becomes that of its highest.
            self._forgotten[slot] = numbers[row] + 1
            self._lowest[slot] = following[row]
            following[row] = 0
            following[highest] = self._highest[slot] = row
            numbers[row] = number
            self._firsts[row] = first
            self._counts[row] = count
            self._sent_ms[row] = sent_ms
        else:
            self._keep(slot, (number, first, count, sent_ms, 0, None))

    def _forget_idle(self, cutoff_ms: int) -> None:
        for _ in range(_FORGOTTEN_AT_ONCE):
            oldest = self._later[0]
            if not oldest or self._last_ms[oldest] > cutoff_ms:
                break
            self._leave(oldest)
        if len(self._numbers) >= _COMPACT_AT_LEAST and self.batches * _COMPACT_SHARE <= len(self._numbers):
            self._compact()

    def _enter(self, producer: int, forgotten: int) -> int:
        slot = self._free_slot
        if slot:
            self._free_slot = self._highest[slot]
            self._ids[slot], self._forgotten[slot], self._highest[slot] = producer, forgotten, 0
        else:
            slot = len(self._ids)
            self._ids.append(producer)
            self._forgotten.append(forgotten)
            for column in (self._last_ms, self._lowest, self._highest, self._held):
                column.append(0)
            for column in (self._earlier, self._later, self._before, self._behind):
                column.append(slot)
        link(self._earlier, self._later, slot, 0)
        self._index.put(producer, slot)
        return slot

    def _leave(self, slot: int) -> None:
        """The producer is forgotten."""
        producer = self._ids[slot]
        self._index.remove(producer)
        self._recent.pop(producer, None)
        unlink(self._earlier, self._later, slot)
        for row in list(self._chain(slot)):
            self._free(row)
        self._hold(slot, 0)
        self._lowest[slot], self._highest[slot], self._free_slot = 0, self._free_slot, slot

    def _keep(self, slot: int, batch: Batch) -> None:
        number = batch[0]
        known = self._row(slot, number) if self._held[slot] else 0
        if known:
            self._fill(known, batch)
            return
        if self._must_give_up(self._held[slot]):
            if number < self._numbers[self._lowest[slot]]:  # a gap that is filled late
                self._forgotten[slot] = number + 1
                return
            self._give_up_lowest(slot)
        row = self._new_row()
        self._fill(row, batch)
        numbers, following = self._numbers, self._following
        highest = self._highest[slot]
        if not self._held[slot]:
            self._lowest[slot] = self._highest[slot] = row
        elif numbers[highest] < number:
            following[highest] = self._highest[slot] = row
        elif numbers[lowest := self._lowest[slot]] > number:
            following[row], self._lowest[slot] = lowest, row
        else:
            previous = lowest
            while numbers[following[previous]] < number:
                previous = following[previous]
            following[row], following[previous] = following[previous], row
        self._hold(slot, self._held[slot] + 1)

    def _fill(self, row: int, batch: Batch) -> None:
        self._numbers[row], self._firsts[row], self._counts[row], self._sent_ms[row], stamp_us, pack = batch
        if stamp_us or self._stamps:
            if not self._stamps:
                self._stamps = array("Q", bytes(8 * len(self._numbers)))
            self._stamps[row] = stamp_us
        self._drop_duplicates(row)
        if pack is not None:
            self._duplicates[row] = pack
            self._duplicates_bytes += len(pack) + _PACK_BYTES
            while self._duplicates_bytes > limits.PRODUCER_DUPLICATES_BYTES and len(self._duplicates) > 1:
                self._drop_duplicates(next(iter(self._duplicates)))

    def _drop_duplicates(self, row: int) -> None:
        """The answer of a batch is lost with its duplicates: from now on it is one that is too old."""
        pack = self._duplicates.pop(row, None)
        if pack is not None:
            self._duplicates_bytes -= len(pack) + _PACK_BYTES

    def _must_give_up(self, held: int) -> bool:
        """Whether a producer with so many rows gives one up for another; else one may have to that has more."""
        if held >= limits.PRODUCER_BATCHES_REMEMBERED:
            return True
        return held.bit_length() == self._top and self._is_full()

    def _is_full(self) -> bool:
        # There are more rows than producers, so some producer has two of them, and every producer keeps one.
        return self.batches >= max(limits.PRODUCER_BATCHES_PER_QUEUE, limits.PRODUCERS_PER_QUEUE + 1)

    def _new_row(self) -> int:
        if self._is_full():
            self._give_up_lowest(self._behind[self._top])
        self.batches += 1
        row = self._free_row
        if row:
            self._free_row = self._following[row]
            self._following[row] = 0
            return row
        for column in (self._numbers, self._firsts, self._sent_ms, self._counts, self._following):
            column.append(0)
        if self._stamps:
            self._stamps.append(0)
        return len(self._numbers) - 1

    def _give_up_lowest(self, slot: int) -> None:
        row = self._lowest[slot]
        self._forgotten[slot], self._lowest[slot] = self._numbers[row] + 1, self._following[row]
        self._free(row)
        self._hold(slot, self._held[slot] - 1)

    def _free(self, row: int) -> None:
        self._drop_duplicates(row)
        self._following[row], self._free_row = self._free_row, row
        self.batches -= 1

    def _hold(self, slot: int, rows: int) -> None:
        """The producer has so many rows now."""
        level = rows.bit_length()
        if self._held[slot].bit_length() != level:
            unlink(self._before, self._behind, slot)
            if level:
                link(self._before, self._behind, slot, level)
                self._top = max(self._top, level)
            self._lower_top()
        self._held[slot] = rows

    def _lower_top(self) -> None:
        while self._top and self._behind[self._top] == self._top:
            self._top -= 1

    # -- making it small again -------------------------------------------------------------------------------

    def producers(self) -> Iterator[tuple[int, int, int, list[Batch]]]:
        """(producer, last use, highest number forgotten or -1, rows by number), by last use."""
        slot = 0
        while slot := self._later[slot]:
            batches = [self._batch(row) for row in self._chain(slot)]
            yield self._ids[slot], self._last_ms[slot], self._forgotten[slot] - 1, batches

    def _batch(self, row: int) -> Batch:
        return (
            self._numbers[row],
            self._firsts[row],
            self._counts[row],
            self._sent_ms[row],
            self._stamps[row] if self._stamps else 0,
            self._duplicates.get(row),
        )

    def restore(self, producer: int, last_ms: int, forgotten: int, batches: list[Batch]) -> None:
        """Adds a producer as the most recent user of the table."""
        slot = self._enter(producer & _MASK, min(forgotten + 1, _MASK))
        self._last_ms[slot] = last_ms
        for batch in batches:
            self._keep(slot, batch)

    def _compact(self) -> None:
        """Copies the columns when most rows are unused. All replicas do this after the same record."""
        kept = list(self.producers())
        self._reset()
        for row in kept:
            self.restore(*row)

    # -- the snapshot ----------------------------------------------------------------------------------------

    def _columns(self) -> list[array[int]]:
        return [
            *(self._numbers, self._firsts, self._sent_ms, self._stamps, self._counts, self._following),
            *(self._ids, self._forgotten, self._last_ms, self._lowest, self._highest, self._held),
            *(self._earlier, self._later, self._before, self._behind),
        ]

    def dump(self) -> ProducersImage:
        """For the snapshot: 14 MB where everything is full, which takes some milliseconds to copy."""
        columns = [column.tobytes() for column in (*self._columns(), *self._index.columns())]
        marks = self._free_row, self.batches, self._free_slot
        return ProducersImage(marks, columns, list(self._duplicates.items()))

    def load(self, image: ProducersImage) -> None:
        """From the snapshot."""
        own = self._columns()
        columns = [array(kind, data) for kind, data in zip(_KINDS, image.columns, strict=True)]
        rows, slots = columns[:6], columns[6 : len(own)]
        lengths = {len(column) for column in rows if column is not rows[3] or column}
        if len(lengths) != 1 or len({len(column) for column in slots}) != 1 or len(slots[0]) < _FIRST_SLOT:
            raise ValueError("the table of producers has columns of different lengths")
        self._numbers, self._firsts, self._sent_ms, self._stamps, self._counts, self._following = rows
        self._ids, self._forgotten, self._last_ms, self._lowest, self._highest, self._held = slots[:6]
        self._earlier, self._later, self._before, self._behind = slots[6:]
        self._free_row, self.batches, self._free_slot = image.marks
        self._index.load(columns[len(own) :])
        self._top = _LEVELS
        self._lower_top()
        self._recent, self._duplicates = {}, OrderedDict(image.duplicates)
        self._duplicates_bytes = sum(len(pack) + _PACK_BYTES for _, pack in image.duplicates)
