"""Deduplication ids over several partitions: at an id's home who may store it, at the partition itself whether it did.

The home of an id says to which partition it belongs. The window of that partition says whether it was stored, as on a
single node. A claim that came to nothing (whoever made it died, or was refused) is taken over by another partition in two
steps: the id is *barred* from the first, unless it was stored meanwhile, and then claimed anew at its home. Everything is on
record, so it survives whoever leads the partitions. ADR 20 says why nothing can be stored twice.
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
    """At the home of ids: gives those to the partitions that want them which are free, or whose claim is replaced."""
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
    """At a partition with claims: the numbers of messages with these ids; those that are not there are barred, or let in."""
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
    """What a send is told whose id was given to another partition while it was on its way."""
    return PenstockError(
        ErrorCode.OVERLOADED,
        f"queue {name!r} was sent the same deduplication id in another group at the same time; try again",
    )


def _check(ids: Sequence[bytes], one: Sequence[int], other: Sequence[int]) -> None:
    if not len(ids) == len(one) == len(other) or len(ids) > IDS_AT_ONCE:
        raise PenstockError(ErrorCode.BAD_REQUEST, "ids and what is said of them do not match")
