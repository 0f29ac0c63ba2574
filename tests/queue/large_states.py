"""Partitions that are large in one part of their state each, made by records."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.model.batch import Batch, encode
from penstock.model.origin import Origin
from penstock.model.records import (
    Deleted,
    GroupChanged,
    IdsClaimed,
    Leased,
    MoveStarted,
    OffsetCommitted,
    QueueRecord,
    Released,
    Sent,
)
from penstock.model.settings import QueueSettings
from penstock.queue.partition import Partition

START_MS = 1_000_000
BATCH = 1_000
HOUR_MS = 3_600_000

Make = Callable[[int], Partition]


class Maker:
    """Applies records to a partition, batch after batch."""

    def __init__(self, settings: QueueSettings | None = None) -> None:
        self.partition = Partition(1, "orders", settings or QueueSettings(), START_MS)
        self._stored = 0

    def send(self, batch: Batch, **fields: object) -> int:
        """Appends a batch; returns the number of its first message."""
        first = self.partition.table.next
        self._stored += 1
        position = (1 + self._stored // 1_000) << 32 | 64 * (self._stored % 1_000)
        row = {"sent_ms": START_MS, "delay_ms": 0, "ttl_ms": 0, "producer": 0, "number": 0, **fields}
        self.partition.apply(Sent(first, batch.count, **row), batch, position)  # type: ignore[arg-type]
        return first

    def apply(self, record: QueueRecord) -> None:
        """Another record."""
        self.partition.apply(record)


def _numbers(rows: int, most: int = BATCH) -> Iterator[range]:
    for start in range(0, rows, most):
        yield range(start, min(start + most, rows))


def plain(rows: int) -> Partition:
    maker = Maker()
    batch = encode([b"x"] * BATCH)
    for _ in range(rows // BATCH):
        maker.send(batch)
    return maker.partition


def scattered(rows: int) -> Partition:
    """Every other message is gone; of the others every other one is out."""
    maker = Maker()
    batch = encode([b"x"] * BATCH)
    for lease in range(1, rows // BATCH + 1):
        first = maker.send(batch)
        maker.apply(Leased(lease, [(first, BATCH)], START_MS, START_MS + HOUR_MS))
        maker.apply(Deleted(lease, [(first + place, 1) for place in range(0, BATCH, 2)], START_MS))
        back = [(first + place, 1) for place in range(1, BATCH, 4)]
        maker.apply(Released(lease, back, "released", START_MS, START_MS))
    return maker.partition


def timers(rows: int) -> Partition:
    """A delay and a time to live of its own for each message."""
    maker = Maker()
    for numbers in _numbers(rows):
        delays = [1_000 + number * 7_919 % 10_000_000 for number in numbers]
        ttls = [20_000_000 + number * 104_729 % 30_000_000 for number in numbers]
        maker.send(encode([b"x"] * len(numbers), delays_ms=delays, ttls_ms=ttls))
    return maker.partition


def distant_timers(rows: int) -> Partition:
    """Times to live that are far from each other, most of them alone in their page."""
    maker = Maker()
    for numbers in _numbers(rows):
        ttls = [1_000 + number * 7_919_000 % (rows * 15_000) for number in numbers]
        maker.send(encode([b"x"] * len(numbers), ttls_ms=ttls))
    return maker.partition


def one_slot(rows: int) -> Partition:
    """Messages that are due together and do not follow each other."""
    maker = Maker()
    for numbers in _numbers(2 * rows):
        ttls = [HOUR_MS if number % 2 else 0 for number in numbers]
        maker.send(encode([b"x"] * len(numbers), ttls_ms=ttls))
    return maker.partition


def leases(rows: int) -> Partition:
    maker = Maker()
    for numbers in _numbers(rows):
        first = maker.send(encode([b"x"] * len(numbers)))
        for place in range(len(numbers)):
            number = maker.partition.leases.next
            maker.apply(Leased(number, [(first + place, 1)], START_MS, START_MS + HOUR_MS + number))
    return maker.partition


def attempts(rows: int) -> Partition:
    maker = Maker()
    for numbers in _numbers(rows):
        first = maker.send(encode([b"x"] * len(numbers)))
        for place, number in enumerate(numbers):
            lease = maker.partition.leases.next
            runs = [(first + place, 1)]
            maker.apply(Leased(lease, runs, START_MS, START_MS + HOUR_MS, b"attempt %d" % number))
    return maker.partition


def _grouped(rows: int, settings: QueueSettings) -> Partition:
    maker = Maker(settings)
    for numbers in _numbers(rows):
        maker.send(encode([b"x"] * len(numbers), groups=[b"group %d" % number for number in numbers]))
    return maker.partition


def strict_groups(rows: int) -> Partition:
    return _grouped(rows, QueueSettings(ordering="fifo"))


def fair_groups(rows: int) -> Partition:
    return _grouped(rows, QueueSettings())


def free_groups(rows: int) -> Partition:
    """Groups of which all but the last batch are gone again."""
    maker = Maker()
    for numbers in _numbers(rows, rows // 2):
        names = [b"group %d" % number for number in numbers]
        for start in range(0, len(names), BATCH):
            part = names[start : start + BATCH]
            maker.send(encode([b"x"] * len(part), groups=part))
    end = maker.partition.table.next - BATCH
    for first in range(1, end, BATCH):
        lease = maker.partition.leases.next
        maker.apply(Leased(lease, [(first, BATCH)], START_MS, START_MS + HOUR_MS))
        maker.apply(Deleted(lease, [(first, BATCH)], START_MS))
    return maker.partition


def one_group(rows: int) -> Partition:
    """All messages in one ordered group."""
    maker = Maker(QueueSettings(ordering="fifo"))
    for numbers in _numbers(rows):
        maker.send(encode([b"x"] * len(numbers), groups=[b"group"] * len(numbers)))
    return maker.partition


def ids(rows: int) -> Partition:
    maker = Maker(QueueSettings(ordering="fifo", deduplication_window_ms=HOUR_MS))
    for numbers in _numbers(rows):
        maker.send(encode([b"x"] * len(numbers), deduplication_ids=[b"id %d" % n for n in numbers]))
    return maker.partition


def claims(rows: int) -> Partition:
    maker = Maker(QueueSettings(ordering="fifo"))
    for numbers in _numbers(rows):
        names = [b"id %d" % number for number in numbers]
        maker.apply(IdsClaimed(names, [1] * len(names), 7, START_MS + HOUR_MS, START_MS))
    return maker.partition


def producers(rows: int) -> Partition:
    maker = Maker()
    batch = encode([b"x"])
    for number in range(rows):
        maker.send(batch, producer=1 + number * 7_919, number=number)
    return maker.partition


def duplicates(rows: int) -> Partition:
    """Batches of producers that left out duplicates, as many as are remembered."""
    maker = Maker()
    batch = encode([b"x"])
    for number in range(rows):
        maker.send(batch, producer=1 + number, number=number, duplicates=[(1, 1), (3, 1)])
    return maker.partition


def log_index(rows: int) -> Partition:
    maker = Maker(QueueSettings(consumption="log"))
    batch = encode([b"x"])
    for _ in range(rows):
        maker.send(batch)
    return maker.partition


def readers(rows: int) -> Partition:
    """Groups of readers, of which some have many members."""
    maker = Maker(QueueSettings(consumption="log"))
    for number in range(rows):
        name = f"readers {number}"
        members = [f"member {place}" for place in range(1_000 if number % 100 == 0 else 3)]
        maker.apply(OffsetCommitted(name, 1, START_MS))
        maker.apply(GroupChanged(name, 1, members, START_MS, [10_000] * len(members)))
    return maker.partition


def late_heads(rows: int) -> Partition:
    """Batches with stamps on a best-effort queue, every other one late."""
    maker = Maker()
    batch = encode([b"x"])
    for number in range(rows):
        late = number % 2
        stamp_us = START_MS * 1_000 - rows + number - 5_000 * late
        maker.send(batch, stamp_us=stamp_us, process=7, counter=number, late=late)
    return maker.partition


def clock_window(rows: int) -> Partition:
    """What waits in the window of a queue that is ordered by stamps: batches of one message."""
    maker = Maker(QueueSettings(ordering="clock", stamps="producer", window_ms=HOUR_MS))
    batch = encode([b"x"])
    for number in range(rows):
        stamp_us = START_MS * 1_000 + number * 7_919 % rows
        maker.send(batch, stamp_us=stamp_us, process=7, counter=number)
    return maker.partition


def causal_sessions(rows: int) -> Partition:
    """Sessions with one batch each that waits."""
    maker = Maker(QueueSettings(ordering="causal", window_ms=HOUR_MS))
    batch = encode([b"x"])
    for number in range(rows):
        maker.send(batch, stamp_us=START_MS * 1_000 + number, process=1 + number, counter=1)
    return maker.partition


def one_session(rows: int) -> Partition:
    """One session of which everything waits."""
    maker = Maker(QueueSettings(ordering="causal", window_ms=HOUR_MS))
    batch = encode([b"x"])
    for number in range(rows):
        maker.send(batch, stamp_us=START_MS * 1_000 + number, process=1, counter=number)
    return maker.partition


def late_batches(rows: int) -> Partition:
    """Late messages of a sorted queue, which are still here."""
    maker = Maker(QueueSettings(ordering="clock", stamps="producer", window_ms=HOUR_MS))
    batch = encode([b"x"])
    for number in range(rows):
        maker.send(batch, stamp_us=START_MS + number, process=7, counter=number, late=1)
    return maker.partition


def lifecycle(rows: int) -> Partition:
    maker = Maker(QueueSettings(lifecycle=True))
    batch = encode([b"x"])
    for _ in range(rows):
        maker.send(batch)
    return maker.partition


def moves(rows: int) -> Partition:
    """Messages on their way elsewhere, none beside another."""
    maker = Maker()
    batch = encode([b"x"] * BATCH)
    runs: list[tuple[int, int]] = []
    for _ in range(2 * rows // BATCH):
        first = maker.send(batch)
        runs += [(first + place, 1) for place in range(0, BATCH, 2)]
    maker.apply(MoveStarted(runs, "elsewhere", "redrive", START_MS))
    return maker.partition


def origins(rows: int) -> Partition:
    """Messages that came from elsewhere, none beside another there."""
    maker = Maker()
    arrived: list[tuple[int, int]] = []
    for numbers in _numbers(rows):
        arrived += [(2 * number + 1, 1) for number in numbers]
    maker.send(encode([b"x"]), origin=Origin(9, "elsewhere", "redrive", arrived, START_MS, [1], START_MS))
    return maker.partition


MAKERS: dict[str, Make] = {
    make.__name__: make
    for make in (
        *(plain, scattered, timers, distant_timers, one_slot, leases, attempts),
        *(strict_groups, fair_groups, free_groups, one_group, ids, claims, producers, duplicates),
        *(log_index, readers, late_heads, clock_window, causal_sessions, one_session, late_batches),
        *(lifecycle, moves, origins),
    )
}
