"""Deduplication over the partitions of an ordered queue: before a send, finds out which partitions own its ids.

Groups decide to which partition a message goes, so one id may be sent to two partitions. The home of the id, the partition
that its hash names, knows the owner. ADR 20 has the whole argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.cluster.layout.entries import QueueEntry
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.batch_parts import ordinal_of
from penstock.routing.numbers import outward
from penstock.steps.asking import ask_all
from penstock.steps.step import Ask, Steps
from penstock.wire.messages import ClaimedIds, ClaimIds, FindIds, FoundIds

WITHIN_PARTITION = b"\0"
"""The prefix of an id that is looked for only in the partition of its group."""
ATTEMPTS = 5


class Wanted(NamedTuple):
    """An id and the partition of its message."""

    identifier: bytes
    ordinal: int


class Claim(NamedTuple):
    """The owner of an id."""

    owner: int
    version: int


def is_claimed(identifier: bytes) -> bool:
    """Whether an id is looked for in all partitions."""
    return bool(identifier) and not identifier.startswith(WITHIN_PARTITION)


class Claims:
    """The claims of one send."""

    def __init__(self, queue: QueueEntry) -> None:
        self._queue = queue
        self._held: dict[bytes, Claim] = {}

    def claim(self, wanted: Mapping[bytes, int]) -> Steps[dict[bytes, int]]:
        """Claims ids for the partitions that their messages are for; returns the numbers of those sent elsewhere.

        What is not returned may be sent: the partition itself says whether it was sent there before.
        """
        elsewhere: dict[bytes, int] = {}
        left = [Wanted(*one) for one in wanted.items()]
        replaced: dict[bytes, int] = {}
        for _ in range(ATTEMPTS):
            claims = yield from self._ask_homes(left, replaced)
            for one in left:
                if claims[one.identifier].owner == one.ordinal:
                    self._held[one.identifier] = claims[one.identifier]
            left = [one for one in left if one.identifier not in self._held]
            owners = {one.identifier: claims[one.identifier] for one in left}
            found = yield from self._find(owners, lift=False)
            elsewhere.update(found)
            replaced = {identifier: claim.version for identifier, claim in owners.items()}
            left = [one for one in left if one.identifier not in found]
            if not left:
                return elsewhere
        raise PenstockError(
            ErrorCode.OVERLOADED,
            f"queue {self._queue.name!r} is sent the same deduplication ids in several groups at once; try again",
        )

    def lift_bars(self) -> Steps[None]:
        """Removes bars: an id that is ours now may have been ours before, and was barred for another partition that did not
        get it.
        """
        yield from self._find(self._held, lift=True)

    def _ask_homes(self, left: Sequence[Wanted], replaced: Mapping[bytes, int]) -> Steps[dict[bytes, Claim]]:
        partitions = self._queue.partitions
        homes: dict[int, list[Wanted]] = {}
        for one in left:
            homes.setdefault(ordinal_of(one.identifier, len(partitions)), []).append(one)
        asks = []
        for ordinal, some in homes.items():
            request = ClaimIds(
                partitions[ordinal],
                [one.identifier for one in some],
                [one.ordinal for one in some],
                [replaced.get(one.identifier, 0) for one in some],
            )
            asks.append(Ask(request, partition=partitions[ordinal]))
        answers = yield from ask_all(asks, ClaimedIds)
        return {
            one.identifier: Claim(owner, version)
            for some, answer in zip(homes.values(), answers, strict=True)
            for one, owner, version in zip(some, answer.owners, answer.versions, strict=True)
        }

    def _find(self, claims: Mapping[bytes, Claim], *, lift: bool) -> Steps[dict[bytes, int]]:
        """Asks owners which of their ids were stored; the others are barred, or no longer."""
        by_owner: dict[int, list[bytes]] = {}
        for identifier, claim in claims.items():
            by_owner.setdefault(claim.owner, []).append(identifier)
        asks = []
        for ordinal, ids in by_owner.items():
            partition = self._queue.partitions[ordinal]
            versions = [claims[identifier].version for identifier in ids]
            asks.append(Ask(FindIds(partition, ids, versions, lift), partition=partition))
        answers = yield from ask_all(asks, FoundIds)
        return {
            identifier: outward(ordinal, sequence)
            for (ordinal, ids), answer in zip(by_owner.items(), answers, strict=True)
            for identifier, sequence in zip(ids, answer.sequences, strict=True)
            if sequence
        }
