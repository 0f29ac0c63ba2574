"""Splits a batch among the partitions of its queue, and combines their sequence numbers again.

For order and deduplication, related messages must meet: a group of an ordered queue, and an id, always go to the same
partition, from every sender. The rest goes as a whole to the partition with the least load. If a message has both, the
group decides, because otherwise the order would break; `claiming` then finds out which partition owns the id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

from penstock.model.batch import DEDUPLICATION, GROUPS, Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import ELSEWHERE
from penstock.model.runs import runs_in_order
from penstock.model.settings import QueueSettings
from penstock.routing.numbers import outward
from penstock.wire.messages import SendResult


class BatchPart(NamedTuple):
    """The messages of a batch for one partition, by their positions, in order; None: the whole batch."""

    ordinal: int
    places: Sequence[int] | None
    known: Sequence[int] = ()
    """Those among them that it does not get, because another partition has them."""

    def sent(self, count: int) -> Sequence[int]:
        """The places of the messages that the partition gets of a batch of `count`."""
        places = self.places if self.places is not None else range(count)
        if not self.known:
            return places
        known = set(self.known)
        return [place for place in places if place not in known]

    def left_out(self, count: int, known: Mapping[int, int | DuplicateOf]) -> list[tuple[int, int]]:
        """What the partition learns about the others, see `Send`."""
        if not self.known:
            return []
        places = self.places if self.places is not None else range(count)
        at = {place: index for index, place in enumerate(places)}
        numbers = [known[place] for place in self.known]
        return [
            (at[place], 0 if isinstance(number, DuplicateOf) else number)
            for place, number in zip(self.known, numbers, strict=True)
        ]


class DuplicateOf(NamedTuple):
    """A message that is a duplicate of another one in the batch, which is given by its position."""

    place: int


def ordinal_of(name: bytes, partitions: int) -> int:
    """The partition of a group or a deduplication id: the same for all senders."""
    return (
        int.from_bytes(blake2b(name, digest_size=8, person=b"penstock.share").digest(), "little") % partitions
    )


def ordinal_of_batch(producer: int, number: int, partitions: int) -> int:
    """The partition of a numbered batch: if it is sent again, through any front end, it must go to the same one."""
    return (producer + number) % partitions


def needs_splitting(settings: QueueSettings, columns: int) -> bool:
    """Whether messages of one batch may have to go to several partitions."""
    return settings.strict or bool(columns & DEDUPLICATION)


def share_out(batch: Batch, settings: QueueSettings, partitions: int, elsewhere: int) -> list[BatchPart]:
    """The shares of a batch; messages that may go anywhere go to `elsewhere`."""
    if settings.strict:
        names = batch.names(GROUPS)
        if names is None:
            return [BatchPart(ordinal_of(b"", partitions), None)]
        known: dict[bytes, int] = {name: ordinal_of(name, partitions) for name in set(names)}
        ordinals = [known[name] for name in names]
    else:
        names = batch.names(DEDUPLICATION)
        if names is None:
            return [BatchPart(elsewhere, None)]
        ordinals = [ordinal_of(name, partitions) if name else elsewhere for name in names]
    places: dict[int, list[int]] = {}
    for place, ordinal in enumerate(ordinals):
        places.setdefault(ordinal, []).append(place)
    if len(places) == 1:
        return [BatchPart(ordinals[0], None)]
    return [BatchPart(ordinal, chosen) for ordinal, chosen in places.items()]


def without(
    shares: Sequence[BatchPart], known: Mapping[int, int | DuplicateOf], count: int, *, numbered: bool
) -> list[BatchPart]:
    """The shares without messages that are not to be sent, by place in the batch of `count`.

    Shares of which nothing is left stay if the batch is `numbered`: their partitions remember it, for when it comes again.
    """
    if not known:
        return list(shares)
    rest = [
        share._replace(
            known=[
                place
                for place in (share.places if share.places is not None else range(count))
                if place in known
            ]
        )
        for share in shares
    ]
    return rest if numbered else [share for share in rest if share.sent(count)]


def together(
    count: int,
    shares: Sequence[BatchPart],
    results: Sequence[SendResult],
    known: Mapping[int, int | DuplicateOf] = MappingProxyType({}),
    now_ms: int = 0,
) -> SendResult:
    """One answer for the whole batch of `count` messages, in its order; `known` are those that were not sent again.

    A share that comes again may be answered by what was stored when something else was known. That counts then.
    """
    sequences = [0] * count
    duplicates = set(known)
    for share, result in zip(shares, results, strict=True):
        places = share.places if share.places is not None else range(count)
        numbers = [n for first, length in result.runs for n in range(first, first + length)]
        if len(numbers) != len(places):
            # A node of an earlier version does not count what it did not get.
            places = share.sent(count)
        if len(numbers) != len(places):
            raise PenstockError(
                ErrorCode.BAD_REQUEST,
                f"other messages were sent under the number of this batch before: of {len(places)} there are "
                f"{len(numbers)}. A number identifies one batch; use a new one for other messages",
            )
        duplicates -= set(places)
        duplicates |= {places[index] for index in result.duplicates}
        for place, number in zip(places, numbers, strict=True):
            sequences[place] = number ^ ELSEWHERE if number & ELSEWHERE else outward(share.ordinal, number)
    for place, original in known.items():
        if place in duplicates and not sequences[place]:
            sequences[place] = sequences[original.place] if isinstance(original, DuplicateOf) else original
    return SendResult(
        runs_in_order(sequences),
        sorted(duplicates),
        max((result.sent_ms for result in results), default=now_ms),
        max((result.stamp_us for result in results), default=0),
    )
