"""The index of a retained log does what a plain list of batches would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from penstock.model.number_gaps import NumberGaps
from penstock.queue.log import index as log_index
from penstock.queue.log.index import LoggedRun, LogIndex

FILE = 1 << 32


class PlainLog:
    """Batches as rows: first, count, position, stored bytes, bytes, time. Numbers may be left out between them."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.next = 1

    def append(self, count: int, position: int, stored: int, size: int, sent_ms: int) -> None:
        self.rows.append([self.next, count, position, stored, size, sent_ms])
        self.next += count

    def ends(self) -> list[int]:
        """Where each batch ends, and numbers that were left out behind it."""
        return [row[0] for row in self.rows[1:]] + [self.next] * bool(self.rows)

    def cut(self, end: int) -> int:
        gone = [row for row in self.rows if row[0] + row[1] <= end]
        self.rows = self.rows[len(gone) :]
        return sum(row[1] for row in gone)

    def begin(self) -> int:
        return self.rows[0][0] if self.rows else self.next

    def files(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for row in self.rows:
            found[row[2] >> 32] = found.get(row[2] >> 32, 0) + 1
        return found

    def batches(self, start: int, max_messages: int, max_bytes: int, max_batches: int) -> list[LoggedRun]:
        found: list[LoggedRun] = []
        messages = size = 0
        for first, count, position, stored, _, sent_ms in self.rows:
            if first + count <= start:
                continue
            full = messages >= max_messages or len(found) == max_batches
            follows = not found or found[-1].first + found[-1].messages == first
            if full or not follows or (found and size + stored > max_bytes):
                break
            found.append(LoggedRun(first, count, position, stored, sent_ms))
            messages += first + count - max(first, start)
            size += stored
        return found


def relocate(log: LogIndex, moved: dict[int, int]) -> None:
    """As a checkpoint does, batch by batch."""
    for position, number, _ in list(log.places_in({position >> 32 for position in moved})):
        if position in moved:
            log.relocate(number, position, moved[position])


def check(log: LogIndex, plain: PlainLog) -> None:
    assert (log.begin, log.next, len(log)) == (plain.begin(), plain.next, len(plain.rows))
    assert log.messages == sum(row[1] for row in plain.rows)
    assert log.bytes == sum(row[4] for row in plain.rows)
    assert log.files == plain.files()
    for file in plain.files():
        places = [position for position, _, _ in log.places_in({file})]
        assert places == [row[2] for row in plain.rows if row[2] >> 32 == file]
    for start in range(plain.begin(), plain.next + 1):
        assert log.batches(start, 5, 40, 3) == (plain.batches(start, 5, 40, 3) if start < plain.next else [])
        holding = [row for row in plain.rows if start < row[0] + row[1]]
        assert log.sent_ms(start) == (holding[0][5] if holding else None)
        assert log.messages_from(start) == sum(
            max(0, row[0] + row[1] - max(row[0], start)) for row in plain.rows
        )
    for time_ms in {row[5] + late for row in plain.rows for late in (-1, 0, 1)}:
        since = [row[0] for row in plain.rows if row[5] >= time_ms]
        assert log.first_since(time_ms) == (since[0] if since else plain.next)
        until = [end for row, end in zip(plain.rows, plain.ends(), strict=True) if row[5] <= time_ms]
        assert log.end_of_age(time_ms, 1_000) == (until[-1] if until else plain.begin())
    for keep in (0, 1, 15, log.bytes, log.bytes + 1):
        end, left = plain.begin(), log.bytes
        for (_, _, _, _, size, _), ends in zip(plain.rows, plain.ends(), strict=True):
            if left - size < keep:
                break
            left, end = left - size, ends
        assert log.end_of_bytes(keep, 1_000) == end
        assert log.is_over(keep) == (end > plain.begin())


SENT = some.tuples(some.just("send"), some.integers(1, 6), some.integers(0, 3))
STEPS = some.lists(
    some.one_of(
        SENT,
        SENT,
        some.tuples(some.just("cut"), some.integers(0, 40), some.just(0)),
        some.tuples(some.just("move"), some.integers(0, 8), some.integers(1, 5)),
        some.tuples(some.just("reload"), some.just(0), some.just(0)),
        some.tuples(some.just("skip"), some.integers(1, 9), some.just(0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_it_does_what_a_plain_list_would(steps: list[tuple[str, int, int]]) -> None:
    log, plain = LogIndex(), PlainLog()
    emptied: list[int] = []
    ever: set[int] = set()
    journal, now_ms, offset = 1, 1_000, 0
    for kind, number, other in steps:
        if kind == "send":
            now_ms, offset = now_ms + other, offset + 64
            journal += other == 3
            sent = (number, journal * FILE + offset, 12 + 14 * number, 10 * number, now_ms)
            log.append(*sent)
            plain.append(*sent)
        elif kind == "cut":
            end = min(plain.begin() + number, plain.next)
            assert log.cut(end) == plain.cut(end)
        elif kind == "move" and plain.rows:  # a checkpoint moves some of the front of a journal file
            rows = [row for row in plain.rows if row[2] >> 32 <= journal][: number + 1]
            moved = {
                row[2]: (100 + other) * FILE + row[2] % FILE + 4_096 * place for place, row in enumerate(rows)
            }
            relocate(log, moved)
            for row in rows:
                row[2] = moved[row[2]]
        elif kind == "skip":
            log.gaps.add(log.next, log.next + number)
            log.next = plain.next = plain.next + number
        elif kind == "reload":
            parts, following = list(log.begin_capture().parts(other + 1)), log.next
            log = LogIndex(NumberGaps(log.gaps.pairs()))
            log.next = following
            for part in parts:
                log.load(part)
        emptied += log.emptied
        log.emptied.clear()
        check(log, plain)
        ever |= plain.files().keys()
        assert ever - plain.files().keys() <= set(emptied)
    log.cut(log.next)
    assert not log.files


def test_files_are_named_once_nothing_of_the_log_is_left_in_them() -> None:
    log = LogIndex()
    for number in range(6):
        log.append(10, (1 + number // 2) * FILE + number, 100, 100, 1_000)
    log.cut(31)
    assert log.begin == 31
    assert log.emptied == [1]
    relocate(log, {2 * FILE + 3: 9 * FILE})
    assert log.emptied == [1, 2]
    assert log.files == {3: 2, 9: 1}


def test_batches_of_two_files_that_lie_among_each_other_are_moved_each_out_of_its_own() -> None:
    log = LogIndex()
    for number, file in enumerate((1, 2, 1, 2)):
        log.append(10, file * FILE + number, 100, 100, 1_000)
    relocate(log, {1 * FILE + 0: 9 * FILE, 2 * FILE + 1: 9 * FILE + 1})
    assert log.files == {1: 1, 2: 1, 9: 2}
    assert log.emptied == []
    relocate(log, {1 * FILE + 2: 9 * FILE + 2, 2 * FILE + 3: 9 * FILE + 3})
    assert log.files == {9: 4}
    assert sorted(log.emptied) == [1, 2]


def test_a_long_history_of_cuts_takes_no_memory() -> None:
    log = LogIndex()
    for number in range(3 * log_index._COMPACT_AT_LEAST):
        log.append(1, FILE + number, 20, 10, number)
        log.cut(log.next - 10)
    assert len(log) == 10
    assert log.memory_bytes() <= 32 * (log_index._COMPACT_AT_LEAST + 11)
    assert log.batches(log.begin, 100, 10_000, 100)[0].position == FILE + 3 * log_index._COMPACT_AT_LEAST - 10


def test_numbers_left_out_before_the_beginning_can_be_read_from() -> None:
    log = LogIndex()
    log.append(10, FILE, 100, 100, 1_000)
    log.gaps.add(log.next, 1 << 36)
    log.next = 1 << 36
    assert (log.begin, log.readable_from, log.messages) == (1, 1, 10)
    log.append(5, FILE + 1, 50, 50, 2_000)
    assert log.messages == 15
    assert [run.first for run in log.batches(8, 100, 10_000, 100)] == [1], (
        "a slice ends where numbers are left out"
    )
    assert [run.first for run in log.batches(11, 100, 10_000, 100)] == [1 << 36]
    assert [run.first for run in log.batches(1 << 30, 100, 10_000, 100)] == [1 << 36]
    assert log.cut(11) == 10
    assert (log.begin, log.readable_from) == (1 << 36, 11), "nobody who is at 11 or later misses anything"
    assert log.cut(log.next) == 5
    assert (log.begin, log.readable_from) == (log.next, log.next), (
        "now what was behind the gap is gone as well"
    )
