"""What was sent before: deduplication ids, batches of producers, and messages that moved in.

Three tables, one promise: the same thing sent twice is stored once (I3). All of them are changed only when a
record is applied, and forget by the time in that record, so every replica remembers the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model import limits
from penstock.model.runs import Runs, difference, intersection, normalized


class DeduplicationWindow:
    """Deduplication ids and the message each named first, for as long as the window lasts."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def original(self, identifier: bytes, now_ms: int) -> int | None:
        """The sequence number first sent under the id, while the window lasts."""
        found = self._seen.get(identifier)
        return found[0] if found is not None and now_ms < found[1] else None

    def add(self, identifier: bytes, sequence: int, until_ms: int) -> None:
        """The id names this message until then."""
        self._seen.pop(identifier, None)  # so that order stays the order of adding
        self._seen[identifier] = (sequence, until_ms)

    def forget(self, now_ms: int) -> None:
        """Drops ids whose window is over, oldest first; stops at the first that is not."""
        over = []
        for identifier, (_, until_ms) in self._seen.items():
            if until_ms > now_ms:
                break
            over.append(identifier)
        for identifier in over:
            del self._seen[identifier]

    def clear(self) -> None:
        """A purge forgets ids."""
        self._seen.clear()

    def dump(self) -> list[tuple[bytes, int, int]]:
        """For the snapshot."""
        return [(identifier, sequence, until) for identifier, (sequence, until) in self._seen.items()]

    def load(self, dumped: list[tuple[bytes, int, int]]) -> None:
        """From the snapshot."""
        self._seen = {identifier: (sequence, until) for identifier, sequence, until in dumped}


class StoredBatch:
    """How a producer's batch was answered: enough to answer it again."""

    __slots__ = ("count", "duplicates", "first", "sent_ms")

    def __init__(self, first: int, count: int, sent_ms: int, duplicates: list[tuple[int, int]]) -> None:
        self.first = first
        self.count = count
        self.sent_ms = sent_ms
        self.duplicates = duplicates


class ProducerTable:
    """The recent batches of each producer, so that a batch sent again is answered and not stored again."""

    def __init__(self) -> None:
        self._producers: dict[int, dict[int, StoredBatch]] = {}
        self._last_ms: dict[int, int] = {}

    def stored(self, producer: int, number: int) -> StoredBatch | None:
        """The batch, if it was stored and is remembered."""
        batches = self._producers.get(producer)
        return batches.get(number) if batches is not None else None

    def too_old(self, producer: int, number: int) -> bool:
        """Whether the number is from before what is remembered, so that nobody can tell."""
        batches = self._producers.get(producer)
        if not batches or len(batches) < limits.PRODUCER_BATCHES_REMEMBERED:
            return False
        return number < next(iter(batches))

    def add(self, producer: int, number: int, batch: StoredBatch) -> None:
        """The batch is stored; forgets the oldest batches, and producers idle for long or too many."""
        batches = self._producers.setdefault(producer, {})
        batches[number] = batch
        if len(batches) > limits.PRODUCER_BATCHES_REMEMBERED:
            del batches[next(iter(batches))]
        self._last_ms.pop(producer, None)
        self._last_ms[producer] = batch.sent_ms
        for idle in self._idle(batch.sent_ms):
            del self._last_ms[idle]
            del self._producers[idle]

    def _idle(self, now_ms: int) -> list[int]:
        over = len(self._last_ms) - limits.PRODUCERS_PER_QUEUE
        found = []
        for producer, last_ms in self._last_ms.items():
            if over <= 0 and last_ms > now_ms - limits.PRODUCER_IDLE_MS:
                break
            found.append(producer)
            over -= 1
        return found

    def dump(self) -> list[tuple[int, int, list[tuple[int, int, int, int, list[tuple[int, int]]]]]]:
        """For the snapshot, in the order of last use."""
        return [
            (
                producer,
                last_ms,
                [
                    (number, batch.first, batch.count, batch.sent_ms, batch.duplicates)
                    for number, batch in self._producers[producer].items()
                ],
            )
            for producer, last_ms in self._last_ms.items()
        ]

    def load(
        self, dumped: list[tuple[int, int, list[tuple[int, int, int, int, list[tuple[int, int]]]]]]
    ) -> None:
        """From the snapshot."""
        for producer, last_ms, batches in dumped:
            self._last_ms[producer] = last_ms
            self._producers[producer] = {
                number: StoredBatch(first, count, sent_ms, duplicates)
                for number, first, count, sent_ms, duplicates in batches
            }


class OriginTable:
    """Messages that moved in from other queues, until their source knows that they arrived."""

    def __init__(self) -> None:
        self._arrived: dict[int, Runs] = {}

    def arrived(self, source_id: int, runs: Runs) -> Runs:
        """Which of the source's messages are here already."""
        return intersection(normalized(runs), self._arrived.get(source_id, []))

    def add(self, source_id: int, runs: Runs) -> None:
        """These arrived."""
        self._arrived[source_id] = normalized([*self._arrived.get(source_id, []), *runs])

    def forget(self, source_id: int, runs: Runs) -> None:
        """The source will never send these again."""
        rest = difference(self._arrived.get(source_id, []), normalized(runs))
        if rest:
            self._arrived[source_id] = rest
        else:
            self._arrived.pop(source_id, None)

    def __iter__(self) -> Iterator[tuple[int, Runs]]:
        return iter(self._arrived.items())

    def dump(self) -> list[tuple[int, Runs]]:
        """For the snapshot."""
        return list(self._arrived.items())

    def load(self, dumped: list[tuple[int, Runs]]) -> None:
        """From the snapshot."""
        self._arrived = dict(dumped)
