"""What was sent before: deduplication ids, and messages that moved in. Batches of producers are in `producers`.

Three tables, and one more in a cluster, keep one promise: the same thing sent twice is stored once (I3). All of them
change only when a record is applied, and forget by the time in that record, so every replica remembers the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.model.aged_map import AgedMap
from penstock.model.records import IdsBarred, IdsClaimed
from penstock.model.run_set import RunSet
from penstock.model.runs import Runs, normalized

FORGOTTEN_AT_ONCE = 500
"""So many rows that are over are forgotten with a record at most, and twice as many as it adds: after a window of a million ids
one send would take half a second."""
_BITS = 64
_LOW = (1 << _BITS) - 1
_MIDDLE = 1 << _BITS - 1


def row_of(sequence: int, until_ms: int) -> int:
    """An id's row in the window: the number that it names, or less than 0, until then."""
    return until_ms * (_LOW + 1) + sequence + _MIDDLE


def sequence_and_until(row: int) -> tuple[int, int]:
    """Splits what `row_of` combined."""
    return (row & _LOW) - _MIDDLE, row >> _BITS


class Claim(NamedTuple):
    """The partition that owns an id."""

    owner: int
    version: int
    until_ms: int


class IdClaims:
    """The claims at the home of ids."""

    def __init__(self) -> None:
        self.rows: AgedMap[bytes, Claim] = AgedMap()

    def get(self, identifier: bytes, now_ms: int) -> Claim | None:
        """The owner of an id, while the claim lasts."""
        found = self.rows.get(identifier)
        return found if found is not None and now_ms < found.until_ms else None

    def apply(self, record: IdsClaimed) -> None:
        """Gives ids to partitions, and forgets claims that are over."""
        version, until_ms, at_ms = record.version, record.until_ms, record.at_ms
        claims = [Claim(owner, version, until_ms) for owner in record.owners]
        self.rows.put_all(zip(record.ids, claims, strict=True))
        self.rows.pop_while(lambda claim: claim.until_ms <= at_ms, FORGOTTEN_AT_ONCE + 2 * len(claims))


class DeduplicationWindow:
    """Deduplication ids and the message that each named first, for as long as the window lasts."""

    def __init__(self) -> None:
        self.rows: AgedMap[bytes, int] = AgedMap()
        """The end of the window, above 64 bits, and the number of the message. Below 0 the id is barred, by a claim of
        another partition with that version. It is one number because the garbage collector does not visit numbers: a
        million pairs take it 30 ms.
        """
        self.claims = IdClaims()
        """In a cluster: the partitions of the queue that own the ids whose home is this partition."""
        self.known_from = 0
        """Messages below this number may have lost their ids early: by a purge, by another length of the window. Not in snapshots: of
        messages from before one it is not known."""
        self.has_bars = False
        """Whether there may be bars among the rows."""

    def original(self, identifier: bytes, now_ms: int) -> int | None:
        """The sequence number first sent under the id, while the window lasts."""
        found = self.rows.get(identifier)
        return (found & _LOW) - _MIDDLE if found is not None and now_ms < found >> _BITS else None

    def add(self, identifier: bytes, sequence: int, until_ms: int) -> None:
        """The id names this message until then."""
        self.rows.put(identifier, row_of(sequence, until_ms))

    def add_batch(self, identifiers: Sequence[bytes], first: int, until_ms: int) -> None:
        """The ids name the messages from `first` on, one each; an empty one is none."""
        row = row_of(first, until_ms)
        if len(identifiers) == 1:
            if identifiers[0]:
                self.rows.put(identifiers[0], row)
            return
        self.rows.put_all((identifier, at) for at, identifier in enumerate(identifiers, row) if identifier)

    def apply(self, record: IdsClaimed | IdsBarred) -> None:
        """Gives ids to partitions; bars them here, or lifts their bars."""
        if isinstance(record, IdsClaimed):
            self.claims.apply(record)
            return
        for identifier, version in zip(record.ids, record.versions, strict=True):
            if version:
                self.has_bars = True
                self._forgotten_early(identifier)
                self.add(identifier, -version, record.until_ms)
            else:
                self.rows.pop(identifier)

    def _forgotten_early(self, identifier: bytes) -> None:
        """The clock of a primary says that the window of an id is over. That of the next one may be behind, and say that it is not."""
        found = self.rows.get(identifier)
        if found is not None and (sequence := (found & _LOW) - _MIDDLE) >= self.known_from:
            self.known_from = sequence + 1

    def forget(self, now_ms: int, added: int) -> None:
        """Drops ids whose window is over, oldest first. After so many additions only some are dropped, and the others later;
        `get` already ignores them.
        """
        self.rows.pop_while(lambda row: row >> _BITS <= now_ms, FORGOTTEN_AT_ONCE + 2 * added)

    def clear(self, end: int) -> AgedMap[bytes, int]:
        """A purge forgets ids, of all messages below the number `end`; returns the rows that were there.

        Claims and bars stay. They are about sends that may be under way: without them one id could be stored in two partitions.
        """
        before, self.rows = self.rows, AgedMap()
        bars = [(key, row) for key, row in before.items() if row & _LOW < _MIDDLE] if self.has_bars else []
        self.rows.put_all(bars)
        self.known_from, self.has_bars = end, bool(bars)
        return before


class OriginTable:
    """Messages that moved in from other queues, until their source knows that they arrived.

    After that, a request that was sent before is recognized by its place: the epoch of the source's primary, and a number
    that rises while it leads.
    """

    def __init__(self) -> None:
        self._arrived: dict[int, RunSet] = {}
        self._forgotten: dict[int, tuple[int, int]] = {}

    def arrived(self, source_id: int, runs: Runs) -> Runs:
        """Which of the source's messages are here already."""
        arrived = self._arrived.get(source_id)
        return arrived.among(normalized(runs)) if arrived is not None else []

    def of(self, source_id: int) -> Runs:
        """All that arrived from a source, at once."""
        return [*self._arrived.get(source_id, ())]

    def add(self, source_id: int, runs: Runs) -> None:
        """These arrived."""
        self._arrived.setdefault(source_id, RunSet()).add(normalized(runs))

    def forgotten(self, source_id: int) -> tuple[int, int]:
        """(epoch, number) up to which requests of a source may be about messages that are forgotten here."""
        return self._forgotten.get(source_id, (0, 0))

    def places(self) -> list[tuple[int, int, int]]:
        """(source, epoch, number) of all that is forgotten."""
        return [(source_id, *place) for source_id, place in self._forgotten.items()]

    def knows(self, source_id: int) -> bool:
        """Whether anything is remembered of a source."""
        return source_id in self._arrived or source_id in self._forgotten

    def end(self, source_id: int) -> None:
        """The source is deleted."""
        self._forgotten.pop(source_id, None)

    def forget(self, source_id: int, runs: Runs, place: tuple[int, int] = (0, 0)) -> None:
        """The source will never send these again, and what it sent up to this place may be about them."""
        if place > self.forgotten(source_id):
            self._forgotten[source_id] = place
        arrived = self._arrived.get(source_id)
        if arrived is not None:
            arrived.remove(normalized(runs))
            if not arrived:
                del self._arrived[source_id]

    def __iter__(self) -> Iterator[tuple[int, RunSet]]:
        return iter(self._arrived.items())

    def load(self, source_id: int, runs: Runs) -> None:
        """Some messages of a source from the snapshot, behind those that are there."""
        self._arrived.setdefault(source_id, RunSet()).append(runs)
