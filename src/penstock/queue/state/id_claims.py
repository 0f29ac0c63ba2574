"""Deduplication ids over several partitions: the home of an id knows its owner, the owner knows whether the id was stored.

The home of an id says which partition owns it. The window of that partition says whether it was stored, as on a single
node. If the sender of a claim died or was refused, another partition takes the id over in two steps: the id is *barred* at
the first partition, unless it was stored meanwhile, and then claimed again at its home. All of this is in records, so it
survives failovers. ADR 20 proves that no id is stored twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import IdsBarred, IdsClaimed
from penstock.queue.decisions.decision import Decision, PendingRecord
from penstock.queue.partition import Partition

IDS_AT_ONCE = limits.BATCH_MESSAGES
HELD_MS = 60_000
"""A send may be under way for so long after its ids were claimed: while a partition has no primary, or over a slow connection. A bar
lasts at least as long. With a shorter window it would end first, and the send that it is there for would be stored."""


class Claims(NamedTuple):
    """The answer to a request: owners and versions, by id."""

    owners: list[int]
    versions: list[int]


def claim(
    partition: Partition, ids: Sequence[bytes], owners: Sequence[int], instead_of: Sequence[int], now_ms: int
) -> Decision[Claims]:
    """At the home of ids: gives an id to the partition that wants it if it is free, or if its claim is replaced."""
    _check(ids, owners, instead_of)
    version = partition.number_of_record()
    answer = Claims([], [])
    taken: dict[bytes, int] = {}
    for identifier, wanted, replaced in zip(ids, owners, instead_of, strict=True):
        held = partition.window.claims.get(identifier, now_ms)
        owner = taken.get(identifier)
        if owner is None and (held is None or held.owner == wanted or held.version == replaced):
            owner = taken[identifier] = (
                wanted  # held already it is claimed again, so that it lasts long enough
            )
        answer.owners.append(owner if owner is not None else held.owner if held is not None else wanted)
        answer.versions.append(version if owner is not None or held is None else held.version)
    if not taken:
        return Decision((), answer)
    # It has to outlast the window of what was sent under it, also where that was held up.
    until_ms = now_ms + partition.settings.deduplication_window_ms + _bar_ms(partition)
    record = IdsClaimed(list(taken), list(taken.values()), version, until_ms, now_ms)
    return Decision((PendingRecord(record),), answer)


def find(
    partition: Partition, ids: Sequence[bytes], versions: Sequence[int], now_ms: int, *, lift: bool
) -> Decision[list[int]]:
    """At the owning partition: the numbers of messages with these ids. Ids that are not stored are barred, or allowed again."""
    _check(ids, versions, versions)
    found: list[int] = []
    changed: list[bytes] = []
    bars: list[int] = []
    for identifier, version in zip(ids, versions, strict=True):
        known = partition.window.original(identifier, now_ms)
        found.append(max(0, known or 0))
        barred = -known if known is not None and known < 0 else 0
        if lift and 0 < barred < version:
            changed.append(identifier)
            bars.append(0)
        elif not lift and not found[-1] and barred < version:
            changed.append(identifier)
            bars.append(version)
    if not changed:
        return Decision((), found)
    until_ms = now_ms + _bar_ms(partition)
    return Decision((PendingRecord(IdsBarred(changed, bars, until_ms, now_ms)),), found)


def _bar_ms(partition: Partition) -> int:
    return max(partition.settings.deduplication_window_ms, HELD_MS)


def refuse_barred(name: str) -> PenstockError:
    """The error for a send whose id was given to another partition meanwhile."""
    return PenstockError(
        ErrorCode.OVERLOADED,
        f"queue {name!r} was sent the same deduplication id in another group at the same time; try again",
    )


def _check(ids: Sequence[bytes], one: Sequence[int], other: Sequence[int]) -> None:
    if not len(ids) == len(one) == len(other) or len(ids) > IDS_AT_ONCE:
        raise PenstockError(ErrorCode.BAD_REQUEST, "ids and their values do not match")
