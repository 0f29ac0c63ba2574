"""What was sent before: deduplication ids, and messages that moved in; batches of producers are in `producers`.

Three tables and one for the cluster, one promise: the same thing sent twice is stored once (I3). All of them are changed only when a
record is applied, and forget by the time in that record, so every replica remembers the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.records import IdsBarred, IdsClaimed
from penstock.model.runs import Runs, difference, intersection, normalized


class Claim(NamedTuple):
    """Whose an id is."""

    owner: int
    version: int
    until_ms: int


class IdClaims:
    """The claims at the home of ids."""

    def __init__(self) -> None:
        self._claims: OrderedDict[bytes, Claim] = OrderedDict()

    def __len__(self) -> int:
        return len(self._claims)

    def get(self, identifier: bytes, now_ms: int) -> Claim | None:
        """Whose an id is, while that lasts."""
        found = self._claims.get(identifier)
        return found if found is not None and now_ms < found.until_ms else None

    def apply(self, record: IdsClaimed) -> None:
        """Gives ids to partitions, and forgets claims that are over."""
        for identifier, owner in zip(record.ids, record.owners, strict=True):
            self._claims[identifier] = Claim(owner, record.version, record.until_ms)
            self._claims.move_to_end(identifier)
        while self._claims:
            oldest = next(iter(self._claims))
            if self._claims[oldest].until_ms > record.at_ms:
                return
            del self._claims[oldest]

    def clear(self) -> None:
        """A purge forgets ids."""
        self._claims.clear()

    def dump(self) -> list[tuple[bytes, int, int, int]]:
        """For the snapshot."""
        return [(identifier, *claim) for identifier, claim in self._claims.items()]

    def load(self, dumped: list[tuple[bytes, int, int, int]]) -> None:
        """From the snapshot."""
        self._claims = OrderedDict((identifier, Claim(*claim)) for identifier, *claim in dumped)


class DeduplicationWindow:
    """Deduplication ids and the message each named first, for as long as the window lasts."""

    def __init__(self) -> None:
        # Ordered by adding. Not a plain dict: finding its first key passes over every deleted one before it, which
        # with 50,000 ids in the window costs 40 µs a send on average.
        self._seen: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        """The number of the message; below 0 the id is barred, by a claim of that version of another partition."""
        self.claims = IdClaims()
        """In a cluster: to which partition of the queue ids belong whose home this one is."""

    def __len__(self) -> int:
        return len(self._seen)

    def original(self, identifier: bytes, now_ms: int) -> int | None:
        """The sequence number first sent under the id, while the window lasts."""
        found = self._seen.get(identifier)
        return found[0] if found is not None and now_ms < found[1] else None

    def add(self, identifier: bytes, sequence: int, until_ms: int) -> None:
        """The id names this message until then."""
        self._seen[identifier] = (sequence, until_ms)
        self._seen.move_to_end(identifier)

    def apply(self, record: IdsClaimed | IdsBarred) -> None:
        """Gives ids to partitions; bars them here, or lifts their bars."""
        if isinstance(record, IdsClaimed):
            self.claims.apply(record)
            return
        for identifier, version in zip(record.ids, record.versions, strict=True):
            if version:
                self.add(identifier, -version, record.until_ms)
            else:
                self._seen.pop(identifier, None)

    def forget(self, now_ms: int) -> None:
        """Drops ids whose window is over, oldest first; stops at the first that is not."""
        if not self._seen:
            return
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
        self.claims.clear()

    def dump(self) -> list[tuple[bytes, int, int]]:
        """For the snapshot."""
        return [(identifier, sequence, until) for identifier, (sequence, until) in self._seen.items()]

    def load(self, dumped: list[tuple[bytes, int, int]]) -> None:
        """From the snapshot."""
        self._seen = OrderedDict((identifier, (sequence, until)) for identifier, sequence, until in dumped)


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
